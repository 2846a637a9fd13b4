"""A base stored as hidden states: the figures are those of the two models, and what does not fit is said in a line."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evaluation.divergence import bases

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError
from lmgauge.evaluation.divergence import bases as stored_bases
from lmgauge.evaluation.divergence.base_file import BaseFile, BaseWriter, StateRows
from lmgauge.models import NeuralModel, registry
from lmgauge.settings import ScoringOptions

torch = pytest.importorskip("torch", reason="the extra neural is not installed")
pytest.importorskip("transformers", reason="the extra neural is not installed")

from tests.evaluation.divergence.test_networks import changed  # noqa: E402
from tests.models.network import conftest  # noqa: E402

LINES = [line for line in conftest.TEXT.splitlines() if line] * 3
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return conftest.byte_level()


def pair(kind: str, tokenizer: Any, dtype: Any = torch.float32, **options: Any) -> tuple[NeuralModel, NeuralModel]:
    """A network of a kind, and the same with noise on its weights."""
    network = conftest.network(kind, len(tokenizer))
    if (bias := network.get_output_embeddings().bias) is not None:
        with torch.no_grad():
            bias.normal_()
    both = [copy.deepcopy(one).to(dtype) for one in (network, changed(network, size=0.3))]
    return tuple(NeuralModel.wrap(one, tokenizer, ScoringOptions(**options)) for one in both)  # type: ignore[return-value]


def saved_folder(model: NeuralModel, tokenizer: Any, folder: Path) -> Path:
    model.network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def assert_same_figures(ours: Any, theirs: Any) -> None:
    assert (ours.events, ours.segments) == (theirs.events, theirs.segments)
    assert theirs.kl_ab_nats.value > 1e-5
    for name, figure in theirs.figures().items():
        assert ours.figures()[name].value == pytest.approx(figure.value, rel=1e-6, abs=1e-12), name
    assert ours.kl_ab_quantiles_nats == pytest.approx(theirs.kl_ab_quantiles_nats, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["gpt2", "gptj", "gemma2", "cohere"])  # plain, with a bias, with soft caps, scaled
def test_figures_are_those_of_both_models(kind: str, dtype: str, tokenizer: Any, tmp_path: Path) -> None:
    base, candidate = pair(kind, tokenizer, getattr(torch, dtype))
    text = Corpus.from_strings(LINES)
    saved = lmgauge.save_base(base, text, tmp_path / "a.base", exact="states", events=None)
    stored = lmgauge.divergence(saved.path, candidate, text, model=base)
    assert_same_figures(stored, lmgauge.divergence(base, candidate, text, events=None))
    assert "stored:states" in stored.signature
    assert stored.storage is not None
    assert stored.storage.errors == {}
    with BaseFile(saved.path) as file:
        assert file.header.states is not None
        width = file.header.states.width
        assert file.header.states.dtype == dtype
    # 21 bytes for the token and what is known of it, and the ends of the file.
    assert saved.file_bytes <= saved.events * (width * (2 if dtype == "bfloat16" else 4) + 21) + 6000


@pytest.mark.parametrize(
    "options", [{"first_token": "uniform"}, {"first_token": "unscored"}, {"stream": True, "context": 16}, {"end": "none"}]
)
def test_a_sample_under_any_policy(options: dict[str, Any], tokenizer: Any, tmp_path: Path) -> None:
    base, candidate = pair("gptj", tokenizer, **options)
    text = Corpus.from_strings(LINES, block_bytes=200)
    saved = lmgauge.save_base(base, text, tmp_path / "a.base", exact="states", events=40)
    assert 40 <= saved.events < saved.total_events
    assert_same_figures(
        lmgauge.divergence(saved.path, candidate, text, model=base), lmgauge.divergence(base, candidate, text, events=40)
    )


def test_turns_of_conversations(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    from tests.models.network import test_framed_turns as turns

    fast = turns.tokenizer()
    network = turns.network(len(fast))
    wrapped = (NeuralModel.wrap(one, fast) for one in (network, changed(network, size=0.3)))
    base, candidate = (saved_folder(one, fast, tmp_path / name) for one, name in zip(wrapped, "bc", strict=True))
    text = Corpus.from_conversations(turns.CONVERSATIONS)
    saved = lmgauge.save_base(base, text, tmp_path / "a.base", exact="states", events=None)
    found = lmgauge.divergence(saved.path, candidate, text)
    assert_same_figures(found, lmgauge.divergence(base, candidate, text, events=None))


def test_the_folder_is_known_and_may_move(tokenizer: Any, tmp_path: Path) -> None:
    models = pair("gemma2", tokenizer)
    base, candidate = (saved_folder(one, tokenizer, tmp_path / name) for one, name in zip(models, "bc", strict=True))
    text, file = Corpus.from_strings(LINES), tmp_path / "a.base"
    lmgauge.save_base(base, text, file, exact="states", dtype="bfloat16")
    expected = lmgauge.divergence(base, candidate, text, dtype="bfloat16")
    # The file says in what its layer multiplies, whatever the candidate does.
    assert_same_figures(lmgauge.divergence(file, candidate, text, dtype="bfloat16"), expected)
    coarse = lmgauge.divergence(file, candidate, text)
    assert coarse.perplexity_a.value == expected.perplexity_a.value
    moved = base.rename(tmp_path / "moved")
    with pytest.raises(InputError, match=r"needs the output layer of b, and its folder .* is not here; name the model"):
        lmgauge.divergence(file, candidate, text)
    assert_same_figures(lmgauge.divergence(file, candidate, text, model=moved, dtype="bfloat16"), expected)
    for other in (candidate, models[1]):
        with pytest.raises(InputError, match=r"needs the output layer of b in bfloat16, and that of .* is another"):
            lmgauge.divergence(file, candidate, text, model=other)


def test_what_does_not_fit_is_refused(tokenizer: Any, tmp_path: Path) -> None:
    base, candidate = pair("gpt2", tokenizer)
    text, file = Corpus.from_strings(LINES), tmp_path / "a.base"
    lmgauge.save_base(base, text, file, exact="states")
    with pytest.raises(InputError, match=r"it was in memory, or came from a hub; name the model \(--model\)"):
        lmgauge.divergence(file, candidate, text)
    with pytest.raises(UsageError, match="the base is a model itself; leave it out"):
        lmgauge.divergence(base, candidate, text, model=base)
    words = lmgauge.train("witten-bell", text, order=2)
    with pytest.raises(InputError, match=r"that of wb2 is another"):
        lmgauge.divergence(file, candidate, text, model=words)
    with pytest.raises(InputError, match="cuts text by another tokenizer"):
        lmgauge.divergence(file, words, text, model=base)
    with pytest.raises(InputError, match="the text is not that of the stored base"):
        lmgauge.divergence(file, candidate, Corpus.from_strings(LINES[1:]), model=base)
    lmgauge.save_base(base, text, file)
    with pytest.raises(UsageError, match="has no hidden states, so it needs no model"):
        lmgauge.divergence(file, candidate, text, model=base)


def test_no_code_runs_of_a_folder_that_only_the_file_names(
    monkeypatch: pytest.MonkeyPatch, tokenizer: Any, tmp_path: Path
) -> None:
    models = pair("gpt2", tokenizer)
    base, candidate = (saved_folder(one, tokenizer, tmp_path / name) for one, name in zip(models, "bc", strict=True))
    text, file = Corpus.from_strings(LINES), tmp_path / "a.base"
    lmgauge.save_base(base, text, file, exact="states")
    trusted: dict[str, bool] = {}
    load = registry.open_model

    def noting(path: Any, options: ScoringOptions) -> Any:
        trusted[str(path)] = options.trust_remote_code
        return load(path, options)

    monkeypatch.setattr(registry, "open_model", noting)
    lmgauge.divergence(file, candidate, text, trust_remote_code=True)
    assert trusted == {str(base): False, str(candidate): True}
    lmgauge.divergence(file, candidate, text, model=base, trust_remote_code=True)
    assert trusted == {str(base): True, str(candidate): True}


class Odd(torch.nn.Module):
    """A last step that is more than a product."""

    def __init__(self, linear: Any) -> None:
        super().__init__()
        self.linear, self.weight, self.bias = linear, linear.weight, None

    def forward(self, states: Any) -> Any:
        return self.linear(states) ** 3


def test_a_last_step_that_is_not_known_apart_is_refused(tokenizer: Any, tmp_path: Path) -> None:
    network = conftest.network("gptj", len(tokenizer))
    network.set_output_embeddings(Odd(network.get_output_embeddings()))
    text = Corpus.from_strings(LINES)
    for model in (NeuralModel.wrap(network, tokenizer), lmgauge.train("witten-bell", text, order=2)):
        with pytest.raises(UsageError, match="no hidden states that one known product makes its distributions of"):
            lmgauge.save_base(model, text, tmp_path / "a.base", exact="states")
    assert list(tmp_path.iterdir()) == []


def test_files_that_lie_are_refused(tokenizer: Any, tmp_path: Path) -> None:
    base, _ = pair("gpt2", tokenizer)
    file = lmgauge.save_base(base, Corpus.from_strings(LINES), tmp_path / "a.base", exact="states").path
    (rows,), data = bases.read(file), file.read_bytes()
    assert isinstance(rows, StateRows)
    assert "was damaged, cut off or changed" in bases.attempt(tmp_path / "b.base", data[:900] + b"x" + data[901:])
    for old, new, message in (
        (b'"width": 32', b'"width": 31', "the lists of 'states' have other lengths"),
        (b'"width": 32', b'"width": -2', "Expected `int` >= 1 - at `$.states.width`"),
        (b'"dtype": "float32"', b'"dtype": "float16"', "Invalid enum value 'float16' - at `$.states.dtype`"),
        (b'"states": {', b'"stated": {', "it does not say what hidden states it holds"),
    ):
        assert data.count(old) == 1
        assert message in bases.attempt(tmp_path / "b.base", bases.sealed(data.replace(old, new)))


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_state_that_is_not_finite_is_refused(value: float, tmp_path: Path, tokenizer: Any) -> None:
    base, _ = pair("gpt2", tokenizer)
    whole = stored_bases.state_rows

    def broken(tile: Any, width: int) -> StateRows:
        rows = whole(tile, width)
        rows.states[0, 1] = value
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_bases, "state_rows", broken)
        lmgauge.save_base(base, Corpus.from_strings(LINES), tmp_path / "a.base", exact="states")
    assert "a hidden state is not finite" in bases.attempt(tmp_path / "b.base", (tmp_path / "a.base").read_bytes())


def test_states_are_written_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch, tokenizer: Any, tmp_path: Path) -> None:
    base, _ = pair("gpt2", tokenizer)
    sizes: list[int] = []
    write = BaseWriter.write

    def counting(self: BaseWriter, table: Any) -> None:
        sizes.append(len(table))
        write(self, table)

    monkeypatch.setattr(BaseWriter, "write", counting)
    monkeypatch.setattr(stored_bases, "_STATE_TILES", 3)
    saved = lmgauge.save_base(base, Corpus.from_strings(LINES), tmp_path / "a.base", exact="states", events=None)
    assert sum(sizes) == saved.events > 100
    assert max(sizes) <= 3 * 4  # four rows a tile on a processor


PEAK = """
import sys
import lmgauge, numpy as np, torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from lmgauge.evaluation.divergence.base_file import BaseFile
from lmgauge.models import NeuralModel
from lmgauge.models.network.torch import output_layer
from lmgauge.models.network.torch.architectures import RecurrentConfig, RecurrentForCausalLM
from lmgauge.settings import ScoringOptions

output_layer._CPU_PIECES = (256, 1024, 64)  # fewer steps
words = ["<s>", "<unk>", *(f"w{i}" for i in range(998))]
made = Tokenizer(models.WordLevel(dict(zip(words, range(1000))), unk_token="<unk>"))
made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="<s>", unk_token="<unk>")
torch.manual_seed(0)
network = RecurrentForCausalLM(RecurrentConfig(cell="lstm", vocab_size=1000, embedding_size=8, hidden_size=16)).eval()
base = NeuralModel.wrap(network, tokenizer, ScoringOptions(stream=True))

def peak(tokens):
    ids = np.random.default_rng(1).integers(2, 1000, tokens)
    text = lmgauge.Corpus.from_strings([" ".join(words[i] for i in ids.tolist())])
    saved = lmgauge.save_base(base, text, sys.argv[1], exact="states", events=None, threads=1)
    with BaseFile(saved.path) as file:
        done = sum(len(part) for rows in file.rows() for part in rows.computed(base.last_layer))
    assert done == saved.events >= tokens
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))) * 1024

short = peak(1 << 10)
print(peak(1 << 16) - short)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measured as Linux does")
def test_memory_is_flat_from_a_thousand_to_64_thousand_tokens_of_context(tmp_path: Path) -> None:
    own = os.environ | {"OMP_NUM_THREADS": "1"}
    run = [sys.executable, "-c", PEAK, str(tmp_path / "a.base")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300, cwd=ROOT, env=own, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 100 << 20  # whole distributions: 262 MB; what the tokenizer says of each token: about 60
