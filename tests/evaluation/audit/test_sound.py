"""Sound models of every kind pass on every kind of text."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.evaluation.audit.auditing import audit
from tests.laws.test_model_laws import models, texts
from tests.reference.ngram import KINDS

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.evaluation.audit.checks import NOT_CHECKED, PASS, Audit
from lmgauge.models.registry import load_model

RAGGED = ["  two  spaces ", "", "\ttab\t\there", "日本語 😀 unseen", "x\u3000y", "\u00a0no-break", "e\u0301", "   ", "last"]


def audited(model: NgramModel, lines: list[str], **options: int) -> Audit:
    return audit(model, Corpus.from_strings(lines, block_bytes=400), contexts=60, compression_bytes=1500, **options)  # type: ignore[arg-type]


def assert_sound(found: Audit, *unchecked: str) -> None:
    """Nothing fails, and nothing is silently left out."""
    assert found.passed, str(found)
    assert {check.name for check in found.checks if check.verdict == NOT_CHECKED} <= {"training text", *unchecked}, str(
        found
    )
    assert found.verdict("coverage") == PASS


@pytest.fixture(scope="module")
def lines(data: Path) -> list[str]:
    return (data / "tinyshakespeare.txt").read_text(encoding="utf-8").splitlines()[:240]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("tokenizer", "vocabulary", "context"),
    [("whitespace", "open", "sentence"), ("whitespace", "closed", "stream"), ("character", "open", "stream"),
     ("byte", "closed", "sentence")],
)  # fmt: skip
def test_ngram_models(lines: list[str], kind: str, tokenizer: str, vocabulary: str, context: str) -> None:
    options = {"k": 0.5} if kind == "lidstone" else {}
    model = lmgauge.train(
        kind,  # type: ignore[arg-type]
        Corpus.from_strings(lines[:200]),
        order=3,
        tokenizer=tokenizer,
        vocabulary=vocabulary,  # type: ignore[arg-type]
        context=context,  # type: ignore[arg-type]
        **options,
    )
    found = audited(model, [*lines[200:215], *RAGGED])
    # Of a model that makes events impossible, there may be no text left to code, and no place to change.
    assert_sound(found, *(("code length", "decoding", "target") if kind == "mle" or vocabulary == "closed" else ()))
    memory = next(check for check in found.checks if check.name == "memory")
    assert memory.details["contexts"] == 48


@settings(max_examples=25)
@given(models(), texts(unseen=True))
def test_any_ngram_model_on_any_text(model: NgramModel, lines: list[str]) -> None:
    assert audited(model, lines).passed


@pytest.mark.parametrize("text", ["pud.zh-Hant.txt", "pud.th.txt", "akutagawa.ja.txt"])
def test_words_without_spaces(data: Path, text: str) -> None:
    pytest.importorskip("icu4py")
    lines = (data / text).read_text(encoding="utf-8").splitlines()
    model = lmgauge.train("witten-bell", Corpus.from_strings(lines[:40]), order=2, tokenizer="icu")
    assert_sound(audited(model, [*lines[30:50], *RAGGED]))


def test_byte_level_subwords(data: Path, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    lines = (data / "pud.en.txt").read_text(encoding="utf-8").splitlines()
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=500, show_progress=False, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    model = lmgauge.train("witten-bell", Corpus.from_strings(lines), order=2, tokenizer=str(tmp_path / "tokenizer.json"))
    assert_sound(audited(model, [*lines[:20], *RAGGED]))


def test_lossy_subwords(data: Path, tmp_path: Path) -> None:
    """A tokenizer that lower-cases gives no bytes back: events are proved, and the report says so."""
    tokenizers = pytest.importorskip("tokenizers")
    lines = (data / "pud.en.txt").read_text(encoding="utf-8").splitlines()
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=400, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    model = lmgauge.train("witten-bell", Corpus.from_strings(lines), order=2, tokenizer=str(tmp_path / "tokenizer.json"))
    found = audited(model, lines[:20])
    assert_sound(found, "spelling")
    decoding = next(check for check in found.checks if check.name == "decoding")
    assert "the tokenizer alters" in decoding.evidence


def test_an_arpa_file(data: Path) -> None:
    model = load_model(data / "kenlm3.arpa.gz")
    found = audit(model, Corpus.from_files(str(data / "wikitext2.test.txt")), contexts=60, compression_bytes=1500)
    assert_sound(found)


def test_a_rounded_arpa_file(data: Path, tmp_path: Path) -> None:
    """Numbers with few decimals, as some toolkits write them, sum to a little more or less than one: that can be allowed."""

    def rounded(line: str) -> str:
        fields = line.split("\t")
        numbers = fields[:1] + fields[2:]
        if len(fields) < 2 or "=" in line:
            return line
        numbers = [f"{float(number):.4f}" for number in numbers]
        return "\t".join([numbers[0], fields[1], *numbers[1:]])

    lines = gzip.decompress((data / "kenlm3.arpa.gz").read_bytes()).decode().splitlines()
    (tmp_path / "rounded.arpa").write_text("\n".join(map(rounded, lines)) + "\n", encoding="utf-8")
    model = load_model(tmp_path / "rounded.arpa")
    text = str(data / "wikitext2.test.txt")
    strict = audit(model, Corpus.from_files(text), levels=["normalization"])
    assert [check.name for check in strict.failures] == ["sums"]
    assert audit(model, Corpus.from_files(text), sum_tolerance=1e-3).passed


@pytest.mark.parametrize("lines", [["hello world"], [""], ["   "], ["a"]])
def test_texts_of_one_segment(lines: list[str]) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(["hello world", "hello"]), order=2)
    assert_sound(audited(model, lines), "later text", "target")


def test_documents_and_line_ends(lines: list[str], tmp_path: Path) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(lines), order=3)
    path = tmp_path / "text.txt"
    path.write_bytes("\r\n".join(lines[:30]).encode())
    for unit in ("line", "document"):
        found = audit(model, Corpus.from_files(path, unit=unit), contexts=60)  # type: ignore[arg-type]
        assert_sound(found)


def test_exhaustive_takes_everything(lines: list[str]) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(lines), order=3)
    found = audit(model, Corpus.from_strings(lines[:30]), contexts=1, compression_bytes=1, exhaustive=True)
    details = {check.name: check.details for check in found.checks}
    events = sum(len(line.split()) + 1 for line in lines[:30])
    assert details["sums"]["contexts"] == details["code length"]["events"] == events


def test_the_same_audit_again(lines: list[str]) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(lines[:100]), order=3)

    def again(**options: int) -> Audit:
        blocks = options.pop("block_bytes", 1000)
        return audit(model, Corpus.from_strings(lines, block_bytes=blocks), contexts=50, compression_bytes=2000, **options)  # type: ignore[arg-type]

    first = again()
    assert again().to_dict() == first.to_dict()
    assert again(block_bytes=77, threads=1).to_dict() == again(block_bytes=7000, threads=3).to_dict() == first.to_dict()
    assert again(seed=1).to_dict() != first.to_dict()
