"""What every language model offers, and the config.json that every saved one has."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.base.files import digest, is_special, read_regular
from lmgauge.base.json_text import from_json
from lmgauge.scores import ScoreBatch
from lmgauge.scores.context_policy import ContextPolicy

if TYPE_CHECKING:
    from lmgauge.base.choices import ReservedPolicy
    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.models.network.server.server import Server
    from lmgauge.models.network.tokens import TokenMap
    from lmgauge.models.network.torch.engine import Journal
    from lmgauge.models.segment_scores import SegmentTotals
    from lmgauge.scores.distributions.stored_rows import LastLayer
    from lmgauge.text.segments import Segments
    from lmgauge.text.tokens import Tokenizer
    from lmgauge.text.vocabulary import Vocabulary

T = TypeVar("T")
NGRAM_MODEL_TYPE = "lmgauge-ngram"
MIXTURE_MODEL_TYPE = "lmgauge-mixture"
CACHE_MODEL_TYPE = "lmgauge-cache"
SPELLING_FOLDER = "spelling"
"""Inside the folder of a model: how its unseen words are spelled."""
OF_MACHINE = ("device", "batch_tokens", "trust_remote_code")
OF_PROCESSES = ("devices", "processes")
OF_TEXT = ("tokenizer", "normalizer")
_LARGEST_CONFIG = 1 << 24
"""Bytes: the longest config.json of networks have some 10 kB, and that of a network trained here 100 an epoch."""


class UnknownKindError(ModelFileError):
    """Raised when no library here knows the kind of a model."""


class Backend(Protocol):
    """The eight members that a model must have."""

    @property
    def label(self) -> str: ...
    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def context_policy(self) -> ContextPolicy: ...

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield one batch for each block of segments, in order.

        Args:
            segments: blocks of text, e.g. a `Corpus`.
            spans: whether to fill the column `ends`, in bytes.
            threads: how many to compute with.

        Raises:
            InputError: the text cannot be scored.
        """
        ...

    @property
    def blocks_are_independent(self) -> bool:
        """Whether blocks may be scored in any order and at a time, by `score_block`."""
        ...

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block; only where blocks are independent.

        Args:
            block: the segments.
            spans: whether to fill the column `ends`, in bytes.

        Raises:
            InputError: the text cannot be scored.
        """
        ...

    def log_distribution(self, context_ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return natural log-probabilities of all tokens after a context.

        Args:
            context_ids: uint32 [n], ids before the event, `<s>` first.

        Returns:
            float64 [vocabulary], nats; -inf for what cannot come.

        Raises:
            UsageError: an id is outside the vocabulary.
        """
        ...


if TYPE_CHECKING:
    default = property
else:

    class default:
        """A property that an object may have a value of its own for."""

        def __init__(self, of: Callable[[Traits], Any]) -> None:
            self._of = of

        def __get__(self, model: Traits | None, kind: type | None = None) -> Any:
            return self if model is None else self._of(model)


def _speaks_for_one(model: object, method: str) -> bool:
    # A class that changes `log_distribution` and inherits the other has two answers: then the first one counts.
    places = [vars(model), *map(vars, type(model).__mro__)]
    of_method, of_one = ([i for i, names in enumerate(places) if name in names] for name in (method, "log_distribution"))
    return hasattr(model, method) and min(of_method, default=len(places)) <= min(of_one, default=len(places))


class Traits(Protocol):
    """What a model may have beyond the eight members, each with what holds where it says nothing of it."""

    @default
    def notes(self) -> Sequence[str]:
        """Sentences about the text scored last that its numbers depend on."""
        return ()

    @default
    def tolerance(self) -> float:
        """Nats by which rows may differ when they are scored again, as those of a model that computes in float32 do."""
        return 0.0

    @default
    def options(self) -> ScoringOptions | None:
        """The scoring options that it follows; None where it follows none."""
        return None

    def takes(self, option: str) -> bool:
        """Return True if it takes a scoring option."""
        if option in OF_TEXT:
            return self.is_of_another_program
        return self.options is not None and option not in ("bos", "kv_cache", *OF_PROCESSES)

    @default
    def reserved(self) -> ReservedPolicy | None:
        """What a reserved token in the text means; None where it has no such choice."""
        return None

    def with_reserved(self, reserved: ReservedPolicy) -> LanguageModel:
        """Return the same model with another meaning of reserved tokens in the text: itself where it has no such choice."""
        return cast("LanguageModel", self)

    def framed(self) -> LanguageModel:
        """Return the same model for the turns of conversations: itself where the contents alone are its text."""
        return cast("LanguageModel", self)

    def count_events(self, block: Segments) -> NDArray[np.int64] | None:
        """Return how many events each segment has, int64 [segments]; None where they are what its tokenizer makes."""
        return None

    @default
    def raw(self) -> LanguageModel | None:
        """The same model without the chat template that it sets turns into; None where it sets them into none."""
        return None

    @default
    def tokens(self) -> TokenMap | None:
        """The rows of a network's output layer that its tokens have."""
        return None

    def special_tokens(self, block: Segments) -> tuple[str, list[str], list[str]] | None:
        """Return what a network sees of the first segment of a block, faults, and what may be a fault; else None."""
        return None

    @default
    def served_by(self) -> Server | None:
        """The completions server that it is asked of; None where it is computed here."""
        return None

    @default
    def last_layer(self) -> LastLayer | None:
        """What makes distributions of a network's last hidden states; None where its last step is not known apart."""
        return None

    @default
    def is_spelled(self) -> bool:
        """True if it spells its unseen words, and has a `writer` of events as text."""
        return False

    @default
    def is_of_another_program(self) -> bool:
        """True if it comes from a file that does not say how text is cut into its words."""
        return False

    @default
    def alignment(self) -> str:
        """How its tokens became those of the model that it is compared with, where that has to be said."""
        return ""

    @default
    def scores_in_units(self) -> bool:
        """True if it scores the segments of many blocks together."""
        return False

    @default
    def contexts_at_a_time(self) -> int:
        """How many contexts `log_distributions` is best asked about together, where it has that method."""
        return 1

    def computes_many(self, method: str = "distributions") -> bool:
        """Return True if a method for many distributions speaks for `log_distribution`: no class changed that one alone."""
        return _speaks_for_one(self, method)

    @default
    def progress(self) -> Callable[[int], None] | None:
        """What is called with the number of tokens scored since the last call; None where it does not report them."""
        return None

    def sum_block(self, block: Segments) -> SegmentTotals:
        """Return what the rows of each segment of a block sum to; only where blocks are independent."""
        from lmgauge.models.segment_scores import totals_of

        return totals_of(cast("LanguageModel", self).score_block(block, spans=False))

    def keep_journal(self, path: Path) -> Journal | None:
        """Keep scores in a file, and take from it what is known already; None where it is too quick for that."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return what is in the model, as plain values."""
        return {}

    def save(self, path: str | Path) -> None:
        """Write the model as a folder that `load_model` reads."""
        label = cast("LanguageModel", self).label
        raise UsageError(f"{label}: the model has no method save(path), so it can be used but not stored")

    def may_replace(self, folder: Path, /) -> bool:
        """Return True if a folder holds such a model and nothing else, so that `save` may put another in its place."""
        return False


@runtime_checkable
class LanguageModel(Backend, Traits, Protocol):
    """A language model, as evaluation, sampling and audits know it.

    A model of your own needs the eight members of `lmgauge.models.protocol.Backend`; it has what it says of `Traits` there.

    Attributes:
        label: short name for signatures, e.g. `mkn5`.
        vocabulary: token strings and ids.
        tokenizer: how text becomes tokens.
        fingerprint: hexadecimal digest of all that determines the probabilities.
        context_policy: what of the text is context.

    Example:
        >>> import lmgauge, numpy as np
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> isinstance(model, lmgauge.LanguageModel)
        True
        >>> begin = model.vocabulary.tokens.index("<s>")
        >>> np.exp(model.log_distribution([begin])).round(3).tolist()  # of <unk>, <s>, </s>, a, b
        [0.167, 0.0, 0.167, 0.5, 0.167]
    """


class _Completed(Traits):
    """A model of somebody else's: what it says counts, and the traits have their defaults where it says nothing."""

    def __init__(self, model: object) -> None:
        self.__dict__.update(_model=model, label=type(model).__name__, fingerprint="", blocks_are_independent=False)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._model, name, value)

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name in ("computes_many", "context_policy") or not hasattr(self._model, name):
            return super().__getattribute__(name)
        return getattr(self._model, name)

    @property
    def context_policy(self) -> ContextPolicy:
        """That of the model, which may say it as text, or leave it out for `sentence`."""
        policy = getattr(self._model, "context_policy", "sentence")
        return policy if isinstance(policy, ContextPolicy) else ContextPolicy.parse(str(policy))

    def computes_many(self, method: str = "distributions") -> bool:
        return _speaks_for_one(self._model, method)

    def log_distribution(self, context_ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        raise UsageError(f"{self.label} has no log_distribution; whole distributions and audits need it")


def completed(model: object) -> LanguageModel:
    """Return a model with all that a `LanguageModel` has: itself where its class inherits the traits."""
    if Traits in type(model).__mro__ and isinstance(cast("LanguageModel", model).context_policy, ContextPolicy):
        return cast("LanguageModel", model)
    if not all(hasattr(model, name) for name in ("score", "vocabulary", "tokenizer")):
        raise not_a_model(model)
    return cast("LanguageModel", _Completed(model))


def not_a_model(value: object) -> UsageError:
    """Return the error for something that is neither a model nor the path of one; it shows the right call.

    >>> print(not_a_model(3))
    a model is an object with score and log_distribution, or a path, not int
    """
    seen = f"not {type(value).__name__}"
    if hasattr(value, "forward") and hasattr(value, "parameters"):
        seen = "not a bare network: lmgauge.models.NeuralModel.wrap(network, tokenizer) makes a model of it"
    return UsageError(f"a model is an object with score and log_distribution, or a path, {seen}")


def refuse_templates(models: Iterable[LanguageModel]) -> None:
    """Refuse parts of a mixture that set turns into a template of their own, as its events have to be those of all."""
    odd = next((model for model in models if model.framed().raw is not None), None)
    if odd is not None:
        raise UsageError(f"{odd.label} has a chat template, which a mixture does not set turns into: give it plain text")


M = TypeVar("M", bound=LanguageModel)


def check_context(context_ids: NDArray[np.integer] | Sequence[int], size: int) -> NDArray[np.uint32]:
    """Return context ids as an array, once they are known to be in the vocabulary.

    >>> check_context([1, 5], 6)
    array([1, 5], dtype=uint32)
    """
    # context_ids: integers [n].
    # -> uint32 [n].
    if isinstance(context_ids, np.ndarray) and context_ids.dtype == np.uint32 and context_ids.max(initial=0) < size:
        return cast("NDArray[np.uint32]", context_ids)
    try:
        context = np.asarray(context_ids, np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"context ids are whole numbers from 0 to {size - 1}, the vocabulary's last: {error}") from error
    if len(context) and not context.view(np.uint64).max() < size:  # below 0 is above all others
        raise UsageError(f"context ids must lie between 0 and {size - 1}, the vocabulary's last")
    return context.astype(np.uint32)


def read_config(path: Path, *, own: bool = False) -> dict[str, object]:
    """Return the config.json of a model folder in which all is a file or a folder, whichever library is to read it."""
    file = path / "config.json"
    try:
        config = from_json(read_regular(file, _LARGEST_CONFIG), own=own)
        special = [name for name in os.listdir(path) if is_special(path / name)]
    except FileNotFoundError as error:
        what = "a run, not a model" if (path / "evaluation.json").exists() else "not a model, as it has no config.json"
        raise ModelFileError(f"{path}: {what}") from error
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if special:
        raise ModelFileError(f"{path / special[0]}: is a pipe or a device, which no model has; copy the model again")
    if not isinstance(config, dict):
        raise ModelFileError(f"{file}: not a JSON object; the file is damaged")
    return config


@contextmanager
def describing(path: Path, what: str) -> Iterator[None]:
    """Refuse a folder if the parts of the model that it describes, which are put together in the block, do not fit."""
    try:
        yield
    except RecursionError as error:
        raise ModelFileError(f"{path}: models are nested too deeply") from error
    except (UsageError, InputError) as error:
        raise ModelFileError(f"{path}: does not describe {what} ({error}); the model is damaged") from error


def checked(model: M, path: Path, fingerprint: object) -> M:
    """Return a model that was read, if it has the fingerprint that its config.json states."""
    if model.fingerprint != fingerprint:
        raise ModelFileError(
            f"{path}: the fingerprint in config.json is not that of the model; a file was edited, damaged or exchanged, or "
            "another version of lmgauge wrote it"
        )
    return model


def inside(path: Path, name: str) -> Path:
    """Return the folder or file of a part of a model, which must lie in the folder of the model."""
    part = path / name
    # A plain name, and no link that leads elsewhere.
    if Path(name).parts != (name,) or path.resolve() != part.resolve().parent:
        raise ModelFileError(f"{path}: its part {name!r} is not a folder in it; copy the whole model")
    if not part.exists():
        raise ModelFileError(f"{part}: missing; the model is incomplete")
    return part


def write_config(path: Path, config: Mapping[str, object], *, sealed: bool) -> None:
    """Write the config.json of a model folder, with the digest of what it says where it is sealed."""
    config = {**config, "sha256": digest_of(config)} if sealed else config
    (path / "config.json").write_text(json.dumps(config, indent=2, allow_nan=False) + "\n", encoding="utf-8", newline="\n")


def digest_of(config: Mapping[str, object]) -> str:
    """Return the SHA-256 of a config.json without it, as config.json has it."""
    return digest({key: value for key, value in config.items() if key != "sha256"})


def read_own_config(path: Path, kind: type[T], model_type: str, version: int, remedy: str, *, sealed: bool = True) -> T:
    """Return the config.json of a model of ours, once its version is known to be read here, and its checksum to be right."""
    from lmgauge.base.decoding import decode  # loads a library, which what reads no model does without

    config = read_config(path, own=True)
    named, written = config.get("model_type"), config.get("format_version")
    if named != model_type:
        raise ModelFileError(f"{path}: model_type is {str(named)[:60]!r}, not {model_type!r}; {remedy}")
    if written != version:
        raise ModelFileError(f"{path}: written in format {written!r}; this lmgauge reads format {version}: {remedy}")
    if sealed and config.get("sha256") != digest_of(config):
        raise ModelFileError(f"{path}: config.json was edited or damaged, its sha256 does not fit; {remedy}")
    return decode(config, kind, path / "config.json", f"that of a model of type {model_type}", remedy, ModelFileError)


def is_folder_of(model_type: str, *names: str) -> Callable[[Path], bool]:
    """Return the question whether a folder is a model of this type and holds nothing but its files: it may be replaced."""
    # A speller may be among them, as it belongs to the model; the last name is what a run that was killed left behind.
    known = (*names, SPELLING_FOLDER, f".{SPELLING_FOLDER}.*")

    def is_ours(path: Path) -> bool:
        """Return True if a folder holds such a model and nothing else, so that another may take its place."""
        if not all(any(fnmatchcase(file.name, name) for name in known) for file in path.iterdir()):
            return False
        try:
            return read_config(path).get("model_type") == model_type
        except ModelFileError:
            return False

    return is_ours
