"""Words of networks: the figures of minicons, of wordsprobability and of surprisal, and of a loop over logits."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.models.network.conftest import TOKENIZERS, network  # noqa: E402
from tests.reference.words import word_surprisals  # noqa: E402

import lmgauge  # noqa: E402
from lmgauge.base.errors import InputError, UsageError  # noqa: E402

SENTENCES = ["The cat sat on the mat, quietly.", "It was a long  day", 'two "ends" of Zwölf 🙂 株式会社', "The"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory, "gpt2", "byte-level")


def saved(tmp_path_factory: pytest.TempPathFactory, kind: str, tokenizer: str) -> Path:
    path = tmp_path_factory.mktemp(f"{kind}-{tokenizer}")
    own = TOKENIZERS[tokenizer]()
    network(kind, len(own)).save_pretrained(path)
    own.save_pretrained(path)
    return path


def words(model: Any, **options: Any) -> list[dict[str, Any]]:
    return lmgauge.word_surprisal(model, texts=SENTENCES, **options).to_rows()


def column(rows: list[dict[str, Any]], name: str) -> list[float]:
    return [row[name] for row in rows]


@pytest.mark.parametrize(("kind", "tokenizer"), [("gpt2", "byte-level"), ("llama", "byte-fallback")])
def test_words_are_those_of_the_slow_way(tmp_path_factory: pytest.TempPathFactory, kind: str, tokenizer: str) -> None:
    model = lmgauge.load_model(saved(tmp_path_factory, kind, tokenizer), first_token="bos", end="eos")
    rows = words(model)
    expected = [row for sentence in SENTENCES for row in word_surprisals(model, sentence)]
    assert column(rows, "word") == [word for word, _, _ in expected]
    assert column(rows, "surprisal") == pytest.approx([surprisal for _, surprisal, _ in expected], rel=1e-5)
    assert column(rows, "surprisal_corrected") == pytest.approx([corrected for _, _, corrected in expected], rel=1e-5)
    assert lmgauge.word_surprisal(model, texts=SENTENCES).marking == "before"


def test_minicons(folder: Path) -> None:
    """The same sums; its correction counts "Ġ" alone, leaves out </s>, and does not divide for the first word."""
    scorer = pytest.importorskip("minicons.scorer").IncrementalLMScorer(str(folder), "cpu")
    rows = lmgauge.word_surprisal(lmgauge.load_model(folder, first_token="bos", end="eos"), texts=SENTENCES[:1]).to_rows()
    options = {"bos_token": True, "surprisal": True, "base_two": True}
    theirs = scorer.word_score_tokenized(SENTENCES[:1], str.split, **options)[0]
    assert [word for word, _ in theirs] == column(rows, "word")
    assert [figure for _, figure in theirs] == pytest.approx(column(rows, "surprisal"), abs=1e-4)
    corrected = scorer.word_score_tokenized(SENTENCES[:1], str.split, bow_correction=True, **options)[0]
    assert [figure for _, figure in corrected] == pytest.approx(theirs_by_hand(folder), abs=1e-4)


def theirs_by_hand(folder: Path) -> list[float]:
    """The figures of `minicons` from our model: B is the mass of the tokens that begin with a space."""
    from lmgauge.scores.distributions import Mass, reduce

    model = lmgauge.load_model(folder, first_token="bos", end="eos")
    text = lmgauge.Corpus.from_strings(SENTENCES[:1])
    space = tuple(i for i, token in enumerate(model.vocabulary.tokens) if token.startswith("Ġ"))
    (batch,) = reduce(model, text, [Mass(space, "space")])
    starts = [0, *(i for i in range(1, len(batch) - 1) if batch.token_ids[i] in space), len(batch) - 1]
    figures = []
    for first, behind in pairwise(starts):
        nats = -batch.logprob[first:behind].sum() - math.log(batch.extra["space"][behind])
        figures.append((nats + (math.log(batch.extra["space"][first]) if first else 0)) / math.log(2))
    return figures


def test_the_code_of_pimentel_and_meister(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its figures, once its sets of tokens hold line ends and tabs, and the end of the text once."""
    pytest.importorskip("wordsprobability")
    from wordsprobability import main
    from wordsprobability.models.bow_lm import BaseBOWModel

    class Tiny(BaseBOWModel):  # type: ignore[misc]
        model_name = str(folder)
        model_cls = transformers.GPT2LMHeadModel
        tokenizer_cls = transformers.PreTrainedTokenizerFast

        def _get_n_logits(self) -> Any:
            return self.model.lm_head.out_features

    theirs = Tiny()
    white = torch.tensor(
        [float(token[0] in "ĠĊĉčċČ") for token, _ in sorted(theirs.tokenizer.get_vocab().items(), key=lambda x: x[1])]
    )
    masks = theirs.vocab_masks
    masks["bow"], masks["mid"] = white, 1 - white - masks["punct"] - masks["useless"] - masks["eos"]
    monkeypatch.setattr(main, "get_model", lambda name: theirs)
    monkeypatch.setattr(main, "get_bow_symbol", lambda name: "Ġ")
    frame = main._get_surprisal_per_word(SENTENCES[:1], "tiny", True)
    rows = lmgauge.word_surprisal(lmgauge.load_model(folder, first_token="bos", end="eos"), texts=SENTENCES[:1]).to_rows()
    assert (frame.surprisal_buggy / math.log(2)).tolist() == pytest.approx(column(rows, "surprisal"), abs=1e-4)
    assert (frame.surprisal / math.log(2)).tolist() == pytest.approx(column(rows, "surprisal_corrected"), abs=1e-4)


def test_surprisal(folder: Path) -> None:
    """Nats, the end of the text ruled out, and the space that is a token of its own in no word."""
    package = pytest.importorskip("surprisal")
    theirs = package.AutoHuggingFaceModel.from_pretrained(str(folder), model_class="causal")
    (scored,) = theirs.surprise([SENTENCES[0]])
    model = lmgauge.load_model(folder, first_token="bos", end="none")
    eos = torch.tensor([float(value) for value in scored.surprisals])
    ours = np.array(model.score_text(SENTENCES[0]).logprobs)
    ends = np.array([model.log_distribution(ids)[2] for ids in contexts(model, SENTENCES[0])])
    assert eos.tolist() == pytest.approx((-ours + np.log1p(-np.exp(ends))).tolist(), abs=1e-4)


def contexts(model: Any, text: str) -> list[list[int]]:
    (batch,) = model.score(lmgauge.Corpus.from_strings([text]))
    return [[1, *batch.token_ids[:i].tolist()] for i in range(len(batch))]


def test_a_run_keeps_what_words_are_made_of(folder: Path, tmp_path: Path) -> None:
    outputs = lmgauge.settings.Outputs(tmp_path / "run", per_word=tmp_path / "words.parquet", columns=("rank",))
    result = lmgauge.evaluate(folder, texts=SENTENCES, output=outputs)
    assert any("surprisal_corrected is minus log2" in note for note in result.notes)
    rows = pq.read_table(tmp_path / "run" / "scores.parquet")
    assert {"rank", "entropy", "word_boundary"} <= set(rows.column_names)
    run = lmgauge.evaluate_scores(tmp_path / "run")
    assert run.perplexity == result.perplexity
    whole = lmgauge.Corpus.from_strings(SENTENCES)
    read = lmgauge.read_run(tmp_path / "run", whole).per_word()
    assert read.marking == "stored"
    assert read.rows.drop_columns("model").equals(pq.read_table(tmp_path / "words.parquet").drop_columns("model"))
    again = pq.read_table(tmp_path / "words.parquet").drop_columns("model")
    same = lmgauge.word_surprisal(folder, texts=SENTENCES).rows.drop_columns("model")
    assert again.equals(same)


def test_several_models_in_one_file(folder: Path, tmp_path: Path) -> None:
    own = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(SENTENCES), order=2)
    path = tmp_path / "words.parquet"
    results = lmgauge.evaluate(
        {"net": folder, "wb": own}, texts=SENTENCES[:2], output=lmgauge.settings.Outputs(per_word=path)
    )
    rows = pq.read_table(path).to_pandas()
    assert rows.model.tolist() == ["net"] * 12 + ["wb"] * 12
    assert [note.partition(",")[0] for item in results for note in item.notes if note.startswith("words:")] == [
        "words: its tokens include the space before a word: surprisal_corrected is minus log2 of a word probability",
        "words: its tokens are words",
    ]


def test_a_model_without_whole_distributions(folder: Path) -> None:
    class Closed:
        """Says the probability of what came and no more, as a server does."""

        def __init__(self, model: Any) -> None:
            self._model = model

        def __getattr__(self, name: str) -> Any:
            if name == "distributions":
                raise AttributeError(name)
            return getattr(self._model, name)

        def log_distribution(self, context_ids: Any) -> Any:
            raise UsageError("no")

    scored = lmgauge.word_surprisal(Closed(lmgauge.load_model(folder)), texts=SENTENCES)  # type: ignore[arg-type]
    assert column(scored.to_rows(), "surprisal") == pytest.approx(column(words(folder), "surprisal"), abs=1e-4)
    assert set(column(scored.to_rows(), "surprisal_corrected")) == set(column(scored.to_rows(), "entropy_before")) == {None}
    assert scored.marking is None
    assert scored.notes[0].startswith("surprisal_corrected and entropy_before are missing: the model tells")


def test_first_tokens_and_line_ends(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("The cat\nsat\n", encoding="utf-8")
    by_newline = lmgauge.word_surprisal(lmgauge.load_model(folder, end="newline"), path)
    assert None not in column(by_newline.to_rows(), "surprisal_corrected")
    open_end = lmgauge.word_surprisal(lmgauge.load_model(folder, end="none"), path)
    assert [figure is None for figure in column(open_end.to_rows(), "surprisal_corrected")] == [False, True, True]
    assert "surprisal_corrected is missing for 2 words with no event after" in open_end.notes[1]
    unscored = lmgauge.word_surprisal(lmgauge.load_model(folder, first_token="unscored"), path)
    assert [figure is None for figure in column(unscored.to_rows(), "surprisal")] == [True, False, True]
    assert "surprisal is missing for 2 words: first tokens are unscored" in " ".join(unscored.notes)


def test_fields_that_are_kept_are_printed(tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text("id\tcondition\ttext\n1\tplain\ta b\n1\todd\ta\n", encoding="utf-8")
    model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
    lines = str(lmgauge.word_surprisal(model, tmp_path / "in.tsv", field="text", id="id", keep="condition")).splitlines()
    assert sum("condition" in line for line in lines) == 1
    rows = [line.split() for line in lines if line.startswith("1 ")]
    assert [row[:3] for row in rows[:3]] == [["1", "a", "plain"], ["1", "b", "plain"], ["1", "a", "odd"]]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"words": "bytes"}, UsageError, "words 'bytes': choose whitespace, treebank, icu, or icu:<locale>"),
        ({"words": "whitespace:de"}, UsageError, "words 'whitespace:de': choose"),
        ({"words": "icu", "regions": []}, UsageError, "words is for words; regions are what their file says"),
        ({"train": [], "regions": []}, UsageError, "train is for words"),
        ({"regions": []}, InputError, "regions: no region is named in it"),
        ({"regions": [{"id": 9, "text": "x"}]}, InputError, "regions, row 1: there is no text '9'"),
    ],
)
def test_what_cannot_be_measured(options: dict[str, Any], error: type[Exception], message: str) -> None:
    if options.get("words") == "icu":
        pytest.importorskip("icu4py")
    own = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(SENTENCES), order=2)
    with pytest.raises(error, match=message):
        lmgauge.word_surprisal(own, texts=SENTENCES, **options)


def test_regions_of_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    own = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(SENTENCES), order=2)
    frame = pandas.DataFrame({"item": [1, 2], "region": ["np", None], "text": ["The cat", "It was"]})
    rows = lmgauge.word_surprisal(own, texts=SENTENCES, regions=frame).to_rows()
    assert [(row["region"], row["text"], row["pieces"]) for row in rows] == [("np", "The cat", 2), ("1", "It was", 2)]


@pytest.mark.parametrize("boundary", ["joint", "apart"])
@pytest.mark.parametrize("at", [7, 8])
def test_words_behind_given_text_are_those_of_the_whole(folder: Path, boundary: Any, at: int) -> None:
    """In the tokens of the whole text: those of "joint", and of "apart" where a token ends at the boundary."""
    model = lmgauge.load_model(folder, first_token="bos", end="eos")
    whole = lmgauge.word_surprisal(model, texts=SENTENCES[:1]).to_rows()[2:]
    text = lmgauge.Corpus.from_strings([SENTENCES[0][at:]], given=[SENTENCES[0][:at]], boundary=boundary)
    behind = lmgauge.word_surprisal(model, text).to_rows()
    assert column(behind, "word") == column(whole, "word")
    for name in ("surprisal", "surprisal_corrected", "entropy_before"):
        if boundary == "apart" and at == 8:  # "sat" without its space is other tokens, and the space is no longer its own
            assert behind[0][name] != pytest.approx(whole[0][name], rel=1e-4)
        else:
            assert column(behind, name) == pytest.approx(column(whole, name), rel=1e-4)


def test_protocols_that_leave_tokens_out(folder: Path) -> None:
    scoring = lmgauge.settings.ScoringOptions(protocol="llama.cpp", context=16)
    with pytest.raises(UsageError, match=r"protocol llama\.cpp leaves tokens unscored, so words have no surprisal"):
        lmgauge.word_surprisal(folder, texts=SENTENCES, scoring=scoring)


def test_words_of_runs_that_have_no_masses(folder: Path, tmp_path: Path) -> None:
    text = lmgauge.Corpus.from_strings(SENTENCES)
    lmgauge.evaluate(folder, text, output=lmgauge.settings.Outputs(tmp_path / "net", columns=("entropy",)))
    words = lmgauge.read_run(tmp_path / "net", text).per_word()
    assert column(words.to_rows(), "surprisal") == pytest.approx(
        column(lmgauge.word_surprisal(folder, text).to_rows(), "surprisal"), abs=1e-4
    )
    assert (words.marking, set(column(words.to_rows(), "surprisal_corrected"))) == (None, {None})
    assert "has no column word_boundary; lmgauge eval --per-word" in words.notes[0]
    assert words.notes[0].startswith("surprisal_corrected is missing")
    assert None not in column(words.to_rows(), "entropy_before")
    own = lmgauge.train("witten-bell", text, order=2)
    lmgauge.evaluate(own, text, output=tmp_path / "wb")
    read = lmgauge.read_run(tmp_path / "wb", text).per_word(regions=[{"id": 1, "region": "np", "text": "The cat"}])
    assert read.marking == "whole"
    assert read.to_rows()[0]["surprisal"] == read.to_rows()[0]["surprisal_corrected"]
    with pytest.raises(UsageError, match="words are in the text that was scored; name it"):
        lmgauge.read_run(tmp_path / "wb").per_word()
    table = tmp_path / "table.jsonl"
    table.write_text('{"segment": 0, "logprob": -1.0}\n', encoding="utf-8")
    with pytest.raises(InputError, match="has no byte spans, so it does not say where words are"):
        lmgauge.read_run(table, lmgauge.Corpus.from_strings(["a"])).per_word()


def test_the_same_words_as_the_command(folder: Path, tmp_path: Path) -> None:
    """Fields of the text and rules of the model by name; a network in memory takes the rules too."""
    stimuli = tmp_path / "stimuli.tsv"
    rows = [f"{i // 2}\t{'ab'[i % 2]}\t{sentence}\n" for i, sentence in enumerate(SENTENCES)]
    stimuli.write_text("item\tcondition\tsentence\n" + "".join(rows), encoding="utf-8", newline="\n")
    reading = {"field": "sentence", "id": "item", "keep": "condition"}
    expected = lmgauge.word_surprisal(
        lmgauge.load_model(folder, end="none", context=8), lmgauge.Corpus.from_files(stimuli, **reading)
    )
    assert {(row["segment"], row["condition"]) for row in expected.to_rows()} == {(0, "a"), (1, "b"), (2, "a"), (3, "b")}
    assert any('--end eos gives one; in Python end="eos"' in note for note in expected.notes)
    loaded = lmgauge.load_model(folder)
    for model, options in (
        (folder, {"end": "none", "context": 8}),
        (loaded, {"end": "none", "context": 8}),
        (loaded, {"end": "none", "scoring": lmgauge.settings.ScoringOptions(context=8)}),
    ):
        found = lmgauge.word_surprisal(model, stimuli, **reading, **options)
        assert column(found.to_rows(), "surprisal") == column(expected.to_rows(), "surprisal")
        assert found.signature.split("|model:")[0] == expected.signature.split("|model:")[0]
    events = [lmgauge.evaluate(loaded, stimuli, field="sentence", **end).events for end in ({}, {"end": "eos"})]
    assert events[1] == events[0] + len(SENTENCES)
    assert lmgauge.word_surprisal(loaded, texts=SENTENCES).signature != expected.signature
    for call, message in (
        (
            lambda: lmgauge.word_surprisal(loaded, stimuli, fields="sentence"),
            "word_surprisal has no option 'fields'; did you mean field",
        ),
        (
            lambda: lmgauge.word_surprisal(loaded, stimuli, field="sentence", dtype="float32"),
            "scoring is for models named by",
        ),
        (lambda: lmgauge.word_surprisal(loaded, texts="a", field="sentence"), "field is for files"),
        (
            lambda: lmgauge.word_surprisal(loaded, lmgauge.Corpus.from_files(stimuli), id="x"),
            "id: a Corpus is read with its own options",
        ),
    ):
        with pytest.raises(UsageError, match=message):
            call()
