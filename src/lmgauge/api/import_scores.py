"""`lmgauge.import_scores`: a run of what another program scored."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union, overload

from lmgauge.api.inputs import PATHS, PathLike, Text, refuse_output, text_read
from lmgauge.base.choices import LogUnit, Program
from lmgauge.base.declaration import verb
from lmgauge.base.errors import UsageError
from lmgauge.settings import ReadingOptions

if TYPE_CHECKING:
    from pandas import DataFrame

    from lmgauge import Corpus
    from lmgauge.results import Evaluation, Evaluations
    from lmgauge.scores.imports.log import LogFile

LoggedFiles = Union[PathLike, Sequence[PathLike], "DataFrame"]
"""What a program wrote."""


@overload
def import_scores(files: LoggedFiles, output: PathLike, *, logprob: str | None = None, **options: Any) -> Evaluation: ...
@overload
def import_scores(
    files: LoggedFiles, output: PathLike, *, logprob: list[str] | tuple[str, ...], **options: Any
) -> Evaluations: ...
@verb
def import_scores(
    files: LoggedFiles,
    output: PathLike,
    *,
    program: Program | None = None,
    log_unit: LogUnit | None = None,
    logprob: str | Sequence[str] | None = None,
    text: Text | None = None,
    name: str = "",
    reading: ReadingOptions = ReadingOptions(),
    **fields: Any,
) -> Evaluation | Evaluations:
    """Make a run folder of what another program scored: `lmgauge import`.

    It reads logs of lm-evaluation-harness (--log_samples), vLLM, completions servers, llama.cpp's perplexity, SRILM (-debug
    2), KenLM (query -v word) or minicons; or a table of tokens, with `logprob` naming its column of scores. With --score it
    reads the scores of a task's items instead, as harnesses log them: `lmgauge.tasks.import_items`.

    Args:
        files: output of the program: a path, or several, in the order of the text; in Python also a data frame.
        output: run folder to write; one of runs, one for each of several columns; `compare`, `audit`, `diagnose`,
            `report` and `explore` read it.
        program: the program that wrote the files; recognized by their content if not given. One of
            lm-evaluation-harness, vllm, openai, llama.cpp, srilm, kenlm, minicons, score-table.
        log_unit: unit of the scores, where neither the program nor the file says it.
        logprob: column with the log-probabilities of tokens, in a table of your own; several columns are one model each.
            Each row is an event; the table may have a column token, word or piece, one for sentences, such as segment or
            sentence_id, and one for documents, such as document or doc_id.
        text: the text that was scored; gives tokens their places, and bits per word, character and byte.
        name: name of the model; taken from the log or its file name if empty.
        reading: how the text is read.
        fields: those of `reading`, by name.

    Returns:
        The numbers of the run, `Evaluations` of a list of columns; `compare` takes these. Their notes say what the
        program left out.

    Raises:
        InputError: a file is not what the program writes, or is not about the text; the message says where.
        UsageError: the unit of the scores is not known, files of several programs, or an output that would replace an input.

    Shell:
        lmgauge import query.txt --text test.txt -o run/
        lmgauge import tokens.csv --logprob a --logprob b --log-unit nats -o runs/

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log, text = Path(folder, "query.txt"), Path(folder, "text.txt")
        ...     _ = log.write_text("the=3 2 -0.5\\tcat=4 2 -1.5\\t</s>=2 1 -1\\t", encoding="utf-8")
        ...     _ = text.write_text("the cat\\n", encoding="utf-8")
        ...     import_scores(log, f"{folder}/run", text=text, name="trigram")
        <Evaluation: trigram: perplexity 10.0000, 1.2457 bits per byte>
    """
    from lmgauge.evaluation.imported_run import import_runs
    from lmgauge.evaluation.results import Evaluations
    from lmgauge.scores.imports.log import NoLogprobsError
    from lmgauge.scores.imports.programs import open_logs
    from lmgauge.tasks.items.logs import names_of_scores

    if (corpus := text_read(text, reading)) is not None:
        corpus.refuse_once("an import reads the text more than once")
    logged = log_files(files, output, corpus)
    if logprob is None or isinstance(logprob, str):
        try:
            return import_runs([open_logs(logged, program, log_unit, logprob)], os.fspath(output), corpus, name)[0]
        except NoLogprobsError as error:
            if not (names := names_of_scores(logged)):
                raise
            known = f"scores of items: name one with --score ({', '.join(names)})"
            raise UsageError(f"{logged[0].path}: has no log-probabilities of texts, but {known}") from error
    if name:
        raise UsageError("a name is of one model, and each column of several has its own: leave it out")
    tables = zip(*(file.for_each(len(logprob)) for file in logged), strict=True)
    each = [open_logs(files, program, log_unit, column) for column, files in zip(logprob, tables, strict=True)]
    return Evaluations(tuple(import_runs(each, os.fspath(output), corpus)))


def log_files(files: LoggedFiles, output: PathLike, text: Corpus | None = None) -> list[LogFile]:
    """Return what a program wrote as files to read; refuse an output that would replace one of them, or the text."""
    from pathlib import Path

    from lmgauge.scores.imports.log import LogFile

    frame = hasattr(files, "columns")
    paths = [] if frame else [files] if isinstance(files, PATHS) else files
    if not isinstance(paths, Sequence) or not all(isinstance(path, PATHS) for path in paths):
        raise UsageError(f"files are paths of what a program wrote, or a data frame, not {type(files).__name__}")
    if not isinstance(output, PATHS):
        raise UsageError(f"output is the path of a run folder, not {type(output).__name__}")
    refuse_output(output, paths, text)
    if not frame:
        return [LogFile(Path(path)) for path in paths]
    import pyarrow as pa

    return [LogFile(Path("data frame"), pa.table(files))]
