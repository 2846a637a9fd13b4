"""Which fields of a file hold the texts to choose from, as one object; light, for the command line."""

from __future__ import annotations

from dataclasses import dataclass

from lmgauge.choices import Boundary

NO_FIELD = "none"
"""In place of a field: there is none."""


@dataclass(frozen=True, kw_only=True)
class PairFields:
    """Which fields or columns of a file hold pairs; None for those of BLiMP, or columns 1, 2 and 3 of a TSV file.

    Attributes:
        good: the text that should be preferred; None is `sentence_good` (TSV: column 1).
        bad: the other; None is `sentence_bad` (TSV: column 2).
        by: the phenomenon; None is `linguistics_term` (TSV: column 3), "none" for no groups.

    Example:
        >>> PairFields(good="right", bad="wrong", by="none").good
        'right'
    """

    good: str | None = None
    bad: str | None = None
    by: str | None = None

    def over(self, good: str, bad: str, by: str) -> PairFields:
        """Return these fields, and others where none is named.

        Args:
            good: in place of None.
            bad: in place of None.
            by: in place of None.

        Example:
            >>> PairFields(by="UID").over("1", "2", "3")
            PairFields(good='1', bad='2', by='UID')
        """
        return PairFields(good=self.good or good, bad=self.bad or bad, by=self.by or by)


@dataclass(frozen=True, kw_only=True)
class QuestionFields:
    """Which fields of a file hold questions and their answers.

    Attributes:
        question: what is shown before each answer; "none" if nothing is.
        choices: the answers to choose from, a list.
        answer: the right one: its number from 0, its letter from A, or the answer itself.
        by: what groups questions; None for no groups.
        boundary: how the question and an answer are cut into tokens: as one text ("joint"), or each alone ("apart").

    Example:
        >>> QuestionFields(question="ctx", choices="endings", answer="label").boundary
        'joint'
    """

    question: str = "question"
    choices: str = "choices"
    answer: str = "answer"
    by: str | None = None
    boundary: Boundary = "joint"
