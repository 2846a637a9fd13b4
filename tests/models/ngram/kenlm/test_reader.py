"""KenLM's binary files: read as KenLM reads them, or refused in words."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reference.kenlm import HEADER, murmur, take_apart

import lmgauge
from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.models.ngram.kenlm.reader import KenlmModel, is_kenlm, read_kenlm
from lmgauge.scores.distributions import Entropy, reduce
from lmgauge.text.vocabulary import BOS, EOS

WRITTEN: dict[str, dict[str, Any]] = {
    "probing": {},
    "trie": {"trie": True},
    "quantized trie": {"trie": True, "quantize": (5, 4)},
}
FORMS = (*WRITTEN, "array trie", "quantized array trie")
LN10 = 2.302585092994045684
WORDS = [f"w{i}" for i in range(30)]


def sentences(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    # Few words after each, so that n-grams of all orders come again.
    return [" ".join(WORDS[(draw.randrange(4) + i * i) % 30] for i in range(draw.randrange(1, 9))) for _ in range(count)]


@pytest.fixture(scope="module")
def model() -> lmgauge.NgramModel:
    return lmgauge.train("kneser-ney", lmgauge.Corpus.from_strings(sentences(1, 120)), order=4)


@pytest.fixture(scope="module")
def built(data: Path) -> Callable[[str], Path]:
    """A file of each form, which KenLM's build_binary made of `model`."""
    return lambda form: data / "kenlm4" / f"{form.replace(' ', '-')}.binary"


def scored(model: lmgauge.NgramModel, texts: list[str]) -> lmgauge.scores.ScoreBatch:
    (batch,) = model.score(lmgauge.Corpus.from_strings(texts))
    return batch


@pytest.mark.parametrize("form", ["probing", "trie", "quantized trie"])
def test_scores_are_those_of_the_twin(built: Callable[[str], Path], form: str) -> None:
    path = built(form)
    twin, model = take_apart(path.read_bytes()), lmgauge.load_model(path)
    assert isinstance(model, KenlmModel)
    assert model.file.kind == form
    texts = [*sentences(2, 60), "w3 unseen w4", "unseen"]
    batch, at = scored(model, texts), 0
    for text in texts:
        ids = [twin.words.index("<s>"), *(twin.words.index(w) if w in twin.words else 0 for w in text.split())]
        ids.append(twin.words.index("</s>"))
        for i in range(1, len(ids)):
            value, matched = twin.score(tuple(ids[:i]), ids[i])
            assert batch.logprob[at] == float(value) * LN10
            assert batch.extra["context"][at] == matched
            at += 1
    assert at == len(batch)


@pytest.mark.parametrize("form", FORMS)
def test_scores_are_those_of_kenlm(built: Callable[[str], Path], form: str) -> None:
    kenlm = pytest.importorskip("kenlm")
    path = built(form)
    theirs, texts = kenlm.Model(str(path)), [*sentences(3, 300), "w3 unseen w4", "unseen"]
    wanted = [row for text in texts for row in theirs.full_scores(text)]
    batch = scored(read_kenlm(path), texts)
    assert batch.logprob.tolist() == [value * LN10 for value, _, _ in wanted]
    assert batch.extra["context"].tolist() == [length for _, length, _ in wanted]
    assert (batch.kind == 1).tolist() == [oov for _, _, oov in wanted]


@pytest.mark.parametrize("form", WRITTEN)
def test_all_of_ptb_is_scored_as_kenlm_scores_it(shared_data: Path, tmp_path: Path, form: str) -> None:
    kenlm = pytest.importorskip("kenlm")
    folder = shared_data / "restricted" / "ptb"
    if not folder.is_dir():
        pytest.skip("needs the Penn Treebank")
    names = "ptb.valid.txt.gz", "ptb.test.txt.gz"
    valid, test = (gzip.decompress((folder / name).read_bytes()).decode().splitlines() for name in names)
    reserved = {"reserved": "unk", "order": 3}
    trained = lmgauge.train("modified-kneser-ney", lmgauge.Corpus.from_strings(valid), **reserved)  # type: ignore[arg-type]
    trained.save(tmp_path / "ptb.binary", **WRITTEN[form])
    theirs = kenlm.Model(str(tmp_path / "ptb.binary"))
    wanted = np.array([value for text in test for value, _, _ in theirs.full_scores(text)])
    batches = list(read_kenlm(tmp_path / "ptb.binary").score(lmgauge.Corpus.from_strings(test)))
    assert np.array_equal(np.concatenate([batch.logprob for batch in batches]), wanted * LN10)


@pytest.mark.parametrize("form", FORMS)
def test_whole_distributions_hold_what_scoring_says(built: Callable[[str], Path], form: str) -> None:
    model, texts = read_kenlm(built(form)), sentences(4, 12)
    batch, at = scored(model, texts), 0
    for text in texts:
        ids = [BOS, *model.vocabulary.ids(text.split()), EOS]
        for i in range(1, len(ids)):
            row = model.log_distribution(np.array(ids[:i], np.uint32))
            assert row[ids[i]] == pytest.approx(batch.logprob[at], abs=1e-12)
            assert row[BOS] == -np.inf
            if "quantized" not in form:
                assert np.exp(row).sum() == pytest.approx(1, abs=1e-5)
            at += 1


def test_entropies_and_divergences_are_those_of_the_model_it_was_made_from(
    model: lmgauge.NgramModel, built: Callable[[str], Path]
) -> None:
    corpus = lmgauge.Corpus.from_strings(sentences(5, 30))
    binary = read_kenlm(built("trie"))
    perplexities = [lmgauge.evaluate(m, corpus).perplexity for m in (model, binary)]
    assert perplexities[1] == pytest.approx(perplexities[0], rel=1e-6)
    probing = read_kenlm(built("probing"))
    ours, theirs = (
        np.concatenate([batch.extra["entropy"] for batch in reduce(m, corpus, [Entropy()])]) for m in (model, probing)
    )
    assert np.allclose(ours, theirs, atol=1e-5)
    assert float(lmgauge.divergence(model, probing, corpus).kl_ab_nats.value) == pytest.approx(0, abs=1e-9)


def test_a_trie_lists_its_ngrams(model: lmgauge.NgramModel, built: Callable[[str], Path], tmp_path: Path) -> None:
    listed = read_kenlm(built("trie")).listed()
    assert listed.types == model.types
    texts = sentences(6, 50)
    assert np.allclose(scored(listed, texts).logprob, scored(model, texts).logprob, atol=1e-6)
    read_kenlm(built("array trie")).save(tmp_path / "again.arpa")
    assert lmgauge.load_model(tmp_path / "again.arpa").types == model.types  # type: ignore[attr-defined]


def test_a_probing_file_does_not_list_them(built: Callable[[str], Path], tmp_path: Path) -> None:
    probing = read_kenlm(built("probing"))
    with pytest.raises(UsageError, match="holds hashes only"):
        probing.save(tmp_path / "probing.arpa")
    with pytest.raises(UsageError, match="holds hashes only"):
        lmgauge.models.write_arpa(probing, tmp_path / "probing.arpa")
    with pytest.raises(UsageError, match="holds hashes only"):
        lmgauge.prune(probing, threshold=1e-6)
    with pytest.raises(UsageError, match="holds hashes only"):
        lmgauge.mix([probing, probing], weights=[0.5, 0.5], static=True)
    assert not (tmp_path / "probing.arpa").exists()


def test_tries_are_pruned_and_merged(model: lmgauge.NgramModel, built: Callable[[str], Path], tmp_path: Path) -> None:
    trie = read_kenlm(built("trie"))
    assert lmgauge.prune(trie, to_size=400).model.types == lmgauge.prune(model, to_size=400).model.types
    merged = lmgauge.mix([trie, model.with_reserved("unk")], weights=[0.5, 0.5], static=True)
    merged.model.save(tmp_path / "merged.binary")
    texts = sentences(15, 30)
    assert np.allclose(
        scored(read_kenlm(tmp_path / "merged.binary"), texts).logprob, scored(model, texts).logprob, atol=1e-4
    )


def test_a_mixture_keeps_a_copy(model: lmgauge.NgramModel, built: Callable[[str], Path], tmp_path: Path) -> None:
    parts = [read_kenlm(built("probing")), read_kenlm(built("quantized trie"))]
    mixture = lmgauge.mix(parts, weights=[0.25, 0.75])  # type: ignore[arg-type]
    mixture.save(tmp_path / "mixed")
    assert lmgauge.load_model(tmp_path / "mixed").fingerprint == mixture.fingerprint


def test_files_are_told_by_how_they_begin(built: Callable[[str], Path], tmp_path: Path) -> None:
    renamed = tmp_path / "model.txt"
    renamed.write_bytes(built("probing").read_bytes())
    assert is_kenlm(renamed)
    assert lmgauge.load_model(renamed).label == "kenlm4"
    assert read_kenlm(renamed).fingerprint == read_kenlm(built("probing")).fingerprint


def changed(path: Path, changes: dict[int, bytes], target: Path) -> Path:
    data = bytearray(path.read_bytes())
    for at, new in changes.items():
        data[at : at + len(new)] = new
    target.write_bytes(data)
    return target


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({49: b"4"}, "another version of KenLM's format"),
        ({60: struct.pack(">f", 1.0)}, "another kind of machine"),
        ({80: struct.pack(">Q", 1)}, "another kind of machine"),
        ({34: b"incomplete\n"}, "did not finish writing it"),
        ({HEADER: b"\x01"}, "its order is 1"),
        ({HEADER: b"\xc8"}, "its order is 200"),
        ({HEADER + 4: struct.pack("<f", float("nan"))}, "not a sensible number"),
        ({HEADER + 8: b"\x01"}, "rest costs"),
        ({HEADER + 8: b"\x09"}, "none that KenLM has"),
        ({HEADER + 12: b"\x00"}, "without its words"),
        ({HEADER + 16: b"\x07"}, "another version"),
        ({HEADER + 20: struct.pack("<Q", 2**60)}, "more n-grams than it has room for"),
        ({HEADER + 28: struct.pack("<Q", 12345)}, "shorter than its header says"),
    ],
)
def test_other_and_damaged_files_are_refused(
    built: Callable[[str], Path], tmp_path: Path, changes: dict[int, bytes], message: str
) -> None:
    with pytest.raises(ModelFileError, match=message):
        lmgauge.load_model(changed(built("trie"), changes, tmp_path / "x.binary"))


def test_words_must_be_those_of_the_vocabulary(built: Callable[[str], Path], tmp_path: Path) -> None:
    for form in FORMS:
        data = built(form).read_bytes()
        at = data.rindex(b"\0w7\0") + 1
        with pytest.raises(ModelFileError, match="is not the one that its vocabulary has"):
            read_kenlm(changed(built(form), {at: b"w8"}, tmp_path / "x.binary"))
        (tmp_path / "short.binary").write_bytes(data[:-4])
        with pytest.raises(ModelFileError, match="its words end too early"):
            read_kenlm(tmp_path / "short.binary")


@pytest.mark.parametrize("form", FORMS)
def test_no_bytes_crash_it(built: Callable[[str], Path], tmp_path: Path, form: str) -> None:
    whole, draw, opened = built(form).read_bytes(), random.Random(form), 0
    for trial in range(250):
        data = bytearray(whole)
        if trial % 5 == 0:
            del data[draw.randrange(len(data)) :]
        for _ in range(draw.randrange(1, 12)):
            if data:
                within = min(len(data), 300) if trial % 2 else len(data)
                data[draw.randrange(within)] = draw.choice([0, 255, draw.randrange(256)])
        path = tmp_path / "damaged.binary"
        path.write_bytes(data)
        try:
            model = read_kenlm(path)
            scored(model, ["w1 w2 w3 w4 w5 unseen", "w9"])
            model.log_distribution(model.vocabulary.ids(["w1", "w2", "w3"]))
            opened += 1
            model.listed()
        except (ModelFileError, InputError, UsageError):
            pass
    assert opened > 10


def test_the_twin_hashes_as_the_kernel_does() -> None:
    from lmgauge._kernels import _native

    words = [b"", b"a", b"eight by", b"longer than eight", "ü".encode()]
    offsets = np.cumsum([0, *map(len, words)]).astype(np.int64)
    hashes = np.empty(len(words), np.uint64)
    _native.hash_kenlm_words(offsets, np.frombuffer(b"".join(words) + bytes(8), np.uint8), hashes)
    assert hashes.tolist() == [murmur(word) for word in words]


@pytest.mark.parametrize("form", FORMS)
def test_steps_and_short_texts_are_those_of_kenlm(built: Callable[[str], Path], form: str) -> None:
    kenlm = pytest.importorskip("kenlm")
    from lmgauge.integrations import kenlm as ours

    one, other = ours.Model(str(built(form))), kenlm.Model(str(built(form)))
    for text in [*sentences(13, 60), "w3 unseen w4"]:
        assert one.score(text) == other.score(text)
        assert list(one.full_scores(text)) == list(other.full_scores(text))
        states, theirs = [ours.State(), ours.State()], [kenlm.State(), kenlm.State()]
        one.BeginSentenceWrite(states[0])
        other.BeginSentenceWrite(theirs[0])
        for word in text.split():
            assert one.BaseScore(states[0], word, states[1]) == other.BaseScore(theirs[0], word, theirs[1])
            states.reverse()
            theirs.reverse()


def test_a_text_scored_at_once_is_the_sum_of_its_steps(built: Callable[[str], Path]) -> None:
    binary = read_kenlm(built("array trie"))
    for text in sentences(14, 20):
        state, total = binary.begin(), []
        for word in [*text.split(), "</s>"]:
            logprob, state = binary.step(state, word)
            total.append(logprob)
        assert total == scored(binary, [text]).logprob.tolist()
