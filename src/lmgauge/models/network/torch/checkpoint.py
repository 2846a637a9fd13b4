"""Loading a causal language model of the `transformers` library, from a folder or by its name on a hub."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import torch
from safetensors import safe_open

from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.base.json_text import from_json
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.tokens import CONFIG_KEY, TokenMap, TrainedHere, foreign_tokens, trained_here, trained_tokens
from lmgauge.models.network.torch.runtime import FLOAT32_INSTEAD, in_bfloat16, settle_after_fork
from lmgauge.models.protocol import UnknownKindError, read_config

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_HUB = "https://huggingface.co"
_HUB_SECONDS = 3.0
SCORING_FILE = "scoring.json"
_TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model"),
    *("tekken.json", "tokenizer_config.json"),
)
_POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length", "max_sequence_length")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_NO_LIMIT = 1 << 24  # some configurations write a huge number where they mean none


@dataclass(frozen=True)
class Checkpoint:
    """A network on its device, and its tokens."""

    network: PreTrainedModel
    tokens: TokenMap
    folder: Path | None  # where it was loaded from; None for a name on a hub
    notes: tuple[str, ...] = ()  # what differs from what was asked for


def load_checkpoint(source: str, options: ScoringOptions) -> Checkpoint:
    """Load a network and its tokenizer."""
    from lmgauge.models.network.torch.architectures import register_architectures

    settle_after_fork()
    register_architectures()
    only_local = Path(source).is_dir() or not _hub_answers()
    folder = Path(source) if Path(source).is_dir() else None
    if folder is not None and next(folder.glob("*.safetensors"), None) is None:
        if next(folder.glob("*model*.bin"), None) is not None:
            raise ModelFileError(
                f"{source}: its weights are .bin files, a form that may run code when it is read; save it as safetensors "
                "first (save_pretrained does)"
            )
        raise ModelFileError(f"{source}: has a config.json but no weights (model.safetensors); copy the whole folder")
    device = choose_device(options.device)
    with telling(source, folder), quiet():
        if folder is not None:
            _check_layers(folder)
        network, notes = _in_dtype(source, options, device, only_local=only_local)
        tokens = _tokens(source, folder, options, only_local=only_local)
    return Checkpoint(network, tokens, folder, notes)


def choose_device(name: str | None) -> torch.device:
    """Return the device of a name; a GPU where there is one if None."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device, dtype=torch.float64).item()  # what sums are made of, and not all devices have
    except (RuntimeError, AssertionError, TypeError, ImportError) as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(f"device {name!r}: cannot be used here: {reason}") from error
    return device


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """Return the dtype that is asked for; `auto` is bfloat16 (16 bits) on a GPU and float32 elsewhere."""
    # name: auto, float32 or bfloat16.
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return torch.bfloat16 if name == "bfloat16" else torch.float32


def positions_of(network: PreTrainedModel) -> int | None:
    """Return how many tokens a network has positions for; None if it has no limit."""
    config = network.config.get_text_config()
    limits = (getattr(config, name, None) for name in _POSITIONS)
    return next((int(n) for n in limits if isinstance(n, int) and 0 < n < _NO_LIMIT), None)


def _hub_answers() -> bool:
    # True if the hub can be reached; if not, only what was downloaded before is looked at, and no one waits for retries.
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return False
    if getproxies():
        return True
    try:
        address = urlsplit(os.environ.get("HF_ENDPOINT", _HUB))
        port = address.port or (80 if address.scheme == "http" else 443)
        with socket.create_connection((address.hostname or "", port), timeout=_HUB_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def _check_layers(folder: Path) -> None:
    # Refuse a config.json that asks for more layers than there are weights: the library would build them all first.
    stored = 0
    for file in folder.glob("*.safetensors"):
        with safe_open(file, "pt") as weights:
            stored += len(weights.keys())
    config = read_config(folder)
    parts = [config, *(part for part in config.values() if isinstance(part, dict))]
    asked = [value for part in parts for name in _LAYERS if isinstance(value := part.get(name), int)]
    if max(asked, default=0) > stored:
        raise ModelFileError(
            f"{folder}: config.json asks for {max(asked):,} layers, and there are {stored:,} weights; they do not belong "
            "together"
        )


def _in_dtype(
    source: str, options: ScoringOptions, device: torch.device, *, only_local: bool
) -> tuple[PreTrainedModel, tuple[str, ...]]:
    # Network in the dtype asked for, or in float32 and a note that says so.

    def load(dtype: torch.dtype) -> PreTrainedModel:
        return _network(source, dtype, device, trust=options.trust_remote_code, only_local=only_local)

    def try_bfloat16() -> PreTrainedModel:
        network = load(torch.bfloat16)
        with torch.inference_mode():
            network(input_ids=torch.zeros((1, 1), dtype=torch.int64, device=device))
        return network

    if choose_dtype(options.dtype, device) != torch.bfloat16:
        return load(torch.float32), ()
    network = in_bfloat16(try_bfloat16, device)
    return (network, ()) if network is not None else (load(torch.float32), (FLOAT32_INSTEAD,))


def _network(source: str, dtype: torch.dtype, device: torch.device, *, trust: bool, only_local: bool) -> PreTrainedModel:
    from transformers import AutoConfig, AutoModelForCausalLM

    os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")  # or a service on the hub would be asked to convert
    where: dict[str, Any] = {"trust_remote_code": trust, "local_files_only": only_local}
    config = AutoConfig.from_pretrained(source, **where)
    method = _quantization(config)
    if method and device.type != "cpu":
        where["device_map"] = {"": device}  # packed weights are laid out for the device that multiplies them
    load: Any = AutoModelForCausalLM.from_pretrained  # typed as if it never returned a report
    network, report = load(
        source,
        config=config,
        dtype=dtype,
        output_loading_info=True,
        ignore_mismatched_sizes=True,
        use_safetensors=True,
        **where,
    )
    _check_weights(source, network, report, method)
    if method and getattr(network, "hf_quantizer", None) is None:
        network.to(dtype)  # unpacked in loading: the library leaves the other weights as they were stored
    loaded: PreTrainedModel = network.to(device).eval()
    return loaded


def _quantization(config: Any) -> str:
    # How a configuration says that the weights are packed, e.g. `gptq`; empty if it says nothing of it.
    stored = getattr(config, "quantization_config", None) or getattr(config, "quantization", None)  # MLX writes the second
    return str(stored.get("quant_method", "MLX")) if isinstance(stored, dict) else ""


def _check_weights(source: str, network: PreTrainedModel, report: dict[str, Any], method: str) -> None:
    # Refuse weights that are not there, of another shape, or whose scales nobody reads: without these they load as numbers.
    unpacked = dict(network.named_parameters()) if getattr(network, "hf_quantizer", None) is None else {}
    unread = sorted(name for name in report["unexpected_keys"] if f"{name.rpartition('.')[0]}.weight" in unpacked)
    missing = sorted(report["missing_keys"])
    quantized = method and f"the weights are quantized ({method}) in a way that transformers does not read"
    if unread:
        raise ModelFileError(
            f"{source}: {len(unread)} stored values belong to weights and would not be used, {unread[0]} for one: "
            f"{quantized or 'they do not fit config.json, or the weights are quantized and it does not say how'}"
        )
    if report["mismatched_keys"]:
        name, stored, wanted = sorted(report["mismatched_keys"])[0]
        raise ModelFileError(
            f"{source}: the weight {name} has the shape {tuple(stored)}, and config.json asks for {tuple(wanted)}; they do "
            "not belong together"
        )
    if missing:
        raise ModelFileError(
            f"{source}: {len(missing)} weights are missing, {missing[0]} for one, and would be random; "
            f"{quantized or 'copy or save it again'}"
        )


def _tokens(source: str, folder: Path | None, options: ScoringOptions, *, only_local: bool) -> TokenMap:
    if folder is not None:
        if settings := trained_here(read_config(folder).get(CONFIG_KEY), folder / "config.json", TrainedHere):
            return trained_tokens(folder, settings)
        if not any((folder / name).exists() for name in _TOKENIZER_FILES):  # the library would make one up
            raise ModelFileError(f"{source}: has no tokenizer ({_TOKENIZER_FILES[0]}); copy the whole folder")
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(
        source, trust_remote_code=options.trust_remote_code, local_files_only=only_local
    )
    return foreign_tokens(tokenizer, source)


@contextlib.contextmanager
def telling(source: str, folder: Path | None) -> Iterator[None]:
    """Turn what the library raises into words for people; what it and those that unpack weights print is dropped."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    except (ModelFileError, UsageError):
        raise
    except ImportError as error:
        what = "cannot be loaded here" if "requires a GPU" in str(error) else "needs a library that is not installed"
        raise ModelFileError(f"{source}: {what}: {_first_line(error)}") from error
    except Exception as error:  # safetensors and tokenizers raise their own classes, right under Exception
        text = str(error)
        if "trust_remote_code" in text:
            raise ModelFileError(
                f"{source}: comes with code of its own, which does not run unless you trust it: --trust-remote-code"
            ) from error
        if folder is None and isinstance(error, OSError):
            raise ModelFileError(
                f"{source}: no such model: no folder of that name is here, and nothing could be had from the hub; check the "
                f"path, the name and the network ({_first_line(error)})"
            ) from error
        if "does not recognize this architecture" in text or "Unrecognized model" in text:
            raise UnknownKindError(f"{source}: of a kind that transformers does not know") from error
        if "to have the same dtype" in text:
            raise ModelFileError(
                f"{source}: its quantized weights are multiplied in bfloat16 only, which this processor cannot do fast; use "
                f"a GPU ({_first_line(error)})"
            ) from error
        if "Unrecognized configuration class" in text:
            raise ModelFileError(f"{source}: not a causal language model, one that predicts the next token") from error
        raise ModelFileError(f"{source}: cannot be loaded: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    whole = " ".join(lines[:2]) if lines and lines[0].endswith(":") else lines[0] if lines else type(error).__name__
    text = re.sub(r"\s+", " ", whole)
    return text if len(text) < 300 else text[:297] + "..."


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No bars and no chatter of the library on standard error; what matters becomes an error of ours."""
    from transformers.utils import logging as library

    level, bars = library.get_verbosity(), library.is_progress_bar_enabled()
    hub = logging.getLogger("huggingface_hub")
    hub_level = hub.level
    library.set_verbosity_error()
    library.disable_progress_bar()
    hub.setLevel(logging.ERROR)
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it says at each product that it rounds
    try:
        yield
    finally:
        library.set_verbosity(level)
        hub.setLevel(hub_level)
        if bars:
            library.enable_progress_bar()


def read_scoring(folder: Path) -> dict[str, Any]:
    """Return what was chosen about scoring when a model was copied into a mixture; empty for all others."""
    file = folder / SCORING_FILE
    if not file.is_file():
        return {}
    try:
        stored = from_json(file.read_bytes())
        return ScoringOptions(**stored).stored()
    except (OSError, ValueError, TypeError) as error:
        raise ModelFileError(f"{file}: is damaged: {error}") from error


def described(network: Any) -> str:
    """Return a short name of a kind of network for signatures, e.g. `gpt2` or `lstm`."""
    config = network.config
    training = getattr(config, "lmgauge", None)
    return str(training["kind"]) if isinstance(training, dict) and "kind" in training else str(config.model_type)
