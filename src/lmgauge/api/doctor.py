"""`lmgauge.doctor`: whether this install works, and what is missing for what."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from importlib.util import find_spec
from typing import Any, Literal, get_args

from lmgauge.base.display import Displayable
from lmgauge.base.errors import install_command
from lmgauge.base.version import NUMBERS_VERSION, __version__

# -----------------------------------------------------------------------------------------------------------------------
# What each extra is for, which libraries the package asks for by its metadata, and which of them are there.
PURPOSES: Mapping[str, str] = {
    "report": "pages and charts",
    "explore": "the explorer in the browser",
    "pandas": "to_pandas() of results",
    "neural": "networks of torch and transformers",
    "gguf": "GGUF files, with llama-cpp-python",
    "lightning": "numbers during a training with Lightning",
    "torchmetrics": "numbers during a training, as a metric",
    "audit": "the compression check of an audit (level 5)",
    "icu": "words of languages without spaces",
    "tokenizers": "a tokenizer.json for n-gram models",
    "sentencepiece": "a SentencePiece .model for n-gram models, CCNet's among them",
    "zstd": "files ending in .zst",
    "remote": "texts at s3:// addresses",
    "translation": "sacreBLEU's tokenizers and test sets",
    "ja": "BLEU's tokenizer for Japanese",
    "ko": "BLEU's tokenizer for Korean",
    "spm": "BLEU's tokenizers of SentencePiece (FLORES)",
    "datatrove": "steps for datatrove's pipelines",
    "whisper": "Whisper's normalizer of transcripts",
    "track": "figures in Trackio and wandb",
    "docs": "building the book",
    "test": "running the tests",
}
"""Extra -> what it is for, as `lmgauge doctor` and the page on installing say it."""

FOR_CONTRIBUTORS = frozenset({"docs", "test"})
"""Extras that nobody needs who uses lmgauge: libraries of theirs that are too old are not a problem of the install."""

EVERYTHING = "all"
"""The extra that only names others."""

PACKAGE = "lmgauge"
State = Literal["broken", "too old", "too new", "missing", "ok"]
STATES: tuple[State, ...] = get_args(State)
"""What a library or an extra can be, the worst first."""

_MODULES = (".py", ".so", ".pyd")
_REQUIREMENT = re.compile(r"\s*([\w.-]+)\s*(?:\[([^\]]*)\])?\s*\(?([^;()]*)\)?\s*(?:;(.*))?", re.DOTALL)
_CONDITION = re.compile(r"""(\w+)\s*(==|!=|<=|>=|<|>)\s*["']([^"']*)["']""")
_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)(.*)")
_BEFORE_RELEASE = re.compile(r"[._-]?(a|b|c|rc|alpha|beta|pre|dev)", re.IGNORECASE)


@dataclass(frozen=True)
class Library:
    """A library that is asked for."""

    name: str
    asked: str  # versions that will do, such as `>=0.4`; empty if any
    installed: str = ""  # its version; empty if it is not installed
    state: State = "missing"
    error: str = ""  # why it is broken, in a line
    modules: tuple[str, ...] = ()  # what to import to see whether it works

    def to_dict(self) -> dict[str, Any]:
        """Return the fields but `modules` as plain values."""
        return {name: value for name, value in asdict(self).items() if name != "modules"}

    @property
    def remedy(self) -> str:
        """Return the command that puts the library right."""
        again = "--force-reinstall --no-deps " if self.state == "broken" else "--upgrade "
        return f"pip install {again}'{self.name}{self.asked}'"


@dataclass(frozen=True)
class Extra:
    """An extra of the package."""

    name: str  # in `pip install 'lmgauge[NAME]'`
    purpose: str
    libraries: tuple[Library, ...]

    @property
    def state(self) -> State:
        """Return the worst state of its libraries."""
        return min((library.state for library in self.libraries), key=STATES.index, default="ok")

    def to_dict(self) -> dict[str, Any]:
        """Return the name, what it is for, its state, its libraries, and the command that installs it."""
        said = {"name": self.name, "for": self.purpose, "state": self.state}
        return said | {"libraries": [one.to_dict() for one in self.libraries], "install": install_command(self.name)}


def core_and_extras() -> tuple[tuple[Library, ...], tuple[Extra, ...]]:
    """Return the libraries that lmgauge always needs, and its extras but the one of all others."""
    # Both are empty where the package has no metadata, as in a source tree that was not installed.
    try:
        package = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        return (), ()
    lines = package.requires or []
    names = [name for name in package.metadata.get_all("Provides-Extra") or [] if name != EVERYTHING]
    extras = (Extra(name, PURPOSES.get(name, ""), _with_versions(lines, name)) for name in names)
    return _with_versions(lines, ""), tuple(extras)


def installed_version() -> str:
    """Return the version of lmgauge that pip knows; empty if it was not installed."""
    with suppress(Exception):  # metadata may be damaged in any way
        return metadata.version(PACKAGE)
    return ""


def compared(installed: str, asked: str) -> Literal["ok", "too old", "too new"]:
    """Return whether a version is one that is asked for."""
    own = _key(installed)
    for condition in asked.split(","):
        sign, version = re.match(r"\s*([<>=!~]*)\s*(.*)", condition).groups()  # type: ignore[union-attr]
        if own is None or not (bound := _key(version)):
            continue
        if sign in (">=", "~=", "==", ">") and (own < bound or (sign == ">" and own == bound)):
            return "too old"
        if sign in ("<", "<=", "==") and not version.endswith("*") and (own > bound or (sign == "<" and own == bound)):
            return "too new"
    return "ok"


def modules_of(package: metadata.Distribution) -> tuple[str, ...]:
    """Return what a package lets one import: the module of its own name, or all that it has beside private ones."""
    with suppress(Exception):  # metadata of others may be damaged in any way
        files = [file.parts for file in package.files or ()]
        folders = {parts[0] for parts in files if parts[1:] == ("__init__.py",)}
        tops = folders | {parts[0].split(".")[0] for parts in files if not parts[1:] and parts[0].endswith(_MODULES)}
        names = sorted(top for top in tops if top.isidentifier() and not top.startswith("_"))
        own = [name for name in names if _plain_name(name) == _plain_name(package.metadata["Name"])]
        return tuple(own or [name for name in names if name not in ("tests", "test", "docs", "examples")])
    return ()


def _libraries(lines: Iterable[str], extra: str, seen: frozenset[tuple[str, str]] = frozenset()) -> Iterator[Library]:
    # Libraries that an extra of a package asks for; extras of extras are followed, behind its own.
    others = []
    for match in filter(None, map(_REQUIREMENT.fullmatch, lines)):
        name, extras, asked, condition = match[1], match[2] or "", match[3].strip(), match[4] or ""
        named = {value for key, sign, value in _CONDITION.findall(condition) if (key, sign) == ("extra", "==")}
        if (extra in named if extra else not named) and _applies(condition):
            others += [(_plain_name(name), part.strip()) for part in extras.split(",") if part.strip()]
            if _plain_name(name) != PACKAGE:
                yield Library(name, asked)
    for key in others:
        if key not in seen:
            with suppress(metadata.PackageNotFoundError):
                yield from _libraries(metadata.requires(key[0]) or [], key[1], seen | {key})


def _with_versions(lines: Iterable[str], extra: str) -> tuple[Library, ...]:
    return tuple(map(_looked_up, {library.name: library for library in _libraries(lines, extra)}.values()))


def _looked_up(library: Library) -> Library:
    try:
        package = metadata.distribution(library.name)
        installed = str(package.version)
    except metadata.PackageNotFoundError:
        module = library.name.replace("-", "_")
        with suppress(ImportError, ValueError):
            if find_spec(module) is not None:  # some systems install libraries without metadata
                return replace(library, installed="unknown", state="ok", modules=(module,))
        return library
    except Exception as error:  # metadata of others may be damaged in any way
        return replace(library, installed="unknown", state="broken", error=f"its metadata cannot be read ({error!r:.100})")
    return replace(library, installed=installed, state=compared(installed, library.asked), modules=modules_of(package))


def _applies(condition: str) -> bool:
    system = {"win32": "Windows", "darwin": "Darwin"}.get(sys.platform, "Linux")
    facts = {"sys_platform": sys.platform, "platform_system": system}
    for name, sign, value in _CONDITION.findall(condition):
        if name == "python_version" and compared("{}.{}".format(*sys.version_info), f"{sign}{value}") != "ok":
            return False
        if name in facts and (facts[name] == value) != (sign == "=="):
            return False
    return True


def _plain_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _key(version: str) -> tuple[tuple[int, ...], bool] | None:
    # What versions are ordered by: the numbers of the release, and whether it was released.
    match = _RELEASE.match(version.strip())
    if match is None:
        return None
    numbers = re.sub(r"(\.0+)+$", "", match[1]).split(".")
    return tuple(map(int, numbers)), _BEFORE_RELEASE.match(match[2]) is None


_SECONDS = 120.0
_LONGEST = 200
_PASSED = 42
_NOT_TRIED = "not tried: this Python cannot start another one"
_ERROR = re.compile(r"[\w.]+(?:Error|Exception|Exit|Interrupt)\b.*")
_KNOWN_ANSWER = 2.945285930442359
_KERNEL_CALL = f"""\
import lmgauge
model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"]), order=2)
answer = lmgauge.perplexity(model, ["the cat sat", "the dog ran"])
if abs(answer - {_KNOWN_ANSWER!r}) > 1e-12:
    raise ArithmeticError(f"a perplexity of {_KNOWN_ANSWER!r} came out as {{answer!r}}")
"""


@dataclass(frozen=True, repr=False)
class Checkup(Displayable):
    """What `lmgauge doctor` has seen.

    Attributes:
        versions: of lmgauge, of its numbers, of Python, and the platform.
        kernels: "ok", or why the compiled kernels do not work.
        core: the libraries that are always needed.
        extras: the others, by extra.
        problems: what is wrong, each with its remedy; empty if nothing is.
        notes: what is good to know.

    Example:
        >>> import lmgauge
        >>> checkup = lmgauge.doctor(quick=True)
        >>> checkup.kernels
        'ok'
        >>> checkup.versions["lmgauge"] == lmgauge.__version__
        True
    """

    versions: Mapping[str, str]
    kernels: str
    core: tuple[Library, ...]
    extras: tuple[Extra, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True if nothing that is installed is broken or too old."""
        return not self.problems

    @property
    def unusable(self) -> frozenset[str]:
        """Names of the libraries that lmgauge always needs and that cannot be imported."""
        return frozenset(library.name for library in self.core if library.state in ("broken", "missing"))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        libraries = {"core": [one.to_dict() for one in self.core], "extras": [extra.to_dict() for extra in self.extras]}
        return {"passed": self.passed} | vars(self) | {"versions": dict(self.versions)} | libraries

    def _in_brief(self) -> str:
        return f"lmgauge {self.versions['lmgauge']}, {f'{len(self.problems)} problems' if self.problems else 'no problem'}"


def doctor(*, quick: bool = False) -> Checkup:
    """Look whether this install works, and what is missing for what: `lmgauge doctor`.

    Shows versions, whether the compiled kernels give a known answer, and each extra with its libraries and what it is for.
    Each library is imported in a separate process, so that a broken one is reported and does no harm; with torch this
    takes seconds. Exits with 1 if something that is installed is broken or too old. Include its output when you report
    a fault.

    Args:
        quick: import only what lmgauge always needs; of other libraries only the versions are read.

    Shell:
        lmgauge doctor
        lmgauge doctor --json | jq '.extras[] | select(.state == "missing")'

    Example:
        >>> import lmgauge
        >>> audit = next(extra for extra in lmgauge.doctor(quick=True).extras if extra.name == "audit")
        >>> audit.purpose, audit.to_dict()["install"]
        ('the compression check of an audit (level 5)', "pip install 'lmgauge[audit]'")
    """
    core, extras = core_and_extras()
    of_users = [extra.libraries for extra in extras if not quick and extra.name not in FOR_CONTRIBUTORS]
    broken = _broken({library.name: library for libraries in (core, *of_users) for library in libraries})

    def judged(libraries: Iterable[Library]) -> tuple[Library, ...]:
        return tuple(replace(one, **broken.get(one.name, {})) for one in libraries)

    core = judged(core)
    extras = tuple(replace(extra, libraries=judged(extra.libraries)) for extra in extras)
    kernels = _error_of(_KERNEL_CALL) or "ok"
    problems = [_problem(library, "lmgauge needs") for library in core if library.state != "ok"]
    if kernels not in ("ok", _NOT_TRIED) and not problems:
        problems.append(f"the compiled kernels do not work: {kernels}; pip install --force-reinstall --no-deps lmgauge")
    users: dict[Library, list[str]] = {}
    for extra in extras:
        for library in extra.libraries if extra.name not in FOR_CONTRIBUTORS else ():
            if library.state not in ("ok", "missing"):
                users.setdefault(library, []).append(extra.name)
    for library, names in users.items():
        which = f"the extras {', '.join(names)} need" if names[1:] else f"the extra {names[0]} needs"
        problems.append(_problem(library, which))
    installed = installed_version()
    notes = [] if core else ["lmgauge is not installed as a package, so its extras are not known: pip install ."]
    if installed not in ("", __version__):
        notes.append(f"this is lmgauge {__version__}, and the package that pip knows is {installed}: two are on the path")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    versions = {"lmgauge": __version__, "numbers": NUMBERS_VERSION, "python": python, "platform": platform.platform()}
    return Checkup(versions, kernels, core, extras, tuple(problems), tuple(notes))


def _broken(libraries: Mapping[str, Library]) -> dict[str, dict[str, Any]]:
    """Return what changes of those libraries that cannot be imported, by name."""
    calls = {name: f"import {', '.join(one.modules)}" for name, one in libraries.items() if one.modules}
    if not calls or _error_of("\n".join(calls.values())) in ("", _NOT_TRIED):  # one process, unless something is wrong
        return {}
    errors = {name: _error_of(call) for name, call in calls.items()}
    return {name: {"state": "broken", "error": error} for name, error in errors.items() if error}


def _error_of(code: str) -> str:
    """Return why another Python cannot run code, in a line; empty if it can."""
    # The code is among our own words; a library may print, raise, hang or end Python: it does so over there.
    command = [sys.executable, "-P", "-c", f"{code}\nimport os\nos._exit({_PASSED})"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    try:
        done = subprocess.run(command, env=environment, **streams, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it took more than {_SECONDS:g} s"
    except (OSError, TypeError):  # an embedded Python has no program of its own
        return _NOT_TRIED
    lines = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if _ERROR.fullmatch(line)]
    said = lines[-1] if lines else f"it ended Python with exit code {done.returncode}"
    return "" if done.returncode == _PASSED else said[:_LONGEST]


def _problem(library: Library, needed_by: str) -> str:
    """Return what is wrong with a library, who needs it, and the command that puts it right."""
    reason = f": {library.error}" if library.error else f"; {library.asked} is needed" * (library.state != "missing")
    name = f"{library.name} {library.installed}".rstrip()
    return f"{name}, which {needed_by}, is {library.state}{reason}; {library.remedy}"
