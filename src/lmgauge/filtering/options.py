"""The settings for files of documents: how records are read, which documents stay, what does the work."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeVar

from lmgauge.base.choices import DEFAULT_SEED, BadRecordPolicy, ErrorPolicy, Format, ProperSmoothing
from lmgauge.base.declaration import settings
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import AtLeastOne, Bounds, Count, Natural, Share
from lmgauge.text.reading_options import ReadingOptions
from lmgauge.work.shard import Shard, Sharing

if TYPE_CHECKING:
    from lmgauge.filtering.percentiles import Percentiles
    from lmgauge.models.ngram.settings import NgramTrainingSettings
    from lmgauge.text.tokens import Tokenizer

_T = TypeVar("_T")
BY = "by"
"""Name of the setting of scores that says which field chose the model."""
PERCENTS = (0.0, 0.1, 0.5, *(float(percent) for percent in range(1, 100)), 99.5, 99.9, 100.0)
"""The percentiles that are learned."""
_RANGE = re.compile(r"(?:p(\d{1,3}(?:\.\d)?))?\.\.(?:p(\d{1,3}(?:\.\d)?))?")
_CUTS = re.compile(r"p(\d{1,3}(?:\.\d)?) ?, ?p(\d{1,3}(?:\.\d)?)")


def percent_name(percent: float) -> str:
    """Return how a percentile is written."""
    return f"p{percent:g}"


def check_percent(percent: float) -> float:
    """Return a percentage if it is one of those that are learned."""
    if percent not in PERCENTS:
        raise UsageError(
            f"{percent_name(percent)}: percentiles are p0, p1 to p100, and p0.1, p0.5, p99.5 and p99.9; choose one of them"
        )
    return float(percent)


@settings
class RecordOptions:
    """How records are read.

    Attributes:
        field: field or column with the text.
        lines: score each line of a document as a sentence; else a document is one segment, as in CCNet.
        by: field whose value chooses the model, such as the language.
        group: field whose values are the groups of a report and of percentiles; that of `by` if not given.
        id: field that names a record, in rejects and examples.
        format: of all files; by their names if not given.
        errors: a record without text, with bad JSON or invalid text: reject (count it and set it aside), or fail.

    Example:
        >>> RecordOptions(field="body", by="lang").group_field
        'lang'
    """

    heading: ClassVar[str] = "Documents"
    field: str = "text"
    lines: bool = False
    by: str | None = None
    group: str | None = None
    id: str | None = None
    format: Format | None = None
    errors: BadRecordPolicy = "reject"

    def scored_by(self) -> dict[str, str]:
        """Return what of it changes scores, by name, as percentiles carry it."""
        chosen = {} if self.by is None else {BY: self.by}
        return {"field": self.field, "lines": "yes" if self.lines else "no", **chosen}

    def check_groups(self) -> None:
        """Refuse percentiles of perplexities of several models.

        Raises:
            UsageError: a field chooses the model, and groups are the values of another.
        """
        if self.by is not None and self.group_field != self.by:
            raise UsageError(
                f"the field {self.by!r} chooses the model, so percentiles are by that field: perplexities of several models "
                "share no scale; leave out the other group"
            )

    @property
    def group_field(self) -> str | None:
        """The field of the groups."""
        return self.by if self.group is None else self.group


@settings
class FilterRules:
    """Which documents stay. A rule set to None does not apply; several apply together.

    Bounds are inclusive: a document with a perplexity of `max_perplexity` stays. Of a range of percentiles the lower end is
    exclusive, so that `p0..p30` and `p30..p100` share no document; p0 and p100 are not bounds.

    Attributes:
        max_perplexity: drop documents with a higher perplexity, under any model that decides.
        min_perplexity: drop documents with a lower perplexity.
        keep: range of percentiles to keep, of the document's group: p10..p70, ..p70 or p10..; see `percentiles`.
        min_bytes: drop documents shorter than this, in UTF-8.
        max_bytes: drop documents longer than this.
        min_tokens: drop documents with fewer tokens, the end of sentence included.
        max_unseen: drop documents with a larger share of unseen words, 0 to 1.
        buckets: two percentiles that separate head, middle and tail, such as p33,p67; the head has low perplexity.
        judged_by: name of the model that decides where several score; if not given, a document must pass with every model.

    Raises:
        UsageError: a rule is out of range, or cannot be read.

    Example:
        >>> rules = FilterRules(keep="p10..p70", min_bytes=200)
        >>> rules.needs_percentiles, rules.percent_range
        (True, (10.0, 70.0))
    """

    heading: ClassVar[str] = "Rules"
    max_perplexity: AtLeastOne | None = None
    min_perplexity: AtLeastOne | None = None
    keep: str | None = None
    min_bytes: Natural | None = None
    max_bytes: Natural | None = None
    min_tokens: Natural | None = None
    max_unseen: Share | None = None
    buckets: str | None = None
    judged_by: str | None = None

    def __post_init__(self) -> None:
        for low, high in (("min_perplexity", "max_perplexity"), ("min_bytes", "max_bytes")):
            least, most = getattr(self, low), getattr(self, high)
            if least is not None and most is not None and least > most:
                raise UsageError(f"{low} {least:g} is above {high} {most:g}: no document would be kept")
        _ = self.percent_range, self.percent_cuts

    @property
    def percent_range(self) -> tuple[float | None, float | None]:
        """Both ends of `keep`; None where it has no such end."""
        if self.keep is None:
            return None, None
        match = _RANGE.fullmatch(self.keep.strip())
        if match is None or match[1] is match[2] is None:
            raise UsageError(f"keep {self.keep!r} is not a range of percentiles such as p10..p70, ..p70 or p10..")
        low, high = (None if end is None else check_percent(float(end)) for end in match.groups())
        if low is not None and high is not None and low >= high:
            raise UsageError(f"keep {self.keep!r}: the first percentile has to be below the second")
        return low, high

    @property
    def percent_cuts(self) -> tuple[float, float] | None:
        """The two percentiles of `buckets`; None without them."""
        if self.buckets is None:
            return None
        match = _CUTS.fullmatch(self.buckets.strip())
        if match is None:
            raise UsageError(f"buckets {self.buckets!r} are not two percentiles such as p33,p67")
        low, high = (check_percent(float(cut)) for cut in match.groups())
        if not 0 < low < high < 100:
            raise UsageError(f"buckets {self.buckets!r}: two percentiles that rise, above p0 and below p100, are needed")
        return low, high

    @property
    def needs_percentiles(self) -> bool:
        """Whether percentiles are needed."""
        return self.keep is not None or self.buckets is not None

    def check(self, models: Sequence[str], percentiles: Percentiles | None = None) -> None:
        """Refuse rules that the models or the percentiles do not fit.

        Args:
            models: names of the models that score.
            percentiles: to judge by.

        Raises:
            UsageError: the model that counts is not there, percentiles are needed and not there or those of another model,
                or buckets are asked for and several models count.
        """
        from lmgauge.base.escaping import first_few

        if self.judged_by is not None and self.judged_by not in models:
            raise UsageError(f"the rules name model {self.judged_by!r}; there are {first_few(models)}")
        if self.needs_percentiles and percentiles is None:
            raise UsageError(
                "percentiles are needed for this rule: name a file with --percentiles (in Python percentiles); if it does "
                "not exist, they are learned and saved there"
            )
        if self.buckets is not None and self.judged_by is None and len(models) > 1:
            raise UsageError(f"buckets are made by one model; say which one counts: {first_few(models)}")
        if self.needs_percentiles and percentiles is not None:
            for name in self.counting(models):
                percentiles.check_model(name)

    def counting(self, models: Sequence[str]) -> list[str]:
        """Return the names of the models that count.

        Args:
            models: names of those that score.

        Example:
            >>> FilterRules(judged_by="de").counting(["en", "de"])
            ['de']
        """
        return [name for name in models if self.judged_by in (None, name)]


@settings
class FilterWork(Sharing):
    """How files are processed.

    Attributes:
        threads: blocks of a file parsed and scored at a time, in each process; all cores if not given.
        workers: processes, each with a file at a time and a share of the memory map of the models.

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("one", "two"):
        ...         _ = Path(folder, f"{name}.txt").write_text("a b\\nx y z\\n")
        ...     inputs, half = f"{folder}/*.txt", FilterWork(threads=1, shard="1/2")
        ...     lmgauge.filter_documents({"m": model}, inputs, f"{folder}/out/", max_perplexity=3, work=half).files
        1
    """

    heading: ClassVar[str] = "Resources"
    threads: Count | None = None
    workers: Count | None = None

    def share(self, jobs: list[_T]) -> list[_T]:
        """Return those jobs that the shard has; all of them without one."""
        return jobs[self.shard.number - 1 :: self.shard.of] if isinstance(self.shard, Shard) else jobs


# -- selection --------------------------------------------------------------------------------------------------------------
@settings
class SelectionSettings:
    """How documents are selected; see `lmgauge.select_documents`.

    Attributes:
        share: select this share of the pool, by bytes, such as 10%.
        max_difference: select documents that differ by at most this, in bits per token.
        order: order of the models that score.
        smoothing: smoothing of the models that score.
        tokenizer: whitespace, treebank, character, byte, icu, or the path of a tokenizer.json.
        min_count: words that occur less often in the target are <unk> to all models.
        seed: same seed, same samples of the pool.

    Raises:
        UsageError: a number is out of range, or both `share` and `max_difference` are given.

    Example:
        >>> SelectionSettings(share=0.1).order
        3
    """

    heading: ClassVar[str] = "How much"
    share: Annotated[float, Bounds(0, 1, open_least=True)] | None = None
    max_difference: Annotated[float, Bounds(-1000, 1000)] | None = None
    order: Annotated[int, Bounds(1, 64)] = 3
    smoothing: ProperSmoothing = "modified-kneser-ney"
    tokenizer: str | Tokenizer = "whitespace"
    min_count: Count = 2
    seed: Natural = DEFAULT_SEED

    def __post_init__(self) -> None:
        if self.share is not None and self.max_difference is not None:
            raise UsageError("share and max-difference both say how much is selected; give one of them")

    def training(self, words: tuple[str, ...] | None = None) -> NgramTrainingSettings:
        """Return the settings of the models over these words; of the one of the in-domain text, which finds them, if None.

        A `<unk>` or `<s>` in a text is an ordinary word, so that no text of the pool stops the work.
        """
        from lmgauge.models.ngram.settings import NgramTrainingSettings

        return NgramTrainingSettings(
            self.smoothing,
            order=self.order,
            tokenizer=self.tokenizer,
            words=words,
            min_count=self.min_count if words is None else 1,
            reserved="escape",
        )


@settings
class PoolReading(ReadingOptions):
    """How the texts of a selection are read: what cannot be used is left out and counted.

    Example:
        >>> PoolReading(field="body").errors
        'skip'
    """

    errors: ErrorPolicy = "skip"
