"""Options that several commands share, worded once; `lmgauge.cli.command` says how a command declares them.

Two groups arrive as one object: `reading_settings()` as `reading: ReadingOptions` (how texts are read) and
`scoring_settings()` as `scoring: ScoringOptions` (how models score). Both take further options of the same object:
`reading_settings(document_option, id_option)`, `scoring_settings(reserved_option)`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lmgauge.choices import (
    ARPA_ENDINGS,
    DEFAULT_SEED,
    ERROR_POLICIES,
    FIRST_TOKENS,
    FORMATS,
    KENLM_ENDINGS,
    NORMALIZERS,
    PRECISIONS,
    RESERVED_POLICIES,
    SEGMENT_ENDS,
    UNITS,
)
from lmgauge.cli.command import CommaList, refuse_given, settings, under, whole_number
from lmgauge.models.network.options import ScoringOptions
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.cluster.job import Job
    from lmgauge.cluster.shard import Shard
    from lmgauge.text.documents import Corpus

Decorator = Callable[[Callable[..., None]], Callable[..., None]]

# -- how texts are read -------------------------------------------------------------------------------------------------
unit_option = click.option(
    "--unit",
    type=click.Choice(UNITS),
    default="line",
    help="A segment is a line, or a whole file.",
)
_TEXT = (
    unit_option,
    click.option("--field", default="text", metavar="NAME", help="Field or column that holds the text of a record."),
    click.option(
        "--group",
        default="file",
        metavar="NAME",
        help="The group of a segment: its file, or this field.",
    ),
    click.option("--format", type=click.Choice(FORMATS), help="Format of all texts; by their names if not given."),
    click.option(
        "--errors",
        type=click.Choice(ERROR_POLICIES),
        default="fail",
        help="Invalid UTF-8 and NUL bytes: stop, replace by U+FFFD, or leave out the segment (skip: also a record "
        "without text or with bad JSON).",
    ),
)
document_option = click.option(
    "--document",
    metavar="RULE",
    help="What is independent: file, segment, unknown, blank-line, heading, or this field; if not given, each of several "
    "text files.",
)

id_option = click.option(
    "--id",
    metavar="NAME",
    help="Field or column with the id of a record, for files of rows; its file and line, if not given.",
)


def reading_settings(*more: Callable[[Any], Any]) -> Decorator:
    """Return the decorator for how texts are read; the command gets `reading`, a `ReadingOptions`.

    Args:
        more: further options called as fields of `ReadingOptions`.
    """
    return settings("reading", ReadingOptions, "Text", *_TEXT, *more)


def read_texts(texts: Sequence[str], reading: ReadingOptions, *, alone: bool = True) -> Corpus:
    """Return the corpus of files, globs or -; of standard input if there are none.

    Args:
        texts: paths as the user wrote them.
        reading: how to read them.
        alone: False where several corpora share the options; then call `refuse_field` with all of them.

    Raises:
        InputError: a file is missing.
        click.UsageError: --field for plain text.
    """
    from lmgauge.text.documents import Corpus

    corpus = Corpus.read(list(texts) or ["-"], reading)
    if alone:
        refuse_field(corpus)
    return corpus


def model_among(texts: Sequence[str]) -> str | None:
    """Return the first path that is a model where texts are named; None if there is none."""
    return next((text for text in texts if _is_model(text)), None)


def models_and_texts(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the paths before the first that is not a model, and those from there on.

    Args:
        paths: models, then texts, as the user wrote them.
    """
    first = next((i for i, path in enumerate(paths) if not _is_model(path)), len(paths))
    return list(paths[:first]), list(paths[first:])


def _is_model(path: str) -> bool:
    """Return True for a model's folder, a file called as GGUF, ARPA and KenLM files are, and the address of a server."""
    named = path.endswith((".gguf", *ARPA_ENDINGS, *KENLM_ENDINGS)) or path.startswith(("http://", "https://"))
    return named or Path(path, "config.json").is_file()


def refuse_field(*corpora: Corpus | None) -> None:
    """Refuse --field where no text has fields.

    Raises:
        click.UsageError: it was given, and all texts are plain.
    """
    sources = [source for corpus in corpora if corpus is not None for source in corpus.sources]
    if all(source.format == "text" for source in sources):
        refuse_given(("field",), "names a field of records, and the text is plain; leave it out, or add --format")


# -- how models score ---------------------------------------------------------------------------------------------------
def _context(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    from lmgauge.models.network.options import parse_context

    context, ctx.params["stream"] = (None, None) if value is None else parse_context(value)
    return context


normalizer_option = click.option(
    "--normalizer",
    type=click.Choice(NORMALIZERS),
    help="What is done to the text before it is cut into tokens; ccnet: small letters, no accents, 0 for digits, ASCII "
    "punctuation, no control characters.",
)
_OF_FILES = (
    click.option(
        "--tokenizer",
        metavar="NAME|FILE",
        help="How text was cut into the words of an ARPA file or a KenLM binary: whitespace, treebank, character, byte, "
        "icu, a tokenizer.json or a SentencePiece .model.  [default: whitespace]",
    ),
    normalizer_option,
)
_SCORING = (
    *(under("ARPA and KenLM files", option) for option in _OF_FILES),
    click.option(
        "--context",
        metavar="N|sentence|stream",
        callback=_context,
        help="Most tokens a prediction sees; stream runs on over segments (stream,1024: both).",
    ),
    whole_number("--stride", help="Tokens from one window to the next; the context if not given."),
    click.option(
        "--first-token",
        type=click.Choice(FIRST_TOKENS),
        help="What the first token is predicted from; bos where the model has it, else uniform.",
    ),
    click.option(
        "--bos-each-window",
        is_flag=True,
        default=None,
        help="Begin every window with the BOS token, in the place of its first token.",
    ),
    click.option(
        "--end",
        type=click.Choice(SEGMENT_ENDS),
        help="What ends a line; eos for models trained here, for others their own newline.",
    ),
    click.option(
        "--dtype",
        type=click.Choice(PRECISIONS),
        default="auto",
        help="Number format of the computation; auto is bfloat16 on a GPU.",
    ),
    click.option("--device", metavar="NAME", help="cpu, cuda, cuda:1, ...; a GPU where there is one."),
    whole_number("--batch-tokens", help="Tokens at a time; by free memory if not given. Changes rounding only."),
    click.option("--trust-remote-code", is_flag=True, help="Let code that comes with a model run."),
    click.option(
        "--bos",
        metavar="TEXT",
        help="Servers: text set before each segment, so that its first token has a score, such as '<s>'.",
    ),
)


reserved_option = click.option(
    "--reserved",
    type=click.Choice(RESERVED_POLICIES),
    help="A <unk>, <s> or </s> in the text: stop (refuse), read it as an ordinary word (escape), or read <unk> as the "
    "unknown word (unk); if not given, as in training.",
)


def scoring_settings(*more: Callable[[Any], Any]) -> Decorator:
    """Return the decorator for how neural models score; the command gets `scoring`, a `ScoringOptions`.

    Args:
        more: further options called as fields of `ScoringOptions`.
    """
    return settings("scoring", ScoringOptions, "Neural models", *_SCORING, *more)


# -- alike in all commands ----------------------------------------------------------------------------------------------
threads_option = whole_number(
    "--threads",
    help="Threads to use; all cores if not given (one to train narrow recurrent models). No result depends on it but the "
    "last bits of neural models.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, full precision.")


def html_option(command: Callable[..., None]) -> Callable[..., None]:
    """Declare --html; what would stop the page is said before the work begins.

    The command gets `html`, the file or None, and hands it to `lmgauge.cli.say.answer`.
    """

    @wraps(command)
    def checked(*arguments: Any, html: str | None, **values: Any) -> None:
        if html is not None:
            _check_page(html)
        command(*arguments, html=html, **values)

    words = "Also write a page to look at in a browser, one file with charts."
    return click.option("--html", type=click.Path(dir_okay=False), metavar="FILE", help=words)(checked)


_OUTPUTS = {"rows": "--rows", "write_clean": "--write-clean"}


def _check_page(html: str) -> None:
    """Refuse a page that cannot be made, or that would replace what the running command reads or writes.

    Raises:
        click.UsageError: it is -.
        MissingExtraError: what draws pages is not installed.
        UsageError: it would replace something.
    """
    from lmgauge.files import refuse_replacing
    from lmgauge.report.page import check_installed

    if html == "-":
        raise click.UsageError("--html needs a file: standard output is for what is printed")
    values = dict(click.get_current_context().params)
    del values["html"]
    outputs = {words: values.pop(name, None) for name, words in _OUTPUTS.items()}
    refuse_replacing({**outputs, "--html": html}, list(_paths(values.values())))
    check_installed()


def _paths(values: Iterable[object]) -> Iterator[str]:
    """Yield all that could be a path in the values of options: paths, what globs stand for, and runs of recipes."""
    for value in values:
        if isinstance(value, tuple):
            yield from _paths(value)
        elif isinstance(value, str):
            yield value
            yield from glob(value)
            yield from value.partition("=")[2].split(",")


def _shard(ctx: click.Context, param: click.Parameter, value: str | None) -> Shard | None:
    from lmgauge.cluster.shard import Shard

    return None if value is None else Shard.parse(value)


shard_option = click.option(
    "--shard",
    metavar="I/N|slurm",
    callback=_shard,
    help="Compute share I of N only, into a folder of its own in -o DIR, unless it is complete there; slurm: by SLURM's "
    "variables. lmgauge merge DIR puts all shares together.",
)

shards_folder_option = click.option(
    "-o", "--output", "folder", type=click.Path(), metavar="DIR", help="With --shard: the folder of all shards."
)


def run_shard(job: Job, shard: Shard, output: str | os.PathLike[str] | None, *, as_json: bool) -> None:
    """Compute one shard of a job and say where it is.

    Args:
        job: the job.
        shard: which share.
        output: the folder of all shards, as the user named it.
        as_json: print JSON.

    Raises:
        click.UsageError: no folder is named.
        LmgaugeError: what computing raises.
    """
    from lmgauge.cli.say import answer, showing_progress
    from lmgauge.cluster.running import run_shard as run
    from lmgauge.report import shards

    if output is None:
        raise click.UsageError("--shard needs a folder for the shards: -o DIR")
    with showing_progress():
        result = run(job, shard.number - 1, shard.of, output)
    answer(result, lambda: shards.blocks(result), as_json=as_json)


seed_option = whole_number("--seed", least=0, default=DEFAULT_SEED, help="Same seed, same output.")


KENLM = (
    click.option("--trie", is_flag=True, help="A trie: smaller than a probing table, and slower."),
    click.option(
        "--quantize",
        type=CommaList(int, "8,8"),
        metavar="BITS,BITS",
        help="Of a trie: bits of a probability and of a back-off weight, e.g. 8,8.  [default: exact]",
    ),
    click.option(
        "--array",
        type=click.IntRange(0, 25),
        metavar="BITS",
        help="Of a trie: compress pointers, by at most this many bits, e.g. 22; slower.",
    ),
)
"""How a binary file of KenLM is laid out: the fields of `KenlmForm`."""
