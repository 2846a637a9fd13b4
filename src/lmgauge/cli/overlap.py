"""What `lmgauge overlap` does besides calling its verb: the last text is the test, shards, a gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lmgauge.api.types import PathLike, Text
from lmgauge.cli.derive import Call
from lmgauge.cli.say import Page, say
from lmgauge.declaration import verb
from lmgauge.option_numbers import Bounds, Count
from lmgauge.text.overlap.settings import OverlapSettings
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.cluster.running import FinishedShard


@verb
def share(
    train: Text,
    test: Text,
    *,
    shard: str | None = None,
    output: PathLike | None = None,
    threads: Count | None = None,
    settings: OverlapSettings = OverlapSettings(),
    reading: ReadingOptions = ReadingOptions(),
    **fields: Any,
) -> FinishedShard:
    """Compute one share of an overlap.

    Args:
        shard: compute share I of N only; into a folder of its own in -o DIR, unless it is complete there; slurm: by SLURM's
            variables. `lmgauge merge DIR` puts all shares together.
        output: folder of all shards, with --shard.
    """
    from lmgauge.api.inputs import corpus_of, refuse_field
    from lmgauge.api.overlap import without_groups
    from lmgauge.cluster.overlap import OverlapJob
    from lmgauge.cluster.running import run_shard
    from lmgauge.cluster.shard import Shard

    if output is None:
        raise click.UsageError("--shard needs a folder for the shards: -o DIR")
    which = Shard.parse(str(shard))
    training, corpus = corpus_of(train, without_groups(reading), alone=False), corpus_of(test, reading, alone=False)
    refuse_field(reading, training, corpus)
    return run_shard(OverlapJob(training, corpus, settings, threads), which.number - 1, which.of, output)


def overlap(call: Call) -> None:
    """Find overlap, or a share of it."""
    from lmgauge.report import overlap as report

    train, test = call["train"], call["test"] or ()
    if not test and len(train) > 1:
        train, test = train[:-1], train[-1:]
    if (*test, *train).count("-") > 1:
        raise click.UsageError("standard input (-) is named twice, but can be read only once")
    if not test and call["run"] is None:
        raise click.UsageError(
            f"{train[0]} is one text: name the training text and the test, or a run of the test with --run"
        )
    texts = {"train": train, "test": test or None}
    if call["shard"] is not None:
        call.refuse(("run", "write_clean", "max_overlap", "html"), "does not go with --shard")
        call.answer(call(share, **texts))
        return
    call.refuse(("output",), "is for shards: name one with --shard")
    most = call["max_overlap"]
    if most is not None:
        Bounds(0, 1).check("max-overlap", most)
    result = call(**texts, max_overlap=None)
    call.answer(result, page=Page("Overlap of training and test text", report.page(result)))
    if call["write_clean"] is not None and not call.as_json:
        say(f"{call['write_clean']}: {result.clean_segments:,} of {result.segments:,} segments")
    if most is not None:
        result.require(most)
