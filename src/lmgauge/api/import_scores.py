"""`lmgauge.import_scores`: a run of what another program scored."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmgauge.api.inputs import PATHS, PathLike, Text, refuse_output, text_read
from lmgauge.base.choices import LogUnit, Program
from lmgauge.base.declaration import verb
from lmgauge.base.errors import UsageError
from lmgauge.settings import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.results import Evaluation


@verb
def import_scores(
    files: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    program: Program | None = None,
    log_unit: LogUnit | None = None,
    logprob: str | None = None,
    text: Text | None = None,
    name: str = "",
    reading: ReadingOptions = ReadingOptions(),
    **fields: Any,
) -> Evaluation:
    """Make a run folder of what another program scored: `lmgauge import`.

    It reads logs of lm-evaluation-harness (--log_samples), vLLM, completions servers, llama.cpp's perplexity, SRILM
    (-debug 2), KenLM (query -v word) or minicons; or a table of tokens, whose column of scores `logprob` names.

    Args:
        files: output of the program: a path, or several, in the order of the text.
        output: run folder to write; `compare`, `audit`, `diagnose`, `report` and `explore` read it.
        program: the program that wrote the files; recognized by their content if not given. One of
            lm-evaluation-harness, vllm, openai, llama.cpp, srilm, kenlm, minicons, score-table.
        log_unit: unit of the scores, where neither the program nor the file says it.
        logprob: the column of a table with the log-probabilities of tokens; the table is CSV or TSV of no program, with a
            column token, word or piece, and perhaps one that tells sentences apart, such as segment or sentence_id.
        text: the text that was scored; gives tokens their places, and bits per word, character and byte.
        name: name of the model; that of the log or its file if empty.
        reading: how the text is read.
        fields: those of `reading`, by name.

    Returns:
        The numbers of the run. Its notes say what the program left out.

    Raises:
        InputError: a file is not what the program writes, or is not about the text; the message says where.
        UsageError: the unit of the scores is not known, files of several programs, or an output that would replace an input.

    Shell:
        lmgauge import query.txt --text test.txt -o run/
        lmgauge import tokens.csv --logprob model_a --log-unit nats -o a/

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
    from pathlib import Path

    from lmgauge.evaluation.imported_run import import_run
    from lmgauge.scores.imports.programs import open_logs

    paths = [files] if isinstance(files, PATHS) else files
    if not isinstance(paths, Sequence) or not all(isinstance(path, PATHS) for path in paths):
        raise UsageError(f"files are paths of what a program wrote, not {type(files).__name__}")
    if not isinstance(output, PATHS):
        raise UsageError(f"output is the path of a run folder, not {type(output).__name__}")
    corpus = text_read(text, reading)
    refuse_output(output, paths, corpus)
    logs = open_logs(list(map(Path, paths)), program, log_unit, logprob)
    return import_run(logs, os.fspath(output), corpus=corpus, name=name)
