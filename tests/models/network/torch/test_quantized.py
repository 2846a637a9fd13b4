"""Quantized checkpoints: those that load score as their weights unpacked do, and no packed weight is read as a number."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402
from tests.models.network.conftest import TEXT, byte_level  # noqa: E402

from lmgauge import evaluate, load_model  # noqa: E402
from lmgauge.base.errors import ModelFileError  # noqa: E402
from lmgauge.text.documents import Corpus  # noqa: E402

Weights = dict[str, Any]
pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries that unpack weights, where one is installed
GROUP = 64  # inputs of a row that share a scale


class Packed(NamedTuple):
    """A matrix [out, in] as a format stores it, and as it is multiplied."""

    stored: Weights  # by what stands after the layer's name
    unpacked: Any


def in_float8(w: Any, *, per: str, scale: str = "weight_scale") -> Packed:
    """Eight bits with an exponent, scaled by tensor, by row or by blocks of 128 x 128."""
    rows, columns = {"tensor": w.shape, "row": (1, w.shape[1]), "block": (128, 128)}[per]
    blocks = w.reshape(w.shape[0] // rows, rows, w.shape[1] // columns, columns)
    scales = blocks.abs().amax((1, 3), keepdim=True) / 448
    values = (blocks / scales).to(torch.float8_e4m3fn)
    shape = {"tensor": (), "row": (-1, 1), "block": scales.shape[::2]}[per]
    stored = {"weight": values.reshape(w.shape), scale: scales.reshape(shape)}
    return Packed(stored, (values.float() * scales).reshape(w.shape))


def in_int8(w: Any, *, scale: str = "weight_scale") -> Packed:
    scales = w.abs().amax(1, keepdim=True) / 127
    values = (w / scales).round().to(torch.int8)
    stored = {"weight": values, scale: scales if scale != "SCB" else (scales * 127)[:, 0]}
    return Packed(stored, values.float() * scales)


def in_four_bits(w: Any) -> tuple[Any, Any, Any]:
    """Values 0 to 15 [out, in], half-precision scales [out, groups], and what 8 less of each value times its scale is."""
    groups = w.reshape(len(w), -1, GROUP)
    scales = (groups.abs().amax(2) / 7).half()
    values = (groups / scales[..., None].float()).round().clamp(-8, 7)
    return (values + 8).long().reshape(w.shape), scales, (values * scales[..., None]).reshape(w.shape)


def eight_to_a_word(values: Any, order: tuple[int, ...] = tuple(range(8))) -> Any:
    """int32 [n, m / 8] of four-bit values [n, m]."""
    eights = values.reshape(len(values), -1, 8)[:, :, list(order)]
    words = (eights << (torch.arange(8) * 4)).sum(2)
    return torch.where(words >= 2**31, words - 2**32, words).int()


def as_gptq(w: Any) -> Packed:
    values, scales, unpacked = in_four_bits(w)
    zeros = torch.full((w.shape[1] // GROUP, len(w)), 7)  # the format stores one less
    stored = {"qweight": eight_to_a_word(values).T, "qzeros": eight_to_a_word(zeros), "scales": scales.T}
    return Packed({**stored, "g_idx": (torch.arange(w.shape[1]) // GROUP).int()}, unpacked)


def as_awq(w: Any) -> Packed:
    values, scales, unpacked = in_four_bits(w)
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    zeros = torch.full((w.shape[1] // GROUP, len(w)), 8)
    stored = {"qweight": eight_to_a_word(values.T, order), "qzeros": eight_to_a_word(zeros, order), "scales": scales.T}
    return Packed(stored, unpacked)


def as_compressed_tensors(w: Any) -> Packed:
    values, scales, unpacked = in_four_bits(w)
    stored = {"weight_packed": eight_to_a_word(values), "weight_scale": scales, "weight_shape": torch.tensor(w.shape)}
    return Packed(stored, unpacked)


def as_mlx(w: Any) -> Packed:
    values, scales, unpacked = in_four_bits(w)
    words = eight_to_a_word(values).view(torch.uint32)
    return Packed({"weight": words, "scales": scales, "biases": -8 * scales}, unpacked)


def as_exl3(w: Any) -> Packed:
    stored = {"trellis": torch.zeros(8, 8, 16, dtype=torch.int16), "suh": torch.ones(w.shape[1]), "svh": torch.ones(len(w))}
    return Packed(stored, w)


def with_bias(w: Any) -> Packed:
    return Packed({"weight": w, "bias": torch.ones(len(w))}, w)


def write(folder: Path, pack: Callable[[Any], Packed] | None = None, **config: Any) -> Path:
    """A network of Llama's kind, its layers packed; or unpacked again, if `folder` ends in .plain."""
    torch.manual_seed(5)
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 1, "num_attention_heads": 2}
    tokenizer = byte_level()
    tokenizer.save_pretrained(folder)
    network = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=320, max_position_embeddings=64, **sizes))
    weights: Weights = {}
    for name, value in network.state_dict().items():
        weight = value * 3 if value.dim() > 1 else value
        layer = name.removesuffix("weight")
        if pack is None or not layer.endswith("proj."):
            weights[name] = weight.bfloat16()
        elif folder.suffix == ".plain":
            weights[name] = pack(weight).unpacked.float()
        else:
            weights |= {layer + after: part.contiguous() for after, part in pack(weight).stored.items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    written = json.loads(network.config.to_json_string()) | {"dtype": "bfloat16", "architectures": ["LlamaForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(written | config))
    return folder


def perplexity(folder: Path) -> float:
    return evaluate(load_model(folder), Corpus.from_strings(TEXT.splitlines())).perplexity


def compressed(form: str, *, inputs: dict[str, Any] | None = None, **weights: Any) -> dict[str, Any]:
    chosen = {"symmetric": True, "dynamic": False, **weights}
    groups = {"group_0": {"targets": ["Linear"], "weights": chosen, "input_activations": inputs}}
    return {
        "quant_method": "compressed-tensors",
        "format": form,
        "quantization_status": "compressed",
        "ignore": ["lm_head"],
        "config_groups": groups,
    }


FOUR_BITS = {"bits": 4, "group_size": GROUP}
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
GPTQ = {"quant_method": "gptq", **FOUR_BITS, "desc_act": False, "sym": True, "checkpoint_format": "gptq"}
AWQ = {"quant_method": "awq", **FOUR_BITS, "zero_point": True, "version": "gemm"}
ROUND = {
    "quant_method": "auto-round",
    **FOUR_BITS,
    "sym": True,
    "packing_format": "auto_round:auto_gptq",
    "data_type": "int",
}
BNB = {"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False, "llm_int8_threshold": 6.0}
PER_TOKEN = {"num_bits": 8, "type": "int", "strategy": "token", "symmetric": True, "dynamic": True}
CT_INT8 = compressed("int-quantized", num_bits=8, type="int", strategy="channel", inputs=PER_TOKEN)
CT_FP8 = compressed("float-quantized", num_bits=8, type="float", strategy="channel")
CT_4BIT = compressed("pack-quantized", num_bits=4, type="int", strategy="group", group_size=GROUP)
per_block = {"per": "block", "scale": "weight_scale_inv"}
per_tensor = {"per": "tensor", "scale": "weight_scale_inv"}

# name, the library that unpacks it, what config.json says, how it is packed, and how far rounding of what is multiplied with
# the weights (to 8 bits, or to half precision) may move a perplexity
READ: list[tuple[str, str, dict[str, Any], Callable[[Any], Packed], float]] = [
    ("fp8-block", "accelerate", FP8, lambda w: in_float8(w, **per_block), 1e-6),
    ("fp8-tensor", "accelerate", FP8 | {"weight_block_size": None}, lambda w: in_float8(w, **per_tensor), 1e-6),
    ("bitsandbytes-int8", "bitsandbytes", BNB, lambda w: in_int8(w, scale="SCB"), 0.01),
    ("compressed-int8", "compressed_tensors", CT_INT8, in_int8, 0.01),
    ("compressed-fp8", "compressed_tensors", CT_FP8, lambda w: in_float8(w, per="row"), 1e-4),
    ("compressed-4bit", "compressed_tensors", CT_4BIT, as_compressed_tensors, 1e-4),
    ("gptq", "gptqmodel", GPTQ, as_gptq, 0.001),
    ("awq", "gptqmodel", AWQ, as_awq, 0.001),
    ("auto-round", "auto_round", ROUND, as_gptq, 0.001),
]


@pytest.mark.parametrize(("name", "library", "quantization", "pack", "tolerance"), READ, ids=[row[0] for row in READ])
def test_what_loads_scores_as_its_unpacked_weights_do(
    name: str,
    library: str,
    quantization: Any,
    pack: Any,
    tolerance: float,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed: it unpacks these weights")
    capfd.readouterr()
    quantized = perplexity(write(tmp_path / name, pack, quantization_config=quantization))
    assert capfd.readouterr().out == "", "what libraries print would stand in tables and JSON"
    assert quantized == pytest.approx(perplexity(write(tmp_path / f"{name}.plain", pack)), rel=tolerance)


MISSING = [
    ("bitsandbytes", BNB, "bitsandbytes"),
    ("compressed_tensors", CT_FP8, "compressed-tensors"),
    ("gptqmodel", AWQ, "gptqmodel"),
    ("gptqmodel", GPTQ, "optimum|gptqmodel"),
    ("auto_round", ROUND, "auto-round"),
    ("torchao", {"quant_method": "torchao", "quant_type": "int8_weight_only"}, "torchao"),
    ("hqq", {"quant_method": "hqq"}, "HQQ"),
    ("optimum", {"quant_method": "quanto", "weights": "int8"}, "optimum-quanto"),
]


@pytest.mark.parametrize(("library", "quantization", "named"), MISSING, ids=[row[2] for row in MISSING])
def test_a_library_that_is_missing_is_named(library: str, quantization: Any, named: str, tmp_path: Path) -> None:
    if find_spec(library) is not None:
        pytest.skip(f"{library} is installed")
    folder = write(tmp_path / "model", in_int8, quantization_config=quantization)
    with pytest.raises(ModelFileError, match=f"needs a library that is not installed: .*({named})"):
        load_model(folder)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_what_needs_a_gpu_says_so(tmp_path: Path) -> None:
    quantization = {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}
    folder = write(tmp_path / "model", lambda w: in_float8(w, per="row"), quantization_config=quantization)
    with pytest.raises(ModelFileError, match=r"cannot be loaded here: .* requires a GPU"):
        load_model(folder)


def fp8(w: Any) -> Packed:
    return in_float8(w, per="tensor")


# Scales that are left out make weights of another size: perplexities of 400 and more for 345, and nothing said so.
UNREAD: list[tuple[str, dict[str, Any], Callable[[Any], Packed], str]] = [
    ("modelopt", {"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}, fp8, "modelopt"),
    ("fp8-other-names", {"quantization_config": FP8 | {"weight_block_size": None}}, fp8, "fp8"),
    ("unknown", {"quantization_config": {"quant_method": "somebody"}}, in_int8, "somebody"),
    ("exl3", {"quantization_config": {"quant_method": "exl3"}}, as_exl3, "exl3"),
    ("mlx", {"quantization": {"group_size": GROUP, "bits": 4}}, as_mlx, "MLX"),
    ("int8-config-lost", {}, in_int8, ""),
    ("fp8-config-lost", {}, fp8, ""),
    ("gptq-config-lost", {}, as_gptq, ""),
    ("bias", {}, with_bias, ""),
]


@pytest.mark.parametrize(("name", "config", "pack", "method"), UNREAD, ids=[row[0] for row in UNREAD])
def test_packed_weights_are_never_read_as_numbers(name: str, config: Any, pack: Any, method: str, tmp_path: Path) -> None:
    folder = write(tmp_path / name, pack, **config)
    why = rf"quantized \({method}\) in a way that transformers does not read" if method else "do not fit config.json, or"
    with pytest.raises(
        ModelFileError, match=rf"\d+ stored values belong to weights and would not be used, .* for one: .*{why}"
    ):
        load_model(folder)


def test_values_that_belong_to_no_weight_of_the_network_do_no_harm(tmp_path: Path) -> None:
    """Masks that old files store, or heads for other tasks."""
    plain = write(tmp_path / "plain")
    extended = write(tmp_path / "extended")
    weights = load_file(extended / "model.safetensors")
    extra = {"model.layers.0.self_attn.bias": torch.ones(4), "score.weight": torch.ones(2, 128)}
    save_file(weights | extra, extended / "model.safetensors", {"format": "pt"})
    assert perplexity(extended) == perplexity(plain)


def test_a_quantization_without_a_method_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"cannot be loaded: .*quant_method"):
        load_model(write(tmp_path / "model", as_gptq, quantization_config={"bits": 4}))
