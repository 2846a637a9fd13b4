"""Commands made of what verbs declare: a row of `lmgauge.cli.commands`, and the verb's signature and docstring.

Derived are the options with their types, choices, bounds, defaults, words and headings, the arguments, the page of help and
the call of the verb. By hand are a row, and the tables below: spellings, headings of single options, parsers of odd values.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, get_args, get_origin

import click
from click.core import ParameterSource

from lmgauge.base.declaration import REQUIRED, Option, options_of, own_keywords, section_of
from lmgauge.base.option_numbers import Bounds
from lmgauge.cli.commands import COMMANDS, Row, imported
from lmgauge.cli.odd_values import NAMED_NUMBERS, NUMBER, PARSERS, CommaList, KindChoice, Parsed

SHORT = {"output": "-o", "model": "-m", "models": "-m", "count": "-n", "x": "-x", "y": "-y"}
SHORT |= {"width": "-w", "score_only": "-b", "reference": "-r", "test_set": "-t", "language_pair": "-l", "plus_plus": "-p"}
"""Names of one letter."""
SPELLINGS = {"num_layers": "layers", "models": "model", "n": "ngram", "base_file": "save-base"}
SPELLINGS |= {"recipes": "recipe", "pairs": "pair"}
"""Keywords that the command line spells otherwise."""
OFF = {"interpolate": "--back-off"}
"""What turns an option off, where it is not --no- and its name."""
HEADINGS = {
    "valid": "Neural models",
    **dict.fromkeys(("output", "vega", "figures", "details", "rows", "write_scores"), "Output"),
    "seed": "Statistics",
    "threads": "Resources",
    "reference": "Text",
}
"""Of keywords that do not stand under the heading of their settings, or under "Options"."""
METAVARS = {
    "buckets": "pA,pB",
    "context": "N|stream",
    "cross_entropy": "NATS",
    "document": "RULE",
    "memory": "SIZE",
    "output": "PATH",
    "recipes": "NAME=RUN,RUN",
    "run": "RUN",
    "shard": "I/N|slurm",
    **dict.fromkeys(("bos", "prompt", "title"), "TEXT"),
    **dict.fromkeys(("figures", "temp", "vega"), "DIR"),
    **dict.fromkeys(("model", "models"), "MODEL"),
}
"""What the help calls the value of an option, where neither a row nor its type says it."""
NOT_OFFERED = {"block_bytes", "chooser", "fields", "join", "keep_bom", "lists", "progress", "stream", "watch"}
"""What only programs can say."""
_PRINTED = {
    ("-v", "--verbose", "whole"): "All notes, all examples, and the signature.",
    ("--signature", "signatures"): "Also print the signature: one line with everything that affects the numbers.",
    ("--csv",): "Print tables as CSV.",
    ("--latex",): "Print tables as LaTeX (booktabs).",
    ("--markdown",): "Print tables as Markdown.",
}
"""What is offered beside --json wherever a command prints tables."""
_NAMES, _WHOLE = 30, "help_in_full"
_FORMS = ("json", "csv", "latex", "markdown")
_ROWS = ("output", "rows", "write_scores", "per_context", "per_segment", "per_token", "per_word")
_WRITTEN = ("rows", "write_clean")  # besides the output and the page


@lru_cache
def declared(verbs: tuple[str, ...]) -> list[Callable[..., Any]]:
    """Return the verbs of a row, imported now."""
    return [imported(path) for path in verbs]


@lru_cache
def declared_options(verbs: tuple[str, ...]) -> dict[str, Option]:
    """Return what the verbs of a row declare, each name once; what not all verbs ask for can be left out."""
    each = [options_of(verb) for verb in declared(verbs)]
    called = [options for options, path in zip(each, verbs, strict=True) if not path.startswith("cli.")]
    needed = set.intersection(*({one.name for one in options if one.default is REQUIRED} for options in called or each))
    options: dict[str, Option] = {}
    for one in chain(*each):
        free = one.default is REQUIRED and one.name not in needed
        options.setdefault(one.name, one._replace(default=None) if free else one)
    return options


class Call:
    """What a user wrote: the values of options by their keywords, and what the command does with them."""

    def __init__(self, row: Row, context: click.Context) -> None:
        self.row, self.context = row, context
        of_user = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
        self.values = {
            name: value for name, value in context.params.items() if context.get_parameter_source(name) in of_user
        }
        forms = [form for form in _FORMS if self.values.pop(form, False)]
        if len(forms) > 1:
            raise click.UsageError(f"--{forms[0]} and --{forms[1]} are two forms of the same result: choose one", context)
        self.form = forms[0] if forms else None
        self.as_json = self.form == "json"
        self.printed = {name: bool(self.values.pop(name, False)) for name in ("whole", "signatures")}
        self.html: str | None = self.values.pop("html", None)
        if row.stdin and not self.values.get(row.stdin) and "counts" not in self.values:
            is_text = row.stdin.startswith("text") and "scores" not in self.values
            self.values[row.stdin] = self.piped_text() if is_text else ("-",)

    def __getitem__(self, name: str) -> Any:
        """Return the value of an option, its default where the user wrote none."""
        return self.values[name] if name in self.values else declared_options(self.row.verbs)[name].default

    def __call__(self, verb: Callable[..., Any] | None = None, /, **more: Any) -> Any:
        """Return what a verb makes of the values that it knows; it shows on standard error how far it is.

        Args:
            verb: the first of the row if None.
            more: keywords in place of the user's.
        """
        from lmgauge.base.progress import listening
        from lmgauge.report.progress import progress

        called = verb or declared(self.row.verbs)[0]
        known = own_keywords(called).keys() | fields_of(called)
        with progress(in_lines=bool(self.aside)) as listener, listening(listener):
            return called(**{name: value for name, value in (self.values | more).items() if name in known})

    def piped_text(self) -> tuple[str]:
        """Return the path of standard input, for a text that was not named.

        Raises:
            click.UsageError: it is a terminal, where nobody knows that a text is waited for.
        """
        if sys.stdin is not None and sys.stdin.isatty():
            raise click.UsageError("no text was named; give a file, or - for standard input", self.context)
        return ("-",)

    @property
    def aside(self) -> list[str]:
        """Return the options whose rows stand on standard output in place of what is shown."""
        return [name for name in _ROWS if self.values.get(name) == "-"]

    def refuse(self, names: Collection[str], reason: str) -> None:
        """Refuse options that do not apply to what was chosen: none is ignored in silence.

        Raises:
            click.UsageError: the user gave one of them; the message names the first.
        """
        written = self.values | ({"html": self.html} if self.html else {}) | ({"form": self.form} if self.form else {})
        for name in written:
            if name in names:
                own = self.form if name == "form" else name
                parameter = next(one for one in self.context.command.params if one.name == own)
                off = written[name] is False and parameter.secondary_opts
                raise click.UsageError(f"{(off or parameter.opts)[-1]} {reason}", self.context)

    def answer(
        self, result: object, blocks: Callable[[], Any] | None = None, page: tuple[str, Any] | None = None, plain: str = ""
    ) -> None:
        """Print a result, unless rows take its place on standard output; write its page; exit with 1 if it did not pass."""
        # page: its title, and what is on it, if not the blocks; plain: what is printed in place of the blocks
        from lmgauge.cli.say import write_page

        def document() -> Any:
            from lmgauge.report.documents import document_of

            return document_of(result)

        blocks = blocks or document
        if self.as_json:
            from lmgauge.base.json_text import to_json

            click.echo(to_json(getattr(result, "to_dict", lambda: result)()), err=bool(self.aside))
        elif self.form:
            from lmgauge.report.tsv_renderer import as_tables

            click.echo(as_tables(blocks(), self.form))
        elif plain:
            click.echo(plain)
        elif not self.aside:
            from lmgauge.report.terminal import show

            show(blocks(), **self.printed)
        if self.html is not None:
            title, shown = page or (repr(result)[1:-1], None)
            write_page(self.html, title, shown or blocks())
        code = 130 if getattr(result, "interrupted", False) else 1 - getattr(result, "passed", True)
        if code:
            self.context.exit(code)


def fields_of(*declared: Callable[..., Any]) -> set[str]:
    """Return the names of all options of verbs and of classes of settings."""
    return {option.name for one in declared for option in options_of(one)}


def command_of(name: str, row: Row) -> Command:
    """Return the command that a row declares."""
    verb = declared(row.verbs)[0]
    about = inspect.cleandoc(verb.__doc__ or "")
    body = re.split(r"^(?:Args|Returns|Raises|Example|Shell|Attributes):$", about, maxsplit=1, flags=re.MULTILINE)[0]
    parameters, options = _parameters(row), declared_options(row.verbs)
    arguments = {str(one.name): one.metavar for one in parameters if isinstance(one, click.Argument)}
    words = [f"{metavar or name.upper()}: {_help(options[name], options)}" for name, metavar in arguments.items()]
    body = "\n\n".join([body.partition("\n")[2].strip(), *words])
    about_it = row.summary, _plain(body.strip()), section_of(about, "Shell")

    @click.pass_context
    def run(context: click.Context, /, **values: Any) -> None:
        from lmgauge.cli.say import show_warnings

        show_warnings()
        call = Call(row, context)
        _check_files(call)
        if row.run:
            imported(row.run)(call)
        elif "json" in row.without:
            call()
        else:
            call.answer(call())

    parsing = {"ignore_unknown_options": any(one.type is click.UNPROCESSED for one in parameters)}  # numbers may be negative
    return Command(name, params=parameters, callback=run, about=about_it, context_settings=parsing)


def __getattr__(name: str) -> Command:
    """Return a command by its name, for the pages of the reference."""
    row = COMMANDS.get(name.replace("_", "-"))
    if row is None:
        raise AttributeError(name)
    return command_of(name.replace("_", "-"), row)


def _parameters(row: Row) -> list[click.Parameter]:
    options, names = declared_options(row.verbs), row.arguments
    if names is None:
        names = tuple(one.name for one in options_of(declared(row.verbs)[0]) if one.positional and one.name not in SHORT)
    several = [name for name in names if options[name].element is not None]
    # Of two arguments that take several values each takes one: nobody could tell where the first ends.
    made: list[click.Parameter | None] = [_argument(options[name], row, several == [name]) for name in names]
    rest = {name: one for name, one in options.items() if name not in {*names, *NOT_OFFERED, *row.without}}
    made += [_option(one, row, rest) for one in rest.values()]
    printed: dict[str, Any] = {"heading": "Output", "first": True}
    if "html" not in row.without:
        words = "Also write a page with charts; one file, to look at in a browser."
        made.append(_Option(["--html"], type=click.Path(dir_okay=False), metavar="FILE", help=words, **printed))
    if "json" not in row.without:
        tables = "tables" not in row.without
        words = "JSON; tables: --csv, --latex, --markdown." if tables else "Print JSON."
        made.append(_Option(["--json"], is_flag=True, help=words, **printed))
        for names, words in _PRINTED.items() if tables else ():
            made.append(_Option(names, is_flag=True, help=words, **printed))
            printed["first"] = False
    return [parameter for parameter in made if parameter is not None]


def _argument(option: Option, row: Row, several: bool) -> click.Argument:
    metavar = row.metavars.get(option.name) or METAVARS.get(option.name)
    required = option.name != row.stdin and (option.default is REQUIRED or option.name in row.required)
    kind = click.UNPROCESSED if isinstance(kind := _type(option, row), CommaList) else kind
    return click.Argument([option.name], nargs=-1 if several else 1, required=required, type=kind, metavar=metavar)


class _Option(click.Option):
    """An option that knows its heading, and whether it stands on the first page of help."""

    def __init__(self, names: Sequence[str], *, heading: str, first: bool, **others: Any) -> None:
        super().__init__(names, **others)
        self.heading, self.first = heading, first


def _spelled(name: str) -> str:
    return f"--{SPELLINGS.get(name, name)}".replace("_", "-")


def _option(option: Option, row: Row, others: Collection[str]) -> _Option | None:
    """Return the option of the command line; None for what only programs can say."""
    dashed = _spelled(option.name)
    names = [*([SHORT[option.name]] if option.name in SHORT else []), dashed, option.name]
    own = option.owner is None
    heading = HEADINGS.get(option.name, "Options" if option.owner is None else option.owner.heading)
    shown: dict[str, Any] = {
        "heading": heading,
        "first": option.name not in row.hide if own else option.name in row.show,
        "help": _help(option, others),
        "required": option.default is REQUIRED or option.name in row.required,
    }
    if bool in option.kinds:
        off = OFF.get(option.name, f"--no{dashed[1:]}")
        names[-2] = dashed if option.default is False and not _varies(option) else f"{dashed}/{off}"
        return _Option(names, is_flag=True, default=None, **shown)
    kind = _type(option, row)
    if kind is None:
        return None
    if isinstance(kind, CommaList):
        shown["callback"] = lambda context, parameter, lists: tuple(one for part in lists for one in part)
    several = isinstance(kind, CommaList) or (option.element is not None and not isinstance(kind, Parsed))
    metavar = row.metavars.get(option.name) or METAVARS.get(option.name) or _metavar(option, kind)
    return _Option(names, type=kind, multiple=several, metavar=metavar, **shown)


def _metavar(option: Option, kind: click.ParamType[Any]) -> str | None:
    """Return what the help calls a value; None leaves it to the type."""
    if float in option.kinds and option.element is None:
        return "SHARE" if option.bounds is not None and option.bounds.most == 1 else "X"
    kinds = {click.IntRange: "N", click.Path: "FILE", type(click.STRING): "NAME"}
    return kind.name if isinstance(kind, Parsed) else kinds.get(type(kind))


def _type(option: Option, row: Row) -> click.ParamType[Any] | None:
    """Return the type of the values that a user writes."""
    if option.name in PARSERS:
        return PARSERS[option.name]
    if option.choices and str not in option.kinds:
        words = imported(row.choices[option.name]) if option.name in row.choices else option.choices
        return KindChoice(words) if option.name == "kind" else click.Choice(words)
    if Mapping[str, float] in option.kinds:
        return NAMED_NUMBERS
    if option.element is not None and not option.is_path:
        kind, *others = get_args(option.element) or (option.element,)
        if get_origin(option.element) is Literal:
            return click.Choice((kind, *others))
        return Parsed("TEXT", str) if others and str in option.kinds else CommaList(kind)
    if option.is_path:
        return click.Path(allow_dash=True)
    if int in option.kinds and str not in option.kinds:
        bounds = option.bounds or Bounds(float("-inf"))
        least, most = (None if abs(one) == float("inf") else int(one) for one in (bounds.least, bounds.most))
        whole = click.IntRange(least, most)
        whole.name = "whole number"  # what messages call it
        return whole
    if float in option.kinds:
        return click.STRING if str in option.kinds else NUMBER
    return click.STRING if str in option.kinds else None


def _varies(option: Option) -> bool:
    """Return True if what holds without the option depends on others: there is a preset."""
    return hasattr(option.owner, "of_preset")


def _help(option: Option, others: Collection[str]) -> str:
    """Return what is said of an option; the names of others are spelled as the command line has them."""
    words = _plain(re.sub(r"`(\w+)`", lambda name: _spelled(name[1]) if name[1] in others else name[1], option.words))
    words = f"{words[:1].upper()}{words[1:]}".rstrip(".") + "."
    plain = isinstance(option.default, str | int | float) and not isinstance(option.default, bool)
    return f"{words}  [default: {option.default}]" if plain and option.default != "" and not _varies(option) else words


def _plain(words: str) -> str:
    """Return words of a docstring without its marks."""
    return re.sub(r"``?([^`]+)``?", r"\1", words)


class Command(click.Command):
    """A command with a first page of help, and all of it."""

    def __init__(self, name: str, *, about: tuple[str, str, list[str]], **others: Any) -> None:
        summary, body, examples = about
        super().__init__(name, help="\n\n".join([summary, body, "\b\n" + "\n".join(examples)]), short_help=summary, **others)
        self.about = about
        hidden = sum(isinstance(one, _Option) and not one.first for one in self.params)
        more = f"{hidden} more option{'s' * (hidden > 1)}, and " if hidden else ""
        shown: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False, "callback": _show_all}
        words = f"Show {more}the full text of each."
        self.params.append(_Option(["--help-all"], help=words, heading="Options", first=True, **shown))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does: in a line with examples, or in full."""
        summary, body, examples = self.about
        if not ctx.meta.get(_WHOLE):
            arguments = [(one.make_metavar(ctx), one.type) for one in self.params if isinstance(one, click.Argument)]
            chosen = [(name, map(str, kind.choices)) for name, kind in arguments if isinstance(kind, click.Choice)]
            body = "\n\n".join(f"{name}: {', '.join(words)}." for name, words in chosen)
            examples = examples[:2]
        paragraphs = [summary, body, "\b\n" + "\n".join(examples)]
        written = "\n\n".join(paragraph for paragraph in paragraphs if paragraph.strip("\b\n"))
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(written)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each heading with its options: those of the first page a line each, or all in full."""
        whole = ctx.meta.get(_WHOLE, False)
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None and (whole or getattr(parameter, "first", True)):
                sections.setdefault(getattr(parameter, "heading", "Options"), []).append(record)
        names = max(len(name) for records in sections.values() for name, _ in records if len(name) <= _NAMES)
        for heading, records in sections.items():
            with formatter.section(heading):
                if whole:
                    formatter.write_dl(records)
                else:
                    formatter.write("".join(_line(name, words, names, formatter.width) for name, words in records))


def _line(name: str, words: str, names: int, width: int) -> str:
    """Return an option with as much of its help as has room on one line, up to the end of a clause.

    >>> _line("--output PATH", "A folder (one for all, a.b; c) of runs; what diagnose reads.", 14, 60)
    '  --output PATH   A folder (one for all, a.b; c) of runs.\\n'
    """
    name = name if len(name) + 2 <= width else re.sub(r"\[.*", "NAME", name)  # without all that may be chosen
    column = f"  {name:<{names}}  " if len(name) <= names else f"  {name}\n{'':{names + 4}}"
    room = width - names - 5
    words = words.partition("  [")[0]
    # Of sentences and main clauses; of what stands before parentheses; of what is less, which cannot pass for a sentence.
    for ends, after in ((r"(?<!\.)\.(?=\s|$)|;", "."), (r" (?=\()", "."), (r"[,:](?=\s)", " ...")):
        clauses = re.finditer(rf"\([^()]*\)|({ends})", words)  # none within parentheses
        shown = [words[: clause.start()] + clause[1].strip(" .;") + after for clause in clauses if clause[1]]
        fitting = [part for part in shown if len(part) <= room + 1]
        if fitting:
            return f"{column}{fitting[-1]}\n"
    return f"{column}{words[: room - 3].rpartition(' ')[0]} ...\n"


def _show_all(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        context.meta[_WHOLE] = True
        click.echo(context.get_help())
        context.exit()


def _check_files(call: Call) -> None:
    """Refuse a standard stream that is named twice, and a page that cannot be made or would replace another file."""
    if len(call.aside) > 1:
        raise click.UsageError(f"{' and '.join(f'{_spelled(name)} -' for name in call.aside)} would both be standard output")
    read = [value for name, value in call.values.items() if name not in (*_ROWS, *_WRITTEN)]
    values = [one for value in read for one in (value if isinstance(value, tuple) else (value,))]
    if values.count("-") > 1:
        raise click.UsageError("standard input (-) is named twice, but can be read only once")
    if not call.as_json and call.form:
        call.refuse(call.aside, f"does not go with --{call.form}: both are standard output")
    if call.html is None:
        return
    from glob import glob

    from lmgauge.base.files import refuse_replacing
    from lmgauge.report.page import check_installed

    if call.html == "-":
        raise click.UsageError("--html needs a file: standard output is for what is printed")
    outputs = {_spelled(name): call.values[name] for name in _WRITTEN if name in call.values}
    paths = [path for one in values if isinstance(one, str) for path in (one, *glob(one), *one.partition("=")[2].split(","))]
    refuse_replacing(outputs | {"--html": call.html}, paths)
    check_installed(call.html)
