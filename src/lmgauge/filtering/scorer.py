"""Scores documents in batches, for programs that handle tables: the function under `filter` and `score`."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.base.choices import BadRecordPolicy
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.threads import OfProcess
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.filtering.documents import FIGURES, Documents, DocumentScores, DocumentSums, labels_of, split_lines
from lmgauge.filtering.options import RecordOptions
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import Backend, LanguageModel, completed
from lmgauge.models.registry import load_model, model_names
from lmgauge.models.segment_scores import sum_segments
from lmgauge.numerics.signature import Signature, text_parts
from lmgauge.records.records import name_taken
from lmgauge.text.vocabulary import SPECIAL_TOKENS
from lmgauge.text.work_units import pieces

if TYPE_CHECKING:
    import pyarrow as pa

Model = Backend | str | os.PathLike[str]

CHOSEN = "lm"
"""The name of the columns where a field of the document chooses the model."""
ANY = "*"
"""Stands for all values of that field that have no model of their own."""
PROBLEM_COLUMN = "score_problem"
_RESERVED = re.compile("|".join(rf"(?<!\S){re.escape(word)}(?!\S)" for word in SPECIAL_TOKENS).encode())


class Scorer:
    """Scores documents with one or more models; it can be sent to other processes, and loads its models once in each.

    Models named by path are mapped into memory, so that all processes of a machine share their tables.

    Args:
        model: a model or its path; a mapping from names to several; with `by` a mapping from values of that field, "*" for
            all others.
        field: the field or column with the text.
        lines: each line of a document is a sentence of its own; by default a document is one segment, as in CCNet, so that
            figures are those of `eval --per-segment`.
        by: the field or column whose value chooses the model, such as the language.
        errors: "reject" gives what cannot be scored a reason in place of figures; "fail" raises.
        scoring: how models score; see `ScoringOptions`. In `tokenizer`, "{name}" stands for the name of the model.
        threads: how many; does not change figures of n-gram models.

    Attributes:
        settings: how records are read, which decides the figures.
        names: of the models, as columns begin: `lm` where a field chooses.
        threads: how many; None for one per core.

    Raises:
        UsageError: there is no model, or `by` without a mapping.
        ModelFileError: a model cannot be loaded; raised when it is first used.

    Example:
        >>> import lmgauge, pyarrow as pa
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> table = pa.table({"id": [1, 2], "text": ["a b", "b"]})
        >>> scored = Scorer({"lap2": model}).score_batch(table)
        >>> scored.column_names[2:5], scored["lap2_tokens"].to_pylist()
        (['lap2_bits', 'lap2_bits_per_byte', 'lap2_perplexity'], [3, 2])
    """

    def __init__(
        self,
        model: Model | Mapping[str, Model],
        *,
        field: str = "text",
        lines: bool = False,
        by: str | None = None,
        errors: BadRecordPolicy = "reject",
        scoring: ScoringOptions | None = None,
        threads: int | None = None,
    ) -> None:
        self.settings = RecordOptions(field, lines, by, errors=errors)
        self._models = dict(model) if isinstance(model, Mapping) else {"": model}
        if not self._models:
            raise UsageError("there is no model to score with")
        for one in self._models.values():
            if not isinstance(one, (str, os.PathLike)):
                completed(one)
        if odd := next((name for name in self._models if by is None and not name.isprintable()), None):
            raise UsageError(f"the model name {odd!r} holds a tab or another control character, and columns begin with it")
        if by is not None and not isinstance(model, Mapping):
            raise UsageError(
                f'by={by!r} chooses among models by that field: give them as {{"en": "en/", "de": "de/", "*": ...}}'
            )
        self._scoring, self.threads = scoring or ScoringOptions(), threads

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "models"}

    @cached_property
    def models(self) -> dict[str, LanguageModel]:
        """The models by name, or with `by` by the value that chooses them; loaded on first use."""
        named = list(self._models.values())
        opened = [
            model_at(one, _of_name(self._scoring, name)) if isinstance(one, (str, os.PathLike)) else completed(one)
            for name, one in self._models.items()
        ]
        names = list(self._models) if list(self._models) != [""] else model_names(named, opened)
        return dict(zip(names, opened, strict=True))

    @property
    def loads_by_path(self) -> bool:
        """Whether every model was named by its path, so that other processes and machines can load it."""
        return all(isinstance(one, (str, os.PathLike)) for one in self._models.values())

    @property
    def names(self) -> list[str]:
        """The names of the models, as columns begin."""
        return [CHOSEN] if self.settings.by is not None else list(self.models)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns that scores are put into."""
        return [f"{name}_{figure}" for name in self.names for figure in FIGURES]

    @property
    def signatures(self) -> dict[str, str]:
        """What was decided about the figures of each model, one line each, by the names in `models`."""
        return {name: self._signature(model) for name, model in self.models.items()}

    def _signature(self, model: LanguageModel) -> str:
        policy = model.context_policy
        parts = {
            **text_parts(model.tokenizer.unit, getattr(model.tokenizer, "normalizer", None)),
            "eos": "yes" if policy.end == "eos" else "no",
            **({"oov": "spelled"} if model.is_spelled else {}),
            "context": str(policy),
            "documents": "lines" if self.settings.lines else "whole",
            "vocab": model.vocabulary.fingerprint[:6],
            "model": f"{model.label}@{model.fingerprint[:6]}",
            "v": NUMBERS_VERSION,
        }
        return str(Signature(parts, head="doc"))

    def score_texts(self, texts: Sequence[str | bytes | None], values: Sequence[str | None] | None = None) -> DocumentScores:
        """Score strings, each a document.

        Args:
            texts: strings, or their bytes in UTF-8; None where there is no text.
            values: with `by` the value of each that chooses its model.

        Raises:
            InputError: one cannot be scored, and errors are to "fail".
            UsageError: `texts` is a single string.

        Example:
            >>> import lmgauge
            >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
            >>> scores = Scorer({"lap2": model}).score_texts(["a b", None])
            >>> scores.columns()["lap2_bits_per_byte"].round(4).tolist(), scores.problem_texts()
            ([1.3023, nan], [None, 'no text: null'])
        """
        if isinstance(texts, (str, bytes)):  # whose characters would be texts
            raise UsageError("texts is one string: give a list of strings")
        return self.score_documents(Documents.of(texts), values)

    def score_documents(self, documents: Documents, values: Sequence[str | None] | None = None) -> DocumentScores:
        """Score the documents of a batch.

        Args:
            documents: valid texts, and what is wrong with the others.
            values: with `by` the value of each document that chooses its model.

        Returns:
            The bytes of each document and, under each model, its nats, events and unseen words.

        Raises:
            InputError: one cannot be scored, and errors are to "fail".
            UsageError: `by` without values.
        """
        problems = dict(documents.problems)
        sums = {name: DocumentSums.nothing(documents.count) for name in self.names}
        for name, model, own in self._shared_out(documents, values, problems):
            self._add(sums[name], model, own, problems)
        if problems and self.settings.errors == "fail":
            row = min(problems)
            raise InputError(f"{documents.segments.source}, document {row + 1}: {': '.join(problems[row])}")
        return DocumentScores(documents.byte_counts(), sums, problems)

    def _shared_out(
        self, documents: Documents, values: Sequence[str | None] | None, problems: dict[int, tuple[str, str]]
    ) -> Iterator[tuple[str, LanguageModel, Documents]]:
        # Which documents each model scores, and under which name; one without a model is noted.
        if self.settings.by is None:
            yield from ((name, model, documents) for name, model in self.models.items())
            return
        if values is None:
            raise UsageError(f"the field {self.settings.by!r} chooses the model: give its values")
        known = {value: number for number, value in enumerate(self.models)}
        default = known.get(ANY, -1)
        chosen = np.array([known.get(value, default) if value is not None else default for value in values], np.int64)
        chosen = chosen[documents.rows]
        for row in documents.rows[chosen < 0].tolist():
            problems[row] = "no model", f"{self.settings.by} is {values[row]!r}"
        for number, model in enumerate(self.models.values()):
            yield CHOSEN, model, documents.only(chosen == number)

    def _add(
        self, sums: DocumentSums, model: LanguageModel, documents: Documents, problems: dict[int, tuple[str, str]]
    ) -> None:
        # Add the sums of documents under a model; one that it refuses is noted.
        segments, owner = split_lines(documents.segments) if self.settings.lines else (documents.segments, None)
        rows = documents.rows if owner is None else documents.rows[owner]
        begin = 0
        try:
            parts = list(sum_segments(model, pieces(segments), threads=self.threads))
        except InputError as error:
            if len(documents.rows) == 1:
                problems[int(documents.rows[0])] = "refused by the model", str(error).partition(": ")[2]
                return
            for some in _apart(documents):
                self._add(sums, model, some, problems)
            return
        for part in parts:
            sums.add(rows[begin : begin + len(part)], part)
            begin += len(part)

    def score_batch(self, table: pa.Table) -> pa.Table:
        """Return a table with the columns of the scores appended; its rows and columns stay as they are.

        Args:
            table: with the text in a column of strings, and with `by` a column of values.

        Returns:
            The table with, for a model called NAME, `NAME_bits` (float64, of the possible events), `NAME_bits_per_byte`,
            `NAME_perplexity` (inf where an event is impossible, null without events), `NAME_tokens` (int64, `</s>`
            included), `NAME_unseen` (share of unseen words, 0 to 1); and `score_problem`, null or why there are no figures.

        Raises:
            InputError: there is no such column, or one of these names is taken; a document cannot be scored, and errors
                are to "fail".

        Example:
            >>> import lmgauge, pyarrow as pa
            >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
            >>> scored = Scorer({"lap2": model}).score_batch(pa.table({"text": ["a b", None]}))
            >>> scored["lap2_tokens"].to_pylist(), scored["score_problem"].to_pylist()
            ([3, None], [None, 'no text: null'])
        """
        return self.with_columns(table, self.score_table(table))

    __call__ = score_batch

    def score_table(self, table: pa.Table) -> DocumentScores:
        """Score the documents of a table.

        Args:
            table: as in `score_batch`.

        Returns:
            The bytes of each document and, under each model, its nats, events and unseen words.

        Raises:
            InputError: as in `score_batch`.
        """
        if not hasattr(table, "column_names"):
            raise UsageError(f"documents come in Arrow tables, not {type(table).__name__}: ask for batches in that format")
        fields = [self.settings.field, *([] if self.settings.by is None else [self.settings.by])]
        for field in fields:
            if field not in table.column_names:
                names = ", ".join(map(repr, table.column_names[:8])) or "none"
                raise InputError(f"the table has no column {field!r}; the columns are {names}: name one of them")
        self.refuse_taken(table.column_names)
        values = None if self.settings.by is None else labels_of(table[self.settings.by])
        return self.score_documents(Documents.of_column(table[self.settings.field]), values)

    def with_columns(self, table: pa.Table, scores: DocumentScores) -> pa.Table:
        """Return a table with the columns of its scores (bits, bits per byte and so on, see `score_batch`) appended.

        Args:
            table: that was scored.
            scores: of its rows.
        """
        import pyarrow as pa

        for name, array in scores.arrow_columns().items():
            table = table.append_column(name, array)
        return table.append_column(PROBLEM_COLUMN, pa.array(scores.problem_texts(), pa.string()))

    def arrow_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of what `score_batch` makes of tables, for programs that ask for it beforehand.

        Args:
            schema: of the tables.

        Raises:
            InputError: as in `score_batch`: a column that is read is missing or holds other values, or a name is taken.

        Example:
            >>> import lmgauge, pyarrow as pa
            >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
            >>> Scorer({"lap2": model}).arrow_schema(pa.schema({"text": pa.string()})).names[-2:]
            ['lap2_unseen', 'score_problem']
        """
        return self.score_batch(schema.empty_table()).schema

    def map_arrow(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield scored record batches, as Spark's `mapInArrow` wants them.

        Args:
            batches: as `score_batch` takes tables.

        Raises:
            InputError: as in `score_batch`.

        Example:
            >>> import lmgauge, pyarrow as pa
            >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
            >>> batches = pa.table({"text": ["a b"]}).to_batches()
            >>> [batch["lap2_tokens"].to_pylist() for batch in Scorer({"lap2": model}).map_arrow(batches)]
            [[3]]
        """
        import pyarrow as pa

        for batch in batches:
            yield from self.score_batch(pa.Table.from_batches([batch])).combine_chunks().to_batches()

    def refuse_taken(self, names: Iterable[str]) -> None:
        """Refuse names of columns that scores would be put into.

        Raises:
            InputError: one of them is there.
        """
        taken = sorted({*self.column_names, PROBLEM_COLUMN}.intersection(names))
        if taken:
            raise name_taken("the table", taken[0])


def _of_name(scoring: ScoringOptions, name: str) -> ScoringOptions:
    """Return how a model scores: the name of its tokenizer may hold that of the model, as in `lm/{name}.sp.model`.

    >>> _of_name(ScoringOptions(tokenizer="lm/{name}.sp.model"), "en").tokenizer
    'lm/en.sp.model'
    """
    if not isinstance(scoring.tokenizer, str):
        return scoring
    return replace(scoring, tokenizer=scoring.tokenizer.replace("{name}", name))


def _apart(documents: Documents) -> list[Documents]:
    # Documents, of which a model has refused some, in parts: each with a reserved word alone, and the others.
    # Where that is all the same, two halves.
    numbers = np.arange(len(documents.rows))
    alone = [place for place in numbers.tolist() if _RESERVED.search(documents.segments.text(place))]
    if not alone or len(numbers) == 2:
        halves = numbers < len(numbers) // 2
        return [documents.only(halves), documents.only(~halves)]
    parts = [documents.only(numbers == place) for place in alone]
    return parts if len(alone) == len(numbers) else [*parts, documents.only(~np.isin(numbers, alone))]


# -- models by their path -----------------------------------------------------------------------------------------------
_State = tuple[tuple[str, int, int, int], ...]
_lock = OfProcess(threading.Lock)


def model_at(path: str | os.PathLike[str], options: ScoringOptions) -> LanguageModel:
    """Return the model at a path, loaded once in a process; another model that is saved there since is loaded anew."""
    # Raises ModelFileError: nothing is there, or it cannot be trusted.
    with _lock.value:
        return _loaded(os.path.abspath(path) if os.path.exists(path) else os.fspath(path), options, _state_of(Path(path)))


@lru_cache(maxsize=256)
def _loaded(path: str, options: ScoringOptions, state: _State) -> LanguageModel:
    return load_model(path, options)


def _state_of(path: Path) -> _State:
    # What tells the files of a model from others that replace them; nothing for a name of the hub.
    if not path.exists():
        return ()
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    stats = [(file.name, file.stat()) for file in files]
    return tuple((name, stat.st_ino, stat.st_mtime_ns, stat.st_size) for name, stat in stats)
