"""A task, apart from what runs it, and how its errors come back."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lmgauge.errors import LmgaugeError


@dataclass(frozen=True)
class Task:
    """A task of some stage, which can be sent to another process or machine."""

    stage: str  # what it is a part of, for errors
    number: int  # of the task in its stage
    work: Callable[..., Any]
    taken: Any  # what the work takes
    makes: Sequence[Any] = ()  # the names of the arrays that it yields, if it does

    def __str__(self) -> str:
        return f"stage {self.stage}, task {self.number}"


def failure(task: Task, error: Exception) -> LmgaugeError:
    """Return what to raise for an error of a task: the same, if it is one for the user, else one that names the stage."""
    return error if isinstance(error, LmgaugeError) else LmgaugeError(f"{task}: {type(error).__name__}: {error}")


def sent_failure(task: Task, error: Exception) -> LmgaugeError:
    """Return what to send to another process for an error of a task, where it is handled: its traceback is a note."""
    shown = failure(task, error)
    shown.add_note(traceback.format_exc())
    return shown
