"""Files of speech tools: joined by id or by time, and the numbers are sclite's."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lmgauge.base.choices import TranscriptFormat
from lmgauge.base.errors import InputError, UsageError
from lmgauge.tasks import CER, WER, ComparisonSettings, Reading, Systems, align_files, score_files

QUICK = ComparisonSettings(significance="none")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {
        "text": "anna-1 the cat sat\nben-2 it slept\n",
        "hyp.trn": "it slept (ben-2)\nThe cat sits (ANNA-1)\n",
        "ref.trn": ";; two\nthe { cat / cats } sat (anna-1)\nit { um / @ } slept (ben-2)\n",
        "other.trn": "the cats sat (anna-1)\nit um sleeps (ben-2)\n",
        "ref.stm": "Rec a anna 0 2 the cat sat\nrec A x 2 3 ignore_time_segment_in_scoring\nrec A ben 3 4 <O> it slept\n",
        "hyp.ctm": "rec A 0.1 .3 the\nrec A .5 .3 cat\nrec A 2.1 .2 NOISE\nrec A 3.1 .2 it\nrec A 9 .1 sleeps\n",
        "utt2spk": "ben-2 B\nanna-1 A\n",
        "hyp.tsv": "id\ttext\nben-2\tit slept\nanna-1\tthe cat sat\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def score(folder: Path, reference: str, *hypotheses: str, reading: Reading | None = None) -> Systems:
    outputs = [str(folder / name) for name in hypotheses]
    return score_files(WER(), references=str(folder / reference), hypotheses=outputs, reading=reading, settings=QUICK)


def test_kaldi_and_trn_are_joined_by_id(folder: Path) -> None:
    systems = score(folder, "text", "hyp.trn", reading=Reading(group="speaker"))
    assert [(row.system, row.score.errors, row.score.reference_length) for row in systems] == [("hyp", 2, 5)]
    assert list(systems[0].groups) == ["anna", "ben"]
    assert any("read as Kaldi's text by its name" in note for note in systems.notes)
    assert score(folder, "text", "hyp.tsv", reading=Reading(id="id"))[0].score.errors == 0


def test_groups_and_documents_of_a_file_with_ids(folder: Path) -> None:
    named = str(folder / "utt2spk")
    systems = score(folder, "text", "hyp.trn", reading=Reading(group=named, document=named))
    assert list(systems[0].groups) == ["A", "B"]
    (folder / "names").write_text("ben-2 Ben B.\nanna-1\tAnna A.\n")
    assert list(score(folder, "text", "hyp.trn", reading=Reading(group=str(folder / "names")))[0].groups) == [
        "Anna A.",
        "Ben B.",
    ]
    for text, says in (("anna-1 A\nben-2 B\nanna-1 C\n", "on line 1 too"), ("anna-1 A\nben-2\n", "does not say who speaks")):
        (folder / "names").write_text(text)
        with pytest.raises(InputError, match=says):
            score(folder, "text", "hyp.trn", reading=Reading(document=str(folder / "names")))


def test_each_system_is_scored_against_its_nearest_reading_whoever_stands_beside_it(folder: Path) -> None:
    alone = [score(folder, "ref.trn", name)[0].score for name in ("hyp.trn", "other.trn")]
    together = [row.score for row in score(folder, "ref.trn", "hyp.trn", "other.trn")]
    assert together == alone
    assert [(one.errors, one.reference_length) for one in together] == [(2, 5), (1, 6)]
    assert together[0].signature.startswith("nrefs:1|")


def test_outputs_may_have_alternatives_too(folder: Path) -> None:
    (folder / "both.ctm").write_text(
        "rec A 0.1 .3 a\nrec A * * <ALT_BEGIN>\nrec A .2 .3 a\nrec A * * <ALT>\nrec A .2 .3 cat\nrec A * * sat\n"
        "rec A * * <ALT_END>\nrec A 3.1 .2 it\nrec A 3.4 .2 slept\n"
    )
    for reference, hypothesis, errors in (("text", "ref.trn", 0), ("other.trn", "ref.trn", 1), ("ref.stm", "both.ctm", 1)):
        systems = score(folder, reference, hypothesis)
        assert systems[0].score.errors == errors
        assert any(
            "with alternatives: for each system the reading with the fewest word errors" in note for note in systems.notes
        )
    files = {"references": str(folder / "ref.stm"), "hypotheses": [str(folder / "both.ctm")]}
    assert [" ".join(one.alignment.hypothesis) for one in align_files(WER(), **files)] == ["a cat sat", "it slept"]


def test_ctm_words_go_to_segments_by_time(folder: Path) -> None:
    files = {"references": str(folder / "ref.stm"), "hypotheses": [str(folder / "hyp.ctm")]}
    assert [" ".join(one.alignment.hypothesis) for one in align_files(WER(), **files)] == ["the cat", "it sleeps"]
    systems = score_files(CER(), **files, reading=Reading(group="file", document="speaker"), settings=QUICK)
    assert systems.notes[0].endswith("1 segment not scored, nor what was recognized in that time")


def test_files_are_recognized_by_their_ids_and_say_so(folder: Path) -> None:
    (folder / "best.txt").write_text("ben-2 it slept\nanna-1 the cat sits\n")
    (folder / "ref.txt").write_text((folder / "text").read_text())
    for reference in ("text", "ref.txt", "other.trn"):
        systems = score(folder, reference, "best.txt", reading=Reading(group="speaker"))
        wanted = 4 if reference == "other.trn" else 1
        assert (systems[0].score.errors, list(systems[0].groups)) == (wanted, ["anna", "ben"])
        note = f"{folder / 'best.txt'}: read as Kaldi's text, whose lines begin with ids, as the same ids are in all files"
        assert f"{note} (else --format text)" in systems.notes
    plain = score(folder, "ref.txt", "best.txt", reading=Reading(format="text"))
    assert plain[0].score.reference_length == 7
    assert any("an id (anna-1), as in Kaldi text, and it is scored as words" in note for note in plain.notes)


def test_a_format_for_all_files_says_so_where_one_has_another(folder: Path) -> None:
    (folder / "twice.trn").write_text("the cat (anna-1)\nthe dog (ben-2)\n")
    with pytest.raises(InputError, match="a second time; --format kaldi is for all files; without it"):
        score(folder, "twice.trn", "text", reading=Reading(format="kaldi"))


def test_marks_of_which_words_are_cut_are_noted_on_either_side(folder: Path) -> None:
    (folder / "tags.trn").write_text("the;det cat sat; (anna-1)\nit slept (ben-2)\n")
    (folder / "tags.ctm").write_text("rec A 0.1 .3 the;det\nrec A 3.1 .2 it\n")
    for reference, hypothesis in (("text", "tags.trn"), ("tags.trn", "text"), ("ref.stm", "tags.ctm")):
        notes = score(folder, reference, hypothesis).notes
        assert sum("1 word has marks of sclite, such as 'the;det'" in note for note in notes) == 1
    assert score(folder, "tags.trn", "text")[0].score.errors == 1


@pytest.mark.parametrize(
    ("reference", "hypothesis", "reading", "error", "message"),
    [
        ("text", "hyp.ctm", {}, UsageError, "give an stm file as reference"),
        ("hyp.ctm", "hyp.trn", {}, UsageError, "give an stm file as reference"),
        ("text", "hyp.tsv", {}, UsageError, "has no ids"),
        ("text", "hyp.trn", {"group": "file"}, UsageError, "--group file: .* has no such label.* or speaker"),
        ("text", "hyp.trn", {"unit": "document"}, UsageError, "leave out unit"),
        ("text", "", {}, UsageError, "is a folder"),
        ("ref.stm", "hyp.trn", {}, InputError, "has no record with the id"),
        ("text", "utt2spk", {"format": "kaldi", "group": "hyp.trn"}, UsageError, "has no such label"),
    ],
)
def test_what_does_not_fit_is_refused(
    folder: Path, reference: str, hypothesis: str, reading: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        score(folder, reference, hypothesis, reading=Reading(**reading))  # type: ignore[arg-type]


def test_ids_that_are_missing_or_come_twice_are_named(folder: Path) -> None:
    (folder / "twice.trn").write_text("a (anna-1)\nb (anna-1)\n")
    (folder / "more.trn").write_text("a (anna-1)\nb (ben-2)\nc (c-3)\n")
    for name, message in (("twice.trn", "occurs a second time"), ("more.trn", "text: has no record with the id 'c-3'")):
        with pytest.raises(InputError, match=message):
            score(folder, "text", name)


def test_words_of_a_recording_without_segments_are_refused_and_recordings_without_words_noted(folder: Path) -> None:
    (folder / "extra.ctm").write_text("rec B 0 1 a\n")
    (folder / "none.ctm").write_text(";; nothing\n")
    with pytest.raises(InputError, match=r"words of recording rec, channel b, of which .*ref\.stm has no segment"):
        score(folder, "ref.stm", "extra.ctm")
    systems = score(folder, "ref.stm", "none.ctm")
    assert systems[0].score.deletions == 5
    assert any("has no word of recording rec, channel a" in note for note in systems.notes)


SCLITE: list[tuple[str, str, str, TranscriptFormat | None]] = [
    ("test1", "csrnab.ref", "csrnab.hyp", "trn"),
    ("test3", "lvc_ref.stm", "lvc_hyp.ctm", None),
    ("test3a", "lvc_refe.stm", "lvc_hyp.ctm", None),
    ("test15_d", "test.ukranian.ref", "test.ukranian.hyp", "trn"),
    ("test16_2", "stm2ctm_missing.ref.stm", "stm2ctm_missing.hyp-missall.ctm", None),
    ("test16_5", "stm2ctm_missing.ref.stm", "stm2ctm_missing.hyp-missfile1chanb.ctm", None),
    ("test16_9", "stm2ctm_missing.ref.stm", "stm2ctm_missing.hyp.ctm", None),
    ("test17", "test.vietnamese.ref.trn", "test.vietnamese.hyp.trn", None),
]


@pytest.mark.parametrize(("test", "reference", "hypothesis", "format"), SCLITE)
def test_errors_are_those_of_sclite(
    tmp_path: Path,
    shared_file: Callable[..., Path],
    test: str,
    reference: str,
    hypothesis: str,
    format: TranscriptFormat | None,
) -> None:
    """sclite's own tests: its weights may make other alignments (and readings), here with as many errors each time."""
    with tarfile.open(shared_file("open", "sctk", "testdata.tar.gz")) as archive:
        names = {Path(name).name: name for name in archive.getnames()}
        for name in (reference, hypothesis, f"{test}.raw"):
            member = archive.extractfile(names[name])
            assert member is not None
            (tmp_path / name).write_bytes(member.read())
    files = {"references": str(tmp_path / reference), "hypotheses": [str(tmp_path / hypothesis)]}
    ours = score_files(WER(lowercase=True), **files, reading=Reading(format=format), settings=QUICK)[0].score
    summary = re.search(r"\| Sum  *\|(.*)\|", (tmp_path / f"{test}.raw").read_text())
    assert summary is not None
    _, _, _, _, _, _, errors, _ = map(int, summary[1].replace("|", " ").split())
    assert ours.errors == errors
