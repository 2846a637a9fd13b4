"""The text that runs are about, and the one that their models were trained on: what is said of runs depends on both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from lmgauge.api.types import Text
from lmgauge.declaration import chosen, settings
from lmgauge.errors import UsageError

if TYPE_CHECKING:
    from lmgauge.evaluation.options import AuditSettings, DiagnosisSettings
    from lmgauge.evaluation.runs import Run
    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.text.documents import Corpus


_OF_MODEL = ("contexts", "exhaustive", "sample_tokens", "sum_tolerance", "compression_bytes")


def refuse_without_model(scoring: ScoringOptions, made: AuditSettings | DiagnosisSettings) -> None:
    """Refuse options that are about the model of a run where there is none.

    Raises:
        UsageError: there is such an option; the message names the first.
    """
    for name in (*chosen(scoring), *(name for name in chosen(made) if name in _OF_MODEL)):
        raise UsageError(f"{name.replace('_', '-')} needs the model: name it (-m)")


@settings
class RunText:
    """The text that runs are about.

    Attributes:
        text: the text that was scored, if it is not where the run remembers it; may be given several times.
        document: what is independent; file, segment, unknown, blank-line, heading, or this field. If not given, as the run
            says.
        train: training text; for slices by how often words, and how long n-grams, occur in it; may be given several times.

    Example:
        >>> RunText(text="test.txt", document="blank-line").train
    """

    heading: ClassVar[str] = "Text"
    text: Text | None = None
    document: str | None = None
    train: Text | None = None

    def of(self, runs: Sequence[Run]) -> dict[str, Any]:
        """Return the text, read as it was when it was scored, and whether its documents are said here; None: as runs say.

        Args:
            runs: of that text.
        """
        from lmgauge.api.inputs import says_documents, text_of

        unsaid = self.text is None and self.document is None
        corpus = None if unsaid else text_of(runs, self.text, self.document)
        return {"corpus": corpus, "documents_of_text": says_documents(self.text, self.document)}

    def trained(self, read: Callable[[Corpus, int | None, Any], Any], threads: int | None) -> Callable[[Any], Any] | None:
        """Return the function that reads the training text beside what was scored; None without such a text.

        Args:
            read: called with the training text, `threads`, and what it is given later.
            threads: how many; all cores if None.
        """
        from lmgauge.api.inputs import corpus_of

        return None if self.train is None else partial(read, corpus_of(self.train), threads)
