"""The same figures as lm-evaluation-harness, on the same text under the same policy.

The harness's `loglikelihood_rolling` predicts disjoint stretches of a document, each as long as the model has positions
and seen from the one token before it on; the first begins with the model's BOS token. That is `--first-token bos --end none`
with a stride as long as the context, but for the last window of a document whose length is no multiple of it: the harness
moves it to the left until it is full, so that its predictions see more. Where it begins then depends on how long the
document is: appending to the text changes the figures of tokens before. Here windows begin where they begin, whatever
follows (law 3), and so documents that fit one window, or fill all of theirs, are those whose figures must agree.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("lm_eval")

from lm_eval.api.instance import Instance  # noqa: E402
from lm_eval.api.metrics import bits_per_byte, weighted_perplexity  # noqa: E402
from lm_eval.models.huggingface import HFLM  # noqa: E402
from tests.models.network.conftest import TEXT  # noqa: E402

import lmgauge  # noqa: E402
from lmgauge import train_neural  # noqa: E402
from lmgauge.models.network.options import ScoringOptions  # noqa: E402
from lmgauge.models.network.torch.model import load_neural  # noqa: E402
from lmgauge.text.documents import Corpus  # noqa: E402

CONTEXT = 16
WORDS = ["the", "a", "cat", "dog", "sees", "hears", "it", "runs", "and", "then"]
# The harness, and libraries of its, use what Python and torch have deprecated since.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An LSTM trained here, on words."""
    random = np.random.default_rng(1)
    lines = [" ".join(random.choice(WORDS, int(random.integers(2, 9)))) for _ in range(60)]
    folder = tmp_path_factory.mktemp("trained") / "lstm"
    sizes: dict[str, Any] = {"embedding_size": 8, "hidden_size": 8, "batch_size": 4, "steps": 5, "epochs": 2}
    train_neural("lstm", Corpus.from_strings(lines), output=folder, threads=1, device="cpu", learning_rate=1.0, **sizes)
    return folder


def harness(folder: Path, context: int) -> Any:
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return HFLM(pretrained=network, tokenizer=tokenizer, device="cpu", batch_size=4, max_length=context)


def document(length: Callable[[str], int], tokens: int, source: str) -> str:
    """A piece of a text that has so many tokens."""
    for begin in range(len(source)):
        for end in range(begin + 1, min(len(source), begin + 12 * tokens) + 1):
            piece = source[begin:end]
            if piece == piece.strip() and length(piece) == tokens:
                return piece
    raise AssertionError("no piece has so many tokens")


def assert_agreement(folder: Path, texts: list[str], context: int) -> None:
    model = harness(folder, context)
    requests = [Instance("loglikelihood_rolling", {}, (text,), number) for number, text in enumerate(texts)]
    found = model.loglikelihood_rolling(requests, disable_tqdm=True)
    options = ScoringOptions(context=context, stream=False, first_token="bos", end="none")
    ours = load_neural(folder, options)
    whole = lmgauge.evaluate(ours, Corpus.from_strings(texts))
    items = list(zip(found, texts, strict=True))
    words = weighted_perplexity([(logprob, len(text.split())) for logprob, text in items])
    size = bits_per_byte([(logprob, len(text.encode())) for logprob, text in items])
    assert whole.word_perplexity == pytest.approx(words, rel=1e-4)
    assert whole.bits_per_byte == pytest.approx(size, rel=1e-4)
    for logprob, text in items:
        (batch,) = list(ours.score(Corpus.from_strings([text])))
        assert float(batch.logprob.sum()) == pytest.approx(logprob, rel=1e-4)
        assert len(batch) == len(model.tok_encode(text))


def texts_of(folder: Path, source: str, counts: tuple[int, ...]) -> list[str]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return [document(lambda text: len(tokenizer(text, add_special_tokens=False)["input_ids"]), n, source) for n in counts]


@pytest.mark.parametrize(("kind", "tokenizer"), [("gpt2", "byte-level"), ("llama", "byte-fallback")])
@pytest.mark.parametrize("counts", [(2, 5, CONTEXT - 1, CONTEXT), (2 * CONTEXT, 5 * CONTEXT)])
def test_checkpoints(kind: str, tokenizer: str, counts: tuple[int, ...], checkpoint: Callable[..., Path]) -> None:
    folder = checkpoint(kind, tokenizer)
    texts = texts_of(folder, 2 * TEXT, counts)
    assert all(text.isascii() for text in texts) == (max(counts) <= CONTEXT)
    assert_agreement(folder, texts, CONTEXT)


@pytest.mark.parametrize("counts", [(1, 7, CONTEXT), (2 * CONTEXT, 4 * CONTEXT)])
def test_a_model_trained_here(counts: tuple[int, ...], trained: Path) -> None:
    random = np.random.default_rng(2)
    source = " ".join(random.choice([*WORDS, "unseen", "日本"], 5 * CONTEXT))
    assert_agreement(trained, texts_of(trained, source, counts), CONTEXT)


def test_only_the_last_window_differs(checkpoint: Callable[..., Path]) -> None:
    """A document of two windows and a half: that is where the harness sees more, and nowhere else."""
    folder = checkpoint("gpt2")
    (text,) = texts_of(folder, TEXT, (2 * CONTEXT + CONTEXT // 2,))
    options = ScoringOptions(context=CONTEXT, first_token="bos", end="none")
    (batch,) = load_neural(folder, options).score(Corpus.from_strings([text]))
    begun = float(batch.logprob[: 2 * CONTEXT].sum())
    model = harness(folder, CONTEXT)
    ids = model.tok_encode(text)
    (whole,) = model.loglikelihood_rolling([Instance("loglikelihood_rolling", {}, (text,), 0)], disable_tqdm=True)
    with torch.inference_mode():
        logits = model.model(torch.tensor([ids[-CONTEXT - 1 : -1]])).logits[0].double().log_softmax(-1)
    last = sum(float(logits[i, ids[-CONTEXT + i]]) for i in range(CONTEXT // 2, CONTEXT))
    assert begun + last == pytest.approx(whole, rel=1e-4)
    assert float(batch.logprob.sum()) != pytest.approx(whole, rel=1e-4)


@pytest.mark.parametrize(("kind", "tokenizer"), [("gpt2", "byte-level"), ("llama", "byte-fallback")])
def test_text_after_given_text(kind: str, tokenizer: str, checkpoint: Callable[..., Path]) -> None:
    """`loglikelihood` of a continuation, for every place to cut a line; the harness sets no BOS token before a context.

    It shows the tokens of the context alone, and scores what both as one text have beyond that number: where no token lies
    across the boundary these are the tokens of the continuation. Where one does, the bytes that its tokens stand for are
    not those of the continuation; here such a token is scored, and counted.
    """
    folder = checkpoint(kind, tokenizer)
    model = harness(folder, 48)
    line = TEXT.splitlines()[1]
    whole, cuts = model.tok_encode(line), [i for i in range(1, len(line)) if line[i - 1] != " "]
    alike = [i for i in cuts if whole[: len(alone := model.tok_encode(line[:i]))] == alone != whole]
    requests = [Instance("loglikelihood", {}, (line[:i], line[i:]), 0) for i in alike]
    # One at a time: requests that are one text, cut elsewhere, share an entry of its cache of logits, and come out wrong.
    theirs = [model.loglikelihood([request], disable_tqdm=True)[0][0] for request in requests]
    ours = load_neural(folder, ScoringOptions(context=48, first_token="unscored", end="none"))
    (batch,) = ours.score(Corpus.from_strings([line[i:] for i in cuts], given=[line[:i] for i in cuts]))
    assert batch.before is not None
    assert [i for i, across in zip(cuts, batch.before.crossing, strict=True) if not across] == alike
    assert 3 < len(alike) < len(cuts)
    for i, logprob in zip(alike, theirs, strict=True):
        own = batch.logprob[batch.row_segments() == cuts.index(i)]
        assert float(own.sum()) == pytest.approx(logprob, rel=1e-4)


def test_questions_and_minimal_pairs(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """`acc` and `acc_norm` of multiple choice, and BLiMP's accuracy, from the harness's own log-likelihoods."""
    folder = checkpoint("gpt2", "byte-level")
    model = harness(folder, 48)
    words = 4 * [word for word in TEXT.split() if word.isascii() and word.isalpha()]
    places = range(0, len(words) - 8, 2)
    questions = [
        {"question": " ".join(words[i : i + 3]), "choices": [f" {words[i + 3]}", f" {words[i + 5]} {words[i + 7]}"]}
        for i in places
    ]
    (tmp_path / "q.jsonl").write_text(
        "".join(json.dumps(record | {"answer": 0}) + "\n" for record in questions), encoding="utf-8"
    )
    requests = [Instance("loglikelihood", {}, (q["question"], text), 0) for q in questions for text in q["choices"]]
    theirs = np.array([logprob for logprob, _ in model.loglikelihood(requests, disable_tqdm=True)]).reshape(-1, 2)
    lengths = np.array([[len(text) for text in q["choices"]] for q in questions])
    ours = load_neural(folder, ScoringOptions(context=48, first_token="unscored", end="none"))
    result = lmgauge.multiple_choice(ours, tmp_path / "q.jsonl")
    assert np.array(result.rows["logprobs"]) == pytest.approx(theirs, rel=1e-4)
    assert result.accuracy().accuracy == np.mean(theirs.argmax(1) == 0)
    assert result.accuracy(measure="per_byte").accuracy == np.mean((theirs / lengths).argmax(1) == 0)
    assert 0 < result.accuracy().accuracy < 1

    pairs = [(" ".join(words[i : i + 4]), " ".join(words[i : i + 4][::-1])) for i in places]
    requests = [Instance("loglikelihood", {}, ("", text), 0) for pair in pairs for text in pair]
    theirs = np.array([logprob for logprob, _ in model.loglikelihood(requests, disable_tqdm=True)]).reshape(-1, 2)
    ours = load_neural(folder, ScoringOptions(context=48, first_token="bos", end="none"))
    blimp = lmgauge.pairs(ours, pairs)
    assert np.array(blimp.rows["logprobs"]) == pytest.approx(theirs, rel=1e-4)
    assert blimp.accuracy().accuracy == np.mean(theirs[:, 0] > theirs[:, 1])
