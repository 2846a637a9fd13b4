"""The numbers of an evaluation, made again by hand from the rows of the score table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.base.errors import InputError
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.evaluation.audit.coverage import recount
from lmgauge.evaluation.denominators import count_denominators
from lmgauge.evaluation.evaluate import NO_WORDS
from lmgauge.results import Evaluation

EXACT = 1e-14


@pytest.fixture(scope="module")
def lines(data: Path) -> tuple[list[str], list[str]]:
    text = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")
    return text[:500], [*text[500:560], "", "unheard-of words here", "  two  blanks "]


@pytest.fixture(scope="module")
def model(lines: tuple[list[str], list[str]]) -> NgramModel:
    return lmgauge.train("modified-kneser-ney", Corpus.from_strings(lines[0]), order=3)


@pytest.fixture
def held_out(lines: tuple[list[str], list[str]], tmp_path: Path) -> Path:
    path = tmp_path / "test.txt"
    path.write_text("".join(f"{line}\n" for line in lines[1]), encoding="utf-8", newline="\n")
    return path


def rows(model: Any, text: Any) -> list[tuple[int, float, str]]:
    """(segment, log-probability, kind) of every event."""
    found = []
    for batch in model.score(text, threads=1):
        kinds = [("token", "oov", "eos")[k] for k in batch.kind.tolist()]
        found += list(zip(batch.row_segments().tolist(), batch.logprob.tolist(), kinds, strict=True))
    return found


def perplexity(values: list[float]) -> float:
    return math.exp(-math.fsum(values) / len(values))


def test_every_figure_by_hand(model: NgramModel, held_out: Path) -> None:
    table = rows(model, Corpus.from_files([held_out]))
    text = held_out.read_bytes()
    seen = lmgauge.evaluate(model, held_out)
    nats = [value for _, value, _ in table]
    total = -math.fsum(nats)
    words, characters = len(text.split()), len(text.decode())
    assert seen.group is None
    assert seen.events == len(table) == words + text.count(b"\n")
    assert seen.tokens == words
    assert seen.sentence_ends == seen.segments == text.count(b"\n")
    assert (seen.words, seen.characters, seen.bytes) == (words, characters, len(text))
    assert seen.log_probability == pytest.approx(-total, rel=EXACT)
    assert seen.cross_entropy == pytest.approx(total / len(table), rel=EXACT)
    assert seen.perplexity == pytest.approx(math.exp(total / len(table)), rel=EXACT)
    assert seen.bits_per_token == pytest.approx(total / len(table) / math.log(2), rel=EXACT)
    assert seen.bits_per_word == pytest.approx(total / words / math.log(2), rel=EXACT)
    assert seen.bits_per_character == pytest.approx(total / characters / math.log(2), rel=EXACT)
    assert seen.bits_per_byte == pytest.approx(total / len(text) / math.log(2), rel=EXACT)
    assert seen.perplexity_without_eos == pytest.approx(perplexity([v for _, v, k in table if k != "eos"]), rel=EXACT)
    assert seen.perplexity_without_oov == pytest.approx(perplexity([v for _, v, k in table if k != "oov"]), rel=EXACT)
    assert seen.word_perplexity == pytest.approx(math.exp(total / words), rel=EXACT)
    by_segment = [[v for s, v, _ in table if s == segment] for segment in range(seen.segments)]
    assert seen.mean_segment_perplexity == pytest.approx(
        math.fsum(perplexity(values) for values in by_segment) / len(by_segment), rel=1e-12
    )
    assert seen.oov == sum(k == "oov" for _, _, k in table)
    assert seen.oov > 3
    assert seen.oov_rate == seen.oov / words
    assert seen.zero_probability_events == 0
    assert seen.perplexity_without_zeros == seen.perplexity
    assert seen.vocabulary_size == len(model.vocabulary)
    assert sum(seen.events_by_matched_order) == seen.events


def test_word_perplexity_is_srilm_s_ppl1(model: NgramModel, held_out: Path) -> None:
    """SRILM prints ppl = 10^(-logprob / (words + sentences - oovs)) and ppl1 = 10^(-logprob / words), without oovs."""
    known = [line for line in held_out.read_text().split("\n")[:40] if all(w in model.vocabulary for w in line.split())]
    seen = lmgauge.evaluate(model, Corpus.from_strings(known))
    logprob = math.fsum(v for _, v, _ in rows(model, Corpus.from_strings(known))) / math.log(10)
    words = sum(len(line.split()) for line in known)
    assert seen.oov == 0
    assert seen.perplexity == pytest.approx(10 ** (-logprob / (words + len(known))), rel=1e-12)
    assert seen.word_perplexity == pytest.approx(10 ** (-logprob / words), rel=1e-12)


def test_signature_says_what_moves_the_number(model: NgramModel, held_out: Path) -> None:
    seen = lmgauge.evaluate(model, held_out)
    parts = dict(part.partition(":")[::2] for part in seen.signature.split("|")[1:])
    assert seen.signature.startswith("ppl|unit:word|n:")
    assert parts["n"] == str(seen.events)
    assert parts["eos"] == "yes"
    assert parts["oov"] == "unk"
    assert parts["context"] == "sentence"
    assert parts["model"] == f"mkn3@{model.fingerprint[:6]}"
    assert parts["vocab"] == model.vocabulary.fingerprint[:6]
    assert parts["v"] == NUMBERS_VERSION
    assert seen.fingerprints["text"].startswith(parts["text"])
    other = lmgauge.evaluate(model, Corpus.from_strings(["a"])).signature
    assert dict(p.partition(":")[::2] for p in other.split("|")[1:])["text"] != parts["text"]


def test_groups_add_up_to_the_whole(model: NgramModel, lines: tuple[list[str], list[str]], tmp_path: Path) -> None:
    paths = []
    for name, part in {"one": lines[1][:20], "two": lines[1][20:23], "three": lines[1][23:]}.items():
        paths.append(tmp_path / f"{name}.txt")
        paths[-1].write_text("".join(f"{line}\n" for line in part), encoding="utf-8", newline="\n")
    whole, *groups = lmgauge.evaluate(model, paths, by_group=True)
    assert whole.group is None
    assert [group.group for group in groups] == ["one", "two", "three"]
    for name in ("events", "tokens", "oov", "segments", "words", "characters", "bytes", "sentence_ends", "lossy_segments"):
        assert sum(getattr(group, name) for group in groups) == getattr(whole, name), name
    assert math.fsum(group.log_probability for group in groups) == pytest.approx(whole.log_probability, rel=EXACT)
    for path, group in zip(paths, groups, strict=True):
        alone = lmgauge.evaluate(model, path)
        for name in ("perplexity", "bits_per_byte", "oov_rate", "mean_segment_perplexity", "bits_per_byte_is_bound"):
            assert getattr(group, name) == getattr(alone, name), name


def test_groups_by_a_field(model: NgramModel, tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    path.write_text('{"text": "First Citizen:", "kind": "b"}\n{"text": "All:", "kind": "a"}\n{"text": "We", "kind": "b"}\n')
    corpus = Corpus.from_files([path], group="kind")
    whole, *groups = lmgauge.evaluate(model, corpus, by_group=True)
    assert {group.group: group.segments for group in groups} == {"b": 2, "a": 1}
    assert whole.bytes == sum(group.bytes for group in groups)  # records have no line ends
    assert whole.bytes == len("First Citizen:All:We")


# -- zeros, bounds ------------------------------------------------------------------------------------------------------


def test_zero_probability_is_told_never_hidden() -> None:
    model = lmgauge.train("mle", Corpus.from_strings(["a b", "a c"]), order=2)
    seen = lmgauge.evaluate(model, Corpus.from_strings(["a b", "b a", "zzz"]))
    # a b </s>: 1, 1/2, 1; b: 0 after <s>; a: 0 after b; </s>: 0 after a; zzz: 0; </s>: 0 in a context never seen
    assert seen.events == 8
    assert seen.zero_probability_events == 5
    assert seen.perplexity == math.inf
    assert seen.cross_entropy == math.inf
    assert seen.log_probability == -math.inf
    assert seen.bits_per_byte == math.inf
    assert seen.mean_segment_perplexity == math.inf
    assert seen.perplexity_without_zeros == pytest.approx(2 ** (1 / 3), rel=1e-12)
    where = [(event.segment, event.position, event.token) for event in seen.first_zero_probability_events]
    assert where == [(1, 0, "b"), (1, 1, "a"), (1, 2, "</s>"), (2, 0, "<unk>"), (2, 1, "</s>")]
    assert seen.interval is None or not math.isnan(seen.interval.high)


def test_zeros_of_one_kind_leave_the_figures_without_it_finite() -> None:
    model = lmgauge.train("mle", Corpus.from_strings(["a", "b"]), order=1, vocabulary="closed")
    seen = lmgauge.evaluate(model, Corpus.from_strings(["a zzz"]))
    assert seen.oov == 1
    assert seen.perplexity == math.inf
    assert seen.perplexity_without_eos == math.inf
    assert seen.perplexity_without_oov == pytest.approx(1 / math.sqrt(0.25 * 0.5), rel=1e-6)


def test_bits_per_byte_is_a_bound_with_unknown_words_or_lost_text(model: NgramModel) -> None:
    cases = {"First Citizen:": False, "First Zwölf:": True, "First  Citizen:": True, " First": True, "": False}
    for text, bound in cases.items():
        seen = lmgauge.evaluate(model, Corpus.from_strings([text, "All:"]))
        assert seen.bits_per_byte_is_bound == bound, text
        assert seen.lossy_segments == ("  " in text or text.startswith(" "))
    characters = lmgauge.train("witten-bell", Corpus.from_strings(["abc  d"]), order=2, tokenizer="character")
    assert not lmgauge.evaluate(characters, Corpus.from_strings([" a  b "])).bits_per_byte_is_bound
    assert lmgauge.evaluate(characters, Corpus.from_strings(["x"])).bits_per_byte_is_bound


def test_only_unknown_words_and_a_disjoint_vocabulary(model: NgramModel) -> None:
    seen = lmgauge.evaluate(model, Corpus.from_strings(["zzz yyy", "xxx"]))
    assert seen.oov_rate == 1
    assert math.isfinite(seen.perplexity)
    assert seen.perplexity_without_oov is not None  # of the line ends
    assert seen.bits_per_byte_is_bound


def test_only_empty_lines(model: NgramModel, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n\n\n")
    seen = lmgauge.evaluate(model, tmp_path / "empty.txt")
    assert (seen.events, seen.tokens, seen.words, seen.bytes) == (3, 0, 0, 3)
    assert seen.perplexity_without_eos is None
    assert seen.word_perplexity is None
    assert seen.bits_per_word is None
    assert seen.oov_rate == 0
    assert math.isfinite(seen.perplexity)


def test_an_empty_text_is_an_error(model: NgramModel, tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text("")
    with pytest.raises(InputError):
        lmgauge.evaluate(model, tmp_path / "none.txt")
    with pytest.raises(InputError):
        lmgauge.evaluate(model, Corpus.from_strings([]))


# -- what must not matter -----------------------------------------------------------------------------------------------

VARIANTS = {
    "crlf": lambda t: t.replace(b"\n", b"\r\n"),
    "bom": lambda t: b"\xef\xbb\xbf" + t,
    "no final newline": lambda t: t.removesuffix(b"\n"),
    "all": lambda t: (b"\xef\xbb\xbf" + t.replace(b"\n", b"\r\n")).removesuffix(b"\r\n"),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_line_ends_and_marks_change_no_number(model: NgramModel, held_out: Path, tmp_path: Path, name: str) -> None:
    expected = lmgauge.evaluate(model, held_out).to_dict()
    changed = tmp_path / "changed.txt"
    changed.write_bytes(VARIANTS[name](held_out.read_bytes()))
    seen = lmgauge.evaluate(model, changed).to_dict()
    assert seen.pop("notes") != expected.pop("notes")  # it is said that something was changed
    assert seen == expected


@pytest.mark.parametrize("block_bytes", [1, 50, 1000])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("context", ["sentence", "stream"])
def test_blocks_and_threads_change_no_number(
    lines: tuple[list[str], list[str]], held_out: Path, context: Any, threads: int, block_bytes: int
) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(lines[0][:100]), order=3, context=context)
    expected = lmgauge.evaluate(model, held_out, threads=1)
    assert lmgauge.evaluate(model, Corpus.from_files([held_out], block_bytes=block_bytes), threads=threads) == expected


def test_several_models_read_a_text_once(model: NgramModel, held_out: Path) -> None:
    other = lmgauge.train("laplace", Corpus.from_strings(["a b"]), order=1)
    corpus = Corpus.from_strings(iter(held_out.read_text().split("\n")))  # can be read only once
    both = lmgauge.evaluate([model, other], corpus)
    assert [item.model for item in both] == ["mkn3", "laplace1"]
    assert both[0].perplexity == lmgauge.evaluate(model, Corpus.from_strings(held_out.read_text().split("\n"))).perplexity


# -- intervals ----------------------------------------------------------------------------------------------------------


def test_the_interval_lies_around_the_figure_and_names_what_is_independent(model: NgramModel, held_out: Path) -> None:
    seen = lmgauge.evaluate(model, held_out)
    assert seen.interval is not None
    assert seen.interval.low < seen.perplexity < seen.interval.high
    assert seen.interval.unit == seen.documents_by == "unknown"
    assert "if segments form documents, use --document" in seen.independence
    assert "|independent:unknown|" in seen.signature


def test_documents_widen_the_interval_and_change_no_figure(model: NgramModel, held_out: Path) -> None:
    lines = held_out.read_text(encoding="utf-8").split("\n")[:-1]
    documents = [str(i * 12 // len(lines)) for i in range(len(lines))]
    plain = lmgauge.evaluate(model, Corpus.from_strings(lines, documents=[str(i) for i in range(len(lines))]))
    clustered = lmgauge.evaluate(model, Corpus.from_strings(lines, documents=documents))
    assert plain.interval is not None
    assert clustered.interval is not None
    assert (plain.interval.unit, clustered.interval.unit) == ("segments", "documents")
    assert clustered.interval.units == 12
    assert "|independent:12-documents|" in clustered.signature
    assert (plain.perplexity, plain.bits_per_byte) == (clustered.perplexity, clustered.bits_per_byte)
    assert any("only 12 documents" in note for note in clustered.notes)


def test_each_of_several_files_is_a_document(model: NgramModel, held_out: Path, tmp_path: Path) -> None:
    lines = held_out.read_text(encoding="utf-8").split("\n")[:-1]
    for i in range(7):
        (tmp_path / f"part{i}").write_text("".join(f"{line}\n" for line in lines[i::7]), encoding="utf-8")
    seen = lmgauge.evaluate(model, sorted(tmp_path.glob("part*")), output=tmp_path / "run")
    assert seen.independence == "7 documents (files) are taken as independent"
    again = lmgauge.evaluate_scores(tmp_path / "run" / "scores.parquet")
    assert (again.interval, again.independence) == (seen.interval, seen.independence)


# -- tables of any origin -----------------------------------------------------------------------------------------------


def test_a_table_gives_the_same_numbers_as_the_model(model: NgramModel, held_out: Path) -> None:
    direct = lmgauge.evaluate(model, held_out)
    table = list(model.score(Corpus.from_files([held_out])))
    seen = lmgauge.evaluate_scores(table, held_out)
    for name in (
        "perplexity", "cross_entropy", "bits_per_word", "bits_per_character", "bits_per_byte", "bits_per_byte_is_bound",
        "perplexity_without_eos", "perplexity_without_oov", "word_perplexity", "mean_segment_perplexity", "oov", "events",
        "interval", "segments", "lossy_segments", "events_by_matched_order",
    ):  # fmt: skip
        assert getattr(seen, name) == getattr(direct, name), name
    bare = lmgauge.evaluate_scores(table)
    assert bare.perplexity == direct.perplexity
    assert bare.bits_per_byte is None
    assert any("no text was given" in note for note in bare.notes)


def test_to_dict_and_str_and_pandas(model: NgramModel, held_out: Path) -> None:
    pandas = pytest.importorskip("pandas")
    seen = lmgauge.evaluate(model, held_out)
    assert isinstance(seen, Evaluation)
    told = seen.to_dict()
    assert told["perplexity"] == seen.perplexity
    assert told["interval"]["low"] == seen.interval.low  # type: ignore[union-attr]
    assert seen.signature in str(seen)
    assert "≥" in str(seen)
    assert ">= " in repr(seen)
    series = seen.to_pandas()
    assert series["perplexity"] == seen.perplexity
    frame = lmgauge.evaluate([model, model], held_out).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["events"].tolist() == [seen.events] * 2
    assert np.isclose(frame["bits_per_byte"][0], seen.bits_per_byte)


def test_many_unseen_words_are_told(model: NgramModel, tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text("zwei vier sechs the the\n" * 3)
    seen = lmgauge.evaluate(model, path)
    assert seen.oov_rate == 0.6
    [note] = [note for note in seen.notes if "unseen" in note]
    assert note.startswith("60 % of the tokens are unseen words, all one token <unk>")
    path.write_text("and the and the and the and the and the and the zwei\n")
    assert not any("unseen" in note for note in lmgauge.evaluate(model, path).notes)


@pytest.mark.parametrize(
    ("text", "has_words"),
    [
        ("นักวิจัยกล่าวว่าภาษาไทยไม่มีช่องว่าง ระหว่างคำ", False),
        ("ភាសាខ្មែរមិនមានដកឃ្លារវាងពាក្យ", False),
        ("吾輩は猫である。名前はまだ無い。", False),
        ("夫唯不爭，故無尤。曲則全，枉則直。 Dao", False),
        ("ภาษา ไทย ที่ ตัด คำ แล้ว", True),  # cut into words by spaces
        ("the cat sat ภาษาไทย", True),
        ("한국어는 띄어쓰기를 한다", True),
        ("für uns · “quoted”", True),
    ],
)
def test_bits_per_word_need_words(text: str, has_words: bool) -> None:
    """Spaces part no words in Thai, Khmer, Japanese and Chinese, so what is between them is not one."""
    corpus = Corpus.from_strings([text, text])
    (block,) = corpus
    assert count_denominators(block) == recount(block)
    halves = [count_denominators(block, np.array([i])) for i in (0, 1)]
    assert halves[0] + halves[1] == count_denominators(block)
    model = lmgauge.train("witten-bell", corpus, order=2, tokenizer="character")
    result = lmgauge.evaluate(model, corpus)
    assert result.words == 2 * len(text.encode().split())
    assert (result.bits_per_word is not None, result.word_perplexity is not None) == (has_words, has_words)
    assert (NO_WORDS in result.notes) is not has_words
    assert result.bits_per_byte is not None


def test_a_run_without_words_is_audited_and_compared(tmp_path: Path) -> None:
    corpus = Corpus.from_strings(["ภาษาไทยไม่มีช่องว่าง", "ระหว่างคำ"])
    for order in (1, 2):
        model = lmgauge.train("witten-bell", corpus, order=order, tokenizer="character")
        lmgauge.evaluate(model, corpus, output=tmp_path / str(order))
    claims = next(check for check in lmgauge.audit_run(tmp_path / "1", text=corpus).checks if check.name == "claims")
    assert claims.verdict == "PASS"
    compared = lmgauge.compare([tmp_path / "1", tmp_path / "2"], text=corpus)[0]
    assert [difference.metric for difference in compared.differences] == [
        "perplexity",
        "bits_per_byte",
        "bits_per_character",
    ]
