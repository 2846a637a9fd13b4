"""What `lmgauge rescore` does besides calling its verb: files of what was chosen, and of all scores."""

from __future__ import annotations

from glob import glob
from typing import ClassVar

import click

from lmgauge.api.inputs import PathLike
from lmgauge.cli.derive import Call
from lmgauge.declaration import settings


@settings
class Written:
    """What is written.

    Attributes:
        output: file for the best hypotheses: id and words on a line, .trn (words and id), or .jsonl with scores.
        write_scores: file for all hypotheses with the scores of the models added, as JSONL.
    """

    heading: ClassVar[str] = "Output"
    output: PathLike | None = None
    write_scores: PathLike | None = None


def rescore(call: Call) -> None:
    """Rescore, write the files, and print the figures unless rows take their place."""
    from lmgauge.files import refuse_replacing
    from lmgauge.tasks.nbest.results import form_of_best

    output, scores = call["output"], call["write_scores"]
    if output is not None:
        form_of_best(output)
    several = (*call["nbest"], *(call["tune"] or ()), *call["model"])
    named = [path for path in (*several, call["ref"], call["test_ref"], call["document"]) if path is not None]
    if named.count("-") > 1:
        raise click.UsageError("standard input (-) is named twice, but can be read only once")
    if output == scores == "-":
        raise click.UsageError("-o - and --write-scores - would both be standard output")
    inputs = [*named, *(match for path in named for match in glob(path))]
    refuse_replacing({"-o": output, "--write-scores": scores}, inputs)
    result = call()
    if output is not None:
        result.write_best(output)
    if scores is not None:
        result.write_scores(scores)
    call.answer(result)
