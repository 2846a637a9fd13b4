"""Models in GGUF files: every prediction beside a slow twin's, whatever is chosen as its context."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.models.network.gguf import gguf_files
from tests.models.network.gguf.gguf_files import (
    POSITIONS,
    Vocabulary,
    byte_level_vocabulary,
    logprobs,
    sentencepiece_vocabulary,
    write_gguf,
)

import lmgauge
from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.models.network.gguf import model as gguf_engine
from lmgauge.models.network.gguf import network as gguf_network
from lmgauge.models.network.gguf.model import GgufModel, load_gguf
from lmgauge.models.network.gguf.network import GgufNetwork
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import LanguageModel
from lmgauge.models.registry import load_model
from lmgauge.scores import EOS_KIND, TOKEN, ScoreBatch
from lmgauge.text import work_units
from lmgauge.text.documents import Corpus
from lmgauge.text.vocabulary import BOS, EOS

EXACT = 2e-4  # float32 and a table of half-precision sines against float64
LINES = ["the cat sat.", "", "é 日 the", "a" * 70 + " the cat", "  two  ", "s"]
Twin = Callable[[Any], NDArray[np.float64]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("llama_cpp")
    return tmp_path_factory.mktemp("gguf")


@pytest.fixture(scope="module")
def lines(folder: Path) -> Path:
    path = folder / "lines.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def spm(folder: Path) -> tuple[Path, Twin]:
    """A file whose texts begin with a BOS token, and its twin."""
    tensors = write_gguf(folder / "spm.gguf", sentencepiece_vocabulary())
    return folder / "spm.gguf", lambda ids: logprobs(tensors, ids)


@pytest.fixture(scope="module")
def bpe(folder: Path) -> tuple[Path, Twin]:
    """A file whose texts begin without one, and its twin."""
    tensors = write_gguf(folder / "bpe.gguf", byte_level_vocabulary())
    return folder / "bpe.gguf", lambda ids: logprobs(tensors, ids)


def expected(twin: Twin, sequence: list[int], context: int = POSITIONS, stride: int | None = None) -> list[float]:
    """Each prediction from the smallest k with n <= k * stride + context, of the window that begins at k * stride."""
    stride = stride or context
    windows: dict[int, NDArray[np.float64]] = {}
    found = []
    for n in range(1, len(sequence)):
        begin = stride * next(k for k in range(n + 1) if n <= k * stride + context)
        if begin not in windows:
            windows[begin] = twin(sequence[begin : begin + context])
        found.append(float(windows[begin][n - 1 - begin, sequence[n]]))
    return found


def load(path: Path, **options: Any) -> GgufModel:
    """On one thread: several that wait for each other take minutes where others need the processor too."""
    model = load_gguf(path, ScoringOptions(**options))
    model.network.set_threads(1)
    return model


def score(model: GgufModel, corpus: Corpus) -> list[ScoreBatch]:
    return list(model.score(corpus, threads=1))


def own_ids(model: GgufModel, text: str) -> list[int]:
    return model.network.tokenize(text.encode())


def joined(batches: list[ScoreBatch]) -> NDArray[np.float64]:
    return np.concatenate([batch.logprob for batch in batches])


@pytest.mark.parametrize(
    ("context", "stride"), [(None, None), (16, None), (16, 8), (17, 5), (7, 1), (1, 1), (POSITIONS, 40)]
)
def test_windows(spm: tuple[Path, Twin], lines: Path, context: int | None, stride: int | None) -> None:
    model = load(spm[0], context=context, stride=stride)
    [batch] = score(model, Corpus.from_files([lines]))
    values = []
    for line, count in zip(LINES, batch.segment_events.tolist(), strict=True):
        ids = own_ids(model, line + "\n")
        assert count == len(ids)
        values += expected(spm[1], [1, *ids], context or POSITIONS, stride)
    assert batch.logprob == pytest.approx(values, abs=EXACT)
    assert (batch.kind == TOKEN).all()
    assert not batch.lossy.any()
    assert str(model.context_policy) == f"sentence,{context or POSITIONS}/{stride or context or POSITIONS},end=newline"


@pytest.mark.parametrize(("context", "stride"), [(16, 16), (16, 6), (None, None)])
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_streams(spm: tuple[Path, Twin], lines: Path, context: int | None, stride: int | None, block_bytes: int) -> None:
    model = load(spm[0], context=context, stride=stride, stream=True)
    batches = score(model, Corpus.from_files([lines], block_bytes=block_bytes))
    sequence = [1, *(token for line in LINES for token in own_ids(model, line + "\n"))]
    assert joined(batches) == pytest.approx(expected(spm[1], sequence, context or POSITIONS, stride), abs=EXACT)
    assert model.context_policy.runs_on


@pytest.mark.parametrize("end", ["eos", "newline", "none"])
def test_ends_of_segments(spm: tuple[Path, Twin], lines: Path, end: Any) -> None:
    model = load(spm[0], end=end)
    [batch] = score(model, Corpus.from_files([lines]))
    ends = {"eos": [2], "newline": own_ids(model, "a\n")[-1:], "none": []}[end]
    values = []
    for line in LINES:
        ids = own_ids(model, line + "\n" if end == "newline" else line)
        values += expected(spm[1], [1, *ids, *(ends if end == "eos" else [])])
    assert batch.logprob == pytest.approx(values, abs=EXACT)
    assert np.count_nonzero(batch.kind == EOS_KIND) == (len(LINES) if end == "eos" else 0)
    last = np.cumsum(batch.segment_events) - 1
    lengths = [len(line.encode()) for line in LINES]
    assert [int(batch.ends[i]) for i, n in zip(last, lengths, strict=True) if n] == [n for n in lengths if n]


def test_first_tokens(bpe: tuple[Path, Twin], lines: Path) -> None:
    def scored(**options: Any) -> tuple[GgufModel, ScoreBatch]:
        model = load(bpe[0], **options)
        [batch] = score(model, Corpus.from_files([lines]))
        return model, batch

    model, uniform = scored()
    assert model.context_policy.first == "uniform"  # the file says that texts begin without a BOS token
    sequences = [own_ids(model, line + "\n") for line in LINES]
    rest = [expected(bpe[1], ids) for ids in sequences]
    first = -math.log(model.network.size)
    assert uniform.logprob == pytest.approx([value for values in rest for value in [first, *values]], abs=EXACT)
    _, unscored = scored(first_token="unscored")
    assert unscored.logprob == pytest.approx([value for values in rest for value in values], abs=EXACT)
    assert unscored.lossy.all()
    for choice in ("bos", "eos"):
        _, batch = scored(first_token=choice)
        values = [value for ids in sequences for value in expected(bpe[1], [262, *ids])]
        assert batch.logprob == pytest.approx(values, abs=EXACT)


@pytest.mark.parametrize("options", [{}, {"context": 9, "stride": 4}, {"stream": True, "context": 12, "stride": 5}])
def test_distributions(spm: tuple[Path, Twin], lines: Path, options: dict[str, Any]) -> None:
    model = load(spm[0], **options)
    context, stride = options.get("context", POSITIONS), options.get("stride", options.get("context", POSITIONS))
    ids = np.concatenate(([BOS], np.random.default_rng(5).integers(3, len(model.vocabulary), 60))).astype(np.uint32)
    own = model.tokens.network_ids[ids].tolist()
    for n in (1, 2, 33, 34, 40, 61, 32, 20, 20, 7):
        begin = next(k for k in range(n + 1) if n <= k * stride + context) * stride
        found = model.log_distribution(ids[:n])
        assert found == pytest.approx(spm[1](own[begin:n])[-1][model.tokens.network_ids], abs=EXACT)
        assert np.exp(found).sum() == pytest.approx(1.0, abs=1e-12)


def test_distributions_depend_on_nothing_but_the_context(spm: tuple[Path, Twin]) -> None:
    def fresh(context: list[int]) -> list[float]:
        return load(spm[0]).log_distribution(context).tolist()

    model = load(spm[0])
    ids = [BOS, *np.random.default_rng(6).integers(3, 300, 45).tolist()]
    for context in (ids[:40], ids[:41], ids[:35], [BOS, *ids[5:40]], ids[:33], ids[:1], ids[:46]):
        assert model.log_distribution(context).tolist() == fresh(context)


def test_scores_and_distributions_may_be_asked_for_by_turns(spm: tuple[Path, Twin], lines: Path) -> None:
    for options in ({}, {"stream": True, "context": 12, "stride": 5}):
        model = load(spm[0], **options)
        corpus = Corpus.from_files([lines], block_bytes=1)
        undisturbed = joined(score(model, corpus))
        disturbed = []
        for batch in model.score(corpus, threads=1):
            disturbed.append(batch.logprob)
            model.log_distribution([BOS, 5, 6])
        assert np.concatenate(disturbed) == pytest.approx(undisturbed, abs=model.tolerance)


def test_rows_and_distributions_agree(spm: tuple[Path, Twin], lines: Path) -> None:
    model = load(spm[0], end="eos")
    [batch] = score(model, Corpus.from_files([lines]))
    at = 0
    for count in batch.segment_events.tolist():
        ids = [BOS, *batch.token_ids[at : at + count].tolist()]
        for i in range(1, count + 1, 7):
            assert model.log_distribution(ids[:i])[ids[i]] == pytest.approx(batch.logprob[at + i - 1], abs=EXACT)
        at += count
    assert (batch.token_ids[np.cumsum(batch.segment_events) - 1] == EOS).all()


def test_neighbours_blocks_and_threads_change_nothing(spm: tuple[Path, Twin], lines: Path) -> None:
    model = load(spm[0])
    whole = joined(list(model.score(Corpus.from_files([lines]), threads=1)))
    assert np.array_equal(whole, joined(score(model, Corpus.from_files([lines], block_bytes=1))))
    [short] = model.score(Corpus.from_strings([LINES[0] + "\n"]), threads=2)
    assert np.array_equal(whole[: len(short)], short.logprob)
    [block] = Corpus.from_files([lines])
    assert np.array_equal(whole, model.score_block(block, spans=False).logprob)
    assert len(model.score_block(block, spans=False).ends) == 0


def test_later_text_changes_nothing(spm: tuple[Path, Twin]) -> None:
    model = load(spm[0])
    [a] = score(model, Corpus.from_strings(["the cat sat the cat sat"]))
    [b] = score(model, Corpus.from_strings(["the cat sat éé"]))
    assert a.logprob[:3] == pytest.approx(b.logprob[:3], abs=1e-6)


@pytest.mark.parametrize("options", [{}, {"context": 9, "stride": 4}, {"first_token": "unscored"}])
@pytest.mark.parametrize("together", [1, 16, 40, 256])
def test_contexts_beside_each_other_are_as_alone(
    spm: tuple[Path, Twin],
    lines: Path,
    options: dict[str, Any],
    together: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gguf_engine, "_TOGETHER", 1)
    alone = joined(score(load(spm[0], **options), Corpus.from_files([lines])))
    monkeypatch.setattr(gguf_engine, "_TOGETHER", together)
    model = load(spm[0], **options)
    shown: list[int] = []
    with monkeypatch.context() as patch:
        of_many = GgufNetwork.logits_of_many

        def counted(network: GgufNetwork, contexts: Any, wanted: Any) -> Any:
            shown.append(len(contexts))
            assert sum(map(len, contexts)) <= together
            return of_many(network, contexts, wanted)

        patch.setattr(GgufNetwork, "logits_of_many", counted)
        assert joined(score(model, Corpus.from_files([lines]))) == pytest.approx(alone, abs=EXACT)
    assert bool(shown) == (together > 1)
    assert min(shown, default=2) > 1


def test_no_more_contexts_than_the_library_takes(
    spm: tuple[Path, Twin], lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = joined(score(load(spm[0]), Corpus.from_files([lines])))
    monkeypatch.setattr(gguf_network, "_SEQUENCES", 2)
    assert joined(score(load(spm[0]), Corpus.from_files([lines]))) == pytest.approx(expected, abs=EXACT)


@pytest.mark.parametrize("options", [{}, {"context": 9, "stride": 4}, {"stream": True, "context": 12, "stride": 5}])
@pytest.mark.parametrize("asked", [None, [0, 1, 30, 31, 60, 98], [50], []])
def test_tiles_are_the_twins(
    spm: tuple[Path, Twin], lines: Path, options: dict[str, Any], asked: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf_engine, "_TOGETHER", 40)
    model = load(spm[0], **options)
    chosen = None if asked is None else np.array(asked, np.int64)
    rows: list[NDArray[np.float64]] = []
    for block in model.distributions(Corpus.from_files([lines], block_bytes=64), events=chosen, threads=1):
        rows += [row for tile in block.tiles() for row in np.asarray(tile.logprob, np.float64)]
    sequences = [own_ids(model, line + "\n") for line in LINES]
    sequences = [list(itertools.chain(*sequences))] if "stream" in options else sequences
    context, stride = options.get("context", POSITIONS), options.get("stride", options.get("context", POSITIONS))
    expected = []
    for ids in sequences:
        whole = [1, *ids]
        for n in range(1, len(whole)):
            begin = next(k for k in range(n + 1) if n <= k * stride + context) * stride
            expected.append((whole, begin, n))
    wanted = expected if asked is None else [expected[event] for event in asked]
    assert len(rows) == len(wanted)
    for row, (whole, begin, n) in zip(rows, wanted, strict=True):
        assert row == pytest.approx(spm[1](whole[begin:n])[-1][model.tokens.network_ids], abs=EXACT)


def test_nothing_is_computed_that_is_not_asked_about(
    spm: tuple[Path, Twin], lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(spm[0])
    seen: list[tuple[int, int]] = []
    decode = GgufNetwork._decode

    def counted(network: GgufNetwork, shown: Any, wanted: Any, *more: Any) -> Any:
        seen.append((len(shown), int(wanted.sum())))
        return decode(network, shown, wanted, *more)

    monkeypatch.setattr(GgufNetwork, "_decode", counted)
    [block] = model.distributions(Corpus.from_files([lines]), events=np.array([0, 2]), threads=1)
    assert sum(len(tile) for tile in block.tiles()) == 2
    assert seen == [(len(own_ids(model, LINES[0] + "\n")), 2)]  # one segment, and two rows of the output layer


def test_progress(spm: tuple[Path, Twin], lines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_engine, "_TOGETHER", 16)
    calls: list[int] = []
    model = load(spm[0])
    model.progress = calls.append
    [batch] = score(model, Corpus.from_files([lines]))
    assert sum(calls) == int(batch.segment_events.sum())
    assert len(calls) > 3


def test_fingerprints_are_of_file_and_policy(spm: tuple[Path, Twin], folder: Path) -> None:
    model = load(spm[0])
    assert model.fingerprint == load(spm[0]).fingerprint
    assert model.fingerprint != load(spm[0], context=8).fingerprint
    vocabulary = sentencepiece_vocabulary()
    tensors = write_gguf(folder / "other.gguf", vocabulary)
    tensors["output_norm.weight"] = tensors["output_norm.weight"] * 2
    write_gguf(folder / "other.gguf", vocabulary, tensors)
    other = load(folder / "other.gguf")
    assert model.fingerprint != other.fingerprint
    assert model.tokenizer.fingerprint == other.tokenizer.fingerprint  # so that divergence can compare the two
    assert model.vocabulary.fingerprint == other.vocabulary.fingerprint


def test_found_by_its_first_bytes(spm: tuple[Path, Twin], lines: Path, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(spm[0].read_bytes())
    model = load_model(path)
    assert isinstance(model, GgufModel)
    assert isinstance(model, LanguageModel)
    result = lmgauge.evaluate(model, str(lines), threads=1)
    [batch] = score(model, Corpus.from_files([lines]))
    size = len(lines.read_bytes())
    assert result.bits_per_byte == pytest.approx(-math.fsum(batch.logprob) / math.log(2) / size, rel=1e-12)
    assert not result.bits_per_byte_is_bound
    assert model.to_dict()["architecture"] == "llama"
    assert repr(model).startswith("GgufModel(model, sentence,")


def test_an_audit_passes(spm: tuple[Path, Twin], lines: Path) -> None:
    model = load(spm[0])
    result = lmgauge.audit(model, str(lines), levels=("coverage", "normalization", "causality"), threads=1)
    assert result.failures == ()
    assert [result.verdict(level) for level in ("coverage", "normalization", "causality")] == ["PASS"] * 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"context": POSITIONS + 1}, "this model has positions for 48 tokens"),
        ({"context": 4, "stride": 5}, "stride 5"),
    ],
)
def test_options_that_do_not_fit(spm: tuple[Path, Twin], options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load(spm[0], **options)


def test_not_a_number(folder: Path, lines: Path) -> None:
    vocabulary = sentencepiece_vocabulary()
    tensors = write_gguf(folder / "nan.gguf", vocabulary)
    tensors["token_embd.weight"][vocabulary.tokens.index("é")] = np.nan
    write_gguf(folder / "nan.gguf", vocabulary, tensors)
    model = load(folder / "nan.gguf")
    with pytest.raises(ModelFileError, match=r"nan\.gguf: gives NaN in segment 3; the file is damaged"):
        score(model, Corpus.from_files([lines]))
    with pytest.raises(ModelFileError, match=r"nan\.gguf: gives NaN in segment 3"):
        [list(block.tiles()) for block in model.distributions(Corpus.from_files([lines]), threads=1)]
    # What was not a number is forgotten.
    assert np.isfinite(joined(score(model, Corpus.from_strings([LINES[0], LINES[3]])))).all()
    with pytest.raises(ModelFileError, match="gives NaN after some context"):
        model.log_distribution([BOS, model.vocabulary.id("é")])


def quantized(source: Path, kind: str) -> Path:
    """The library's own quantization of a file."""
    import llama_cpp

    path = source.with_name(f"{source.stem}-{kind}.gguf")
    settings = llama_cpp.llama_model_quantize_default_params()
    settings.nthread, settings.ftype = 1, getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind.upper()}")
    assert llama_cpp.llama_model_quantize(str(source).encode(), str(path).encode(), settings) == 0
    return path


def test_quantized_files_beside_their_own(spm: tuple[Path, Twin], lines: Path) -> None:
    results = []
    for kind in ("q8_0", "q4_0"):
        path = quantized(spm[0], kind)
        assert load(path).vocabulary.fingerprint == load(spm[0]).vocabulary.fingerprint
        results.append(lmgauge.divergence(load(spm[0]), load(path), lines, events=None, threads=1))
    near, far = (result.kl_ab_nats.value for result in results)
    assert near is not None
    assert far is not None
    assert 0 < near < 0.1 < 10 * near < far


def test_caches_of_few_bits(folder: Path, lines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the same file with a float32 cache: further away with fewer bits, and two caches of one network in turns."""
    monkeypatch.setattr(gguf_files, "WIDTH", 64)
    monkeypatch.setattr(gguf_files, "HEAD", 32)
    write_gguf(folder / "wide.gguf", sentencepiece_vocabulary())
    names = [f"{folder / 'wide.gguf'}:kv={form}" for form in ("float32", "float16", "q8_0", "q4_0")]
    found = lmgauge.divergence(folder / "wide.gguf", names, lines, events=None, threads=1)
    same, half, eight, four = (item.kl_ab_nats.value or 0.0 for item in found)
    assert same == 0 < half < eight / 10 < four / 100
    assert found[2].b == "wide.gguf:kv=q8_0"
    assert str(load_model(names[2]).context_policy) == f"sentence,{POSITIONS}/{POSITIONS},end=newline,kv_cache=q8_0"
    exact = load(folder / "wide.gguf")
    rounded = exact.with_options(ScoringOptions(kv_cache="q4_0"))
    corpus = Corpus.from_strings(["the cat sat"])
    once = [joined(score(model, corpus)) for model in (exact, rounded)]
    again = [joined(score(model, corpus)) for model in (exact, rounded)]
    assert all(map(np.array_equal, once, again))
    assert not np.array_equal(*once)


def test_caches_that_are_refused(spm: tuple[Path, Twin], lines: Path) -> None:
    with pytest.raises(UsageError, match=r"spm\.gguf: kv-cache fp8_e4m3: llama\.cpp has no such cache; choose another"):
        load(spm[0], kv_cache="fp8_e4m3")
    with pytest.raises(UsageError, match=r"spm\.gguf: kv-cache q8_0: .* 32 .*16; choose another format"):
        score(load(spm[0], kv_cache="q8_0"), Corpus.from_files([lines]))


def test_a_checkpoint_beside_its_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    monkeypatch.syspath_prepend(Path(__file__).parents[4] / "docs")
    from docs.tiny_network import make_gguf, make_network

    text = folder / "text.txt"
    letters = np.random.default_rng(1).choice(list("abcdefghij  "), (60, 40))
    text.write_text("\n".join("".join(line) for line in letters) + "\n", encoding="utf-8")
    make_network(str(folder / "hf"), str(text), positions=48, scale=4)
    make_gguf(folder / "hf", folder / "hf.gguf")
    scoring = ScoringOptions(first_token="bos")
    base, file = (load_model(path, first_token="bos") for path in (folder / "hf", folder / "hf.gguf"))
    assert base.tokenizer.fingerprint != file.tokenizer.fingerprint
    result = lmgauge.divergence(folder / "hf", folder / "hf.gguf", text, events=None, threads=1, scoring=scoring)
    assert result.kl_ab_nats.value is not None
    assert result.kl_ab_nats.value < 1e-5
    assert any("have the same tokens, row by row, and split this text alike" in note for note in result.notes)
    unlike = lmgauge.divergence(folder / "hf", folder / "hf.gguf", text, events=None, threads=1)
    assert any("the models see different contexts" in note for note in unlike.notes)


def test_contexts_and_processes(spm: tuple[Path, Twin], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tokens under two lengths beside the twin; and two processes with the digits of one."""
    texts = [f"the cat sat on the mat {n} times." * 3 for n in range(9)]
    model = load(spm[0])
    curve = lmgauge.context_curve(model, Corpus.from_strings(texts), [8, 16], threads=1)
    for length, point in zip((8, 16), curve.points, strict=True):
        ids_of_texts = [[1, *own_ids(model, text)] for text in texts]
        values = [expected(spm[1], ids, length, 2)[15:] for ids in ids_of_texts]  # n before it, from 16
        assert curve.events == sum(map(len, values))
        assert point.log_probability == pytest.approx(sum(map(math.fsum, values)), abs=EXACT * curve.events)
    monkeypatch.setattr(work_units, "UNIT_BYTES", 200)
    shared = load_gguf(spm[0], ScoringOptions(processes=2, device="cpu"))
    assert shared.workers is not None
    rows = [
        joined(list(one.score(Corpus.from_strings(texts, block_bytes=60), threads=threads)))
        for one, threads in ((model, 1), (shared, 2))
    ]
    shared.workers.kill()
    assert np.array_equal(*rows)
    with pytest.raises(UsageError, match=r"llama\.cpp chooses among GPUs itself"):
        load_gguf(spm[0], ScoringOptions(devices=["cuda:0", "cuda:1"]))


CHAT = "{{ bos_token }}{% for m in messages %}{{ m.role }}\n{{ m.content }}{{ eos_token }}{% endfor %}" + (
    "{% if add_generation_prompt %}assistant\n{% endif %}"
)
TURNS = [
    [{"role": "user", "content": "the"}, {"role": "assistant", "content": "cat sat."}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}, {"role": "assistant", "content": "é the"}],
]


@pytest.mark.parametrize("vocabulary", [sentencepiece_vocabulary(), byte_level_vocabulary()], ids=["spm", "bpe"])
def test_turns_in_the_template_of_the_file(vocabulary: Vocabulary, folder: Path) -> None:
    path = folder / "chat.gguf"
    tensors = write_gguf(path, vocabulary, tokenizer__chat_template=CHAT, llama__context_length=256)
    model = load(path)
    assert model.tokens.template == CHAT
    framed = model.framed()
    assert framed.context_policy.unit == "conversation"
    [batch] = framed.score(Corpus.from_conversations(TURNS), threads=1)
    assert not batch.lossy.any()
    bos, eos = (model.network.token_id(name) for name in ("bos", "eos"))
    rows = np.split(batch.logprob, np.cumsum(batch.segment_events)[:-1])
    for own, (messages, at) in zip(rows, [(TURNS[0], 1), (TURNS[1], 1), (TURNS[1], 2)], strict=True):
        ids, begin = [bos], 0
        for i, message in enumerate(messages[: at + 1]):
            begin = len(ids)
            text = f"{message['role']}\n{message['content']}"
            ids += [*model.network.tokenize(text.encode()), eos]
            if i == at:
                begin += len(model.network.tokenize(b"assistant\n"))
        logprob = logprobs(tensors, ids)
        expected = [logprob[i - 1, ids[i]] for i in range(begin, len(ids))]
        assert own == pytest.approx(expected, abs=EXACT)
    assert np.count_nonzero(batch.kind == EOS_KIND) == 3
