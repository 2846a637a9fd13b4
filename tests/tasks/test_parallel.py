"""References and outputs of systems, read in step."""

from __future__ import annotations

import json
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from lmgauge.base.errors import InputError, UsageError
from lmgauge.tasks.parallel import ParallelFiles
from lmgauge.tasks.settings import Reading


def write(path: Path, lines: list[str]) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def everything(files: ParallelFiles) -> tuple[list[list[str]], list[list[str]], list[str]]:
    """References of each segment, hypotheses of each system, group of each segment."""
    references: list[list[str]] = []
    hypotheses: list[list[str]] = [[] for _ in files.names]
    groups: list[str] = []
    for block in files:
        flat, bounds = block.references.texts.strings(), block.references.offsets.tolist()
        references.extend(flat[begin:end] for begin, end in pairwise(bounds))
        for into, texts in zip(hypotheses, block.hypotheses, strict=True):
            into.extend(texts.strings())
        if block.groups is not None:
            groups.extend(files.group_names[code] for code in block.groups.tolist())
    return references, hypotheses, groups


def test_blocks_of_unequal_files_meet(tmp_path: Path) -> None:
    count = 40_000
    reference = write(tmp_path / "ref.txt", [f"reference {i}" for i in range(count)])
    long = write(tmp_path / "long.txt", [f"a hypothesis that is a good deal longer than that {i}" for i in range(count)])
    short = write(tmp_path / "short.txt", [str(i) for i in range(count)])
    files = ParallelFiles([reference], [long, short])
    assert len(list(files)) > 2
    references, (first, second), _ = everything(files)
    assert files.names == ["long", "short"]
    assert references == [[f"reference {i}"] for i in range(count)]
    assert [text.rsplit(" ", 1)[1] for text in first] == second == [str(i) for i in range(count)]


def test_several_files_of_references(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.txt", ["a", "b", ""]), write(tmp_path / "b.txt", ["c", "d", "e"])
    hypothesis = write(tmp_path / "h.txt", ["x", "y", "z"])
    references, _, _ = everything(ParallelFiles([first, second], [hypothesis]))
    assert references == [["a", "c"], ["b", "d"], ["", "e"]]


def test_lists_of_references_of_any_number(tmp_path: Path) -> None:
    rows = [{"text": ["a", "b"], "who": "x"}, {"text": "c", "who": "y"}, {"text": ["d", "e", "f"], "who": "x"}]
    reference = write(tmp_path / "ref.jsonl", [json.dumps(row) for row in rows])
    more = write(tmp_path / "more.txt", ["1", "2", "3"])
    hypothesis = write(tmp_path / "h.txt", ["x", "y", "z"])
    references, hypotheses, groups = everything(ParallelFiles([reference, more], [hypothesis], Reading(group="who")))
    assert references == [["a", "b", "1"], ["c", "2"], ["d", "e", "f", "3"]]
    assert hypotheses == [["x", "y", "z"]]
    assert groups == ["x", "y", "x"]


def test_several_columns_are_several_references(tmp_path: Path) -> None:
    reference = write(tmp_path / "ref.tsv", ["r1\tr2", "a\tb", "c\td"])
    hypothesis = write(tmp_path / "h.tsv", ["text", "x", "y"])
    references, hypotheses, _ = everything(ParallelFiles([reference], [hypothesis], Reading(ref_field=("r1", "r2"))))
    assert references == [["a", "b"], ["c", "d"]]
    assert hypotheses == [["x", "y"]]


def test_groups_from_a_file_of_names(tmp_path: Path) -> None:
    reference, hypothesis = write(tmp_path / "r.txt", ["a", "b", "c"]), write(tmp_path / "h.txt", ["x", "y", "z"])
    labels = write(tmp_path / "docs.txt", ["news", "chat", "news"])
    _, _, groups = everything(ParallelFiles([reference], [hypothesis], Reading(group=labels)))
    assert groups == ["news", "chat", "news"]
    short = write(tmp_path / "short.txt", ["news"])
    with pytest.raises(InputError, match=r"short\.txt ends first, after 1 line; .* has 3 lines"):
        list(ParallelFiles([reference], [hypothesis], Reading(group=short)))


def test_records_are_matched_by_id(tmp_path: Path) -> None:
    reference = write(tmp_path / "ref.tsv", ["1\tone", "2\ttwo", "3\tthree"])
    hypothesis = write(tmp_path / "hyp.tsv", ["3\tdrei", "1\teins", "2\tzwei"])
    same = write(tmp_path / "same.tsv", ["1\tun", "2\tdeux", "3\ttrois"])
    reading = Reading(field="2", id="1")
    references, hypotheses, _ = everything(ParallelFiles([reference], [hypothesis, same], reading))
    assert references == [["one"], ["two"], ["three"]]
    assert hypotheses == [["eins", "zwei", "drei"], ["un", "deux", "trois"]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["1\ta", "2\tb"], r"hyp\.tsv: has no record with the id '3'"),
        (["1\ta", "2\tb", "3\tc", "4\td"], r"ref\.tsv: has no record with the id '4'"),
        (["1\ta", "2\tb", "2\tc"], "the id '2' occurs a second time"),
    ],
)
def test_ids_that_do_not_fit(tmp_path: Path, rows: list[str], message: str) -> None:
    reference = write(tmp_path / "ref.tsv", ["1\tone", "2\ttwo", "3\tthree"])
    hypothesis = write(tmp_path / "hyp.tsv", rows)
    with pytest.raises(InputError, match=message):
        list(ParallelFiles([reference], [hypothesis], Reading(field="2", id="1")))


@pytest.mark.parametrize(("text", "name"), [("text", "id"), ("2", "id"), ("text", "1")])
def test_ids_and_texts_of_one_table_by_name_and_number(tmp_path: Path, text: str, name: str) -> None:
    reference = write(tmp_path / "ref.tsv", ["id\ttext", "1\tone", "2\ttwo"])
    hypothesis = write(tmp_path / "hyp.tsv", ["id\ttext", "2\tzwei", "1\teins"])
    same = write(tmp_path / "same.tsv", ["id\ttext", "1\tun", "2\tdeux"])
    references, hypotheses, _ = everything(ParallelFiles([reference], [hypothesis, same], Reading(field=text, id=name)))
    assert references == [["one"], ["two"]]
    assert hypotheses == [["eins", "zwei"], ["un", "deux"]]


def test_ids_may_be_numbers(tmp_path: Path) -> None:
    reference = write(tmp_path / "ref.jsonl", [json.dumps({"id": i, "text": [f"r{i}", f"s{i}"]}) for i in (1, 2)])
    hypothesis = write(tmp_path / "hyp.jsonl", [json.dumps({"id": i, "text": f"h{i}"}) for i in (2, 1)])
    files = ParallelFiles([reference], [hypothesis], Reading(id="id"))
    references, hypotheses, _ = everything(files)
    assert files.notes == []  # both texts of a list have its id
    assert references == [["r1", "s1"], ["r2", "s2"]]
    assert hypotheses == [["h1", "h2"]]


@pytest.mark.parametrize("by", ["who", "names.txt"])
def test_records_matched_by_id_have_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "names.txt", ["x", "y"])
    write(tmp_path / "few.txt", ["x"])
    reference = write(tmp_path / "ref.tsv", ["id\ttext\twho", "1\tone\tx", "2\ttwo\ty"])
    hypothesis = write(tmp_path / "hyp.tsv", ["id\ttext", "2\tzwei", "1\teins"])
    _, hypotheses, groups = everything(ParallelFiles([reference], [hypothesis], Reading(id="id", group=by)))
    assert (hypotheses, groups) == ([["eins", "zwei"]], ["x", "y"])
    with pytest.raises(InputError, match=r"few\.txt: 1 names of groups for the 2 segments"):
        list(ParallelFiles([reference], [hypothesis], Reading(id="id", group="few.txt")))


def test_folders_of_records_matched_by_id_have_groups(tmp_path: Path) -> None:
    for folder, order in (("ref", "12"), ("sys", "21")):
        for name in ("a", "b"):
            write(tmp_path / folder / f"{name}.tsv", ["id\ttext", *(f"{i}\t{folder} {name}{i}" for i in order)])
    files = ParallelFiles([str(tmp_path / "ref")], [str(tmp_path / "sys")], Reading(id="id", group="file"))
    _, hypotheses, groups = everything(files)
    assert hypotheses == [["sys a1", "sys a2", "sys b1", "sys b2"]]
    assert groups == ["a.tsv", "a.tsv", "b.tsv", "b.tsv"]


def test_folders_are_matched_by_file_name(tmp_path: Path) -> None:
    for folder in ("ref", "sys"):
        write(tmp_path / folder / "b.txt", [f"{folder} b1"])
        write(tmp_path / folder / "a.txt", [f"{folder} a1", f"{folder} a2"])
    files = ParallelFiles([str(tmp_path / "ref")], [str(tmp_path / "sys")], Reading(group="file"))
    references, hypotheses, groups = everything(files)
    assert files.names == ["sys"]
    assert references == [["ref a1"], ["ref a2"], ["ref b1"]]
    assert hypotheses == [["sys a1", "sys a2", "sys b1"]]
    assert groups == ["a.txt", "a.txt", "b.txt"]
    (tmp_path / "sys" / "b.txt").unlink()
    with pytest.raises(InputError, match=r"sys: has no file b\.txt"):
        ParallelFiles([str(tmp_path / "ref")], [str(tmp_path / "sys")])


@pytest.mark.parametrize(
    ("references", "hypothesis", "message"),
    [
        (["a", "b", "c"], ["x"], r"h\.txt ends first, after 1 line; .*r\.txt has 3 lines"),
        (["a"], ["x", "y"], r"r\.txt ends first, after 1 line; .*h\.txt has 2 lines"),
        (["a"], [], r"h\.txt: the file is empty; .*r\.txt has 1 line"),
        ([], [], "the file is empty, as the others are"),
    ],
)
def test_files_of_different_length(tmp_path: Path, references: list[str], hypothesis: list[str], message: str) -> None:
    files = ParallelFiles([write(tmp_path / "r.txt", references)], [write(tmp_path / "h.txt", hypothesis)])
    with pytest.raises(InputError, match=message):
        list(files)


def test_only_newlines_end_a_line(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_bytes("one\u2028still one\x0cand\x85on\r\ntwo".encode())
    (tmp_path / "h.txt").write_bytes(b"\xef\xbb\xbfx\ny\n")
    files = ParallelFiles([str(tmp_path / "r.txt")], [str(tmp_path / "h.txt")])
    references, hypotheses, _ = everything(files)
    assert references == [["one\u2028still one\x0cand\x85on"], ["two"]]
    assert hypotheses == [["\ufeffx", "y"]]
    assert any("CRLF" in note for note in files.notes)


def test_a_byte_order_mark_is_text_unless_it_is_not_to_be(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_bytes(b"\xef\xbb\xbfa\nb\n")
    (tmp_path / "h.jsonl").write_bytes(b'\xef\xbb\xbf{"text": "x"}\n{"text": "y"}\n')
    files = ParallelFiles([str(tmp_path / "r.txt")], [str(tmp_path / "h.jsonl")])
    references, hypotheses, _ = everything(files)
    assert (references, hypotheses) == ([["\ufeffa"], ["b"]], [["x", "y"]])
    told, of_records = files.notes
    assert told.startswith(f"{tmp_path / 'r.txt'}: a byte order mark at the start is counted as text, as sacreBLEU")
    assert r"sed -i '1s/^\xEF\xBB\xBF//'" in told
    assert "byte order mark dropped" in of_records
    references, _, _ = everything(
        ParallelFiles([str(tmp_path / "r.txt")], [str(tmp_path / "h.jsonl")], Reading(keep_bom=False))
    )
    assert references == [["a"], ["b"]]


def test_a_group_s_name_has_no_byte_order_mark(tmp_path: Path) -> None:
    one = write(tmp_path / "one.txt", ["a", "b"])
    (tmp_path / "groups").write_bytes(b"\xef\xbb\xbfnews\nnews\n")
    _, _, groups = everything(ParallelFiles([one], [one], Reading(group=str(tmp_path / "groups"))))
    assert groups == ["news", "news"]


def test_ids_of_utterances_are_noticed(tmp_path: Path) -> None:
    reference = write(tmp_path / "ref", ["utt-1 a b", "utt-2 c"])
    ids, plain = write(tmp_path / "ids", ["utt-1 a b", "utt-2 d"]), write(tmp_path / "plain", ["a b", "d"])
    files = ParallelFiles([reference, reference], [ids, plain])
    everything(files)
    (note,) = files.notes
    assert note.startswith(f"{reference} and {ids}: every line begins with an id (utt-1)")
    everything(files)  # each pass looks anew
    assert len(files.notes) == 1


def test_ids_of_utterances_in_folders_are_noticed_once(tmp_path: Path) -> None:
    for folder, name in product(("refs", "outs"), ("1", "2", "3")):
        write(tmp_path / folder / name, ["a (utt-1)", "b (utt-2)"])
    files = ParallelFiles([str(tmp_path / "refs")], [str(tmp_path / "outs")])
    everything(files)
    assert [note.partition(": every line ends")[0] for note in files.notes] == [
        f"{tmp_path / 'refs' / '1'} and {tmp_path / 'outs' / '1'}"
    ]


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    one = write(tmp_path / "one.txt", ["a"])
    with pytest.raises(UsageError, match="standard input"):
        ParallelFiles(["-"], ["-"])
    with pytest.raises(UsageError, match="named twice"):
        ParallelFiles([one], [one, one])
    with pytest.raises(UsageError, match=r"is a folder and .* is not"):
        ParallelFiles([one], [str(tmp_path)])
    with pytest.raises(UsageError, match="needs folders"):
        ParallelFiles([one], [one], Reading(group="file"))
    with pytest.raises(UsageError, match="standard input"):
        ParallelFiles(["-"], [one], Reading(group="-"))
    write(tmp_path / "two.txt", ["b"])
    with pytest.raises(UsageError, match="stands for several files"):
        ParallelFiles([str(tmp_path / "*.txt")], [one])
    with pytest.raises(UsageError, match="choose one of fail, replace"):
        Reading(errors="skip")
    with pytest.raises(UsageError, match="lines of text have no field 'id'"):
        list(ParallelFiles([one], [one], Reading(id="id")))


def test_invalid_text_is_named(tmp_path: Path) -> None:
    reference = write(tmp_path / "r.txt", ["a", "b"])
    (tmp_path / "h.txt").write_bytes(b"fine\nb\xff\n")
    with pytest.raises(InputError, match=r"h\.txt, line 2, byte 6: 0xFF is not valid UTF-8"):
        list(ParallelFiles([reference], [str(tmp_path / "h.txt")]))
    (tmp_path / "h.txt").write_bytes(b"fine\nb\0\n")
    with pytest.raises(InputError, match="NUL"):
        list(ParallelFiles([reference], [str(tmp_path / "h.txt")]))
    _, hypotheses, _ = everything(ParallelFiles([reference], [str(tmp_path / "h.txt")], Reading(errors="replace")))
    assert hypotheses == [["fine", "b\ufffd"]]


def test_a_line_of_ten_megabytes(tmp_path: Path) -> None:
    reference = write(tmp_path / "r.txt", ["word " * 2_000_000, "b"])
    hypothesis = write(tmp_path / "h.txt", ["x", "y"])
    lengths = [np.diff(block.references.texts.starts) for block in ParallelFiles([reference], [hypothesis])]
    assert sum(map(len, lengths)) <= 2


def documents_of(files: ParallelFiles) -> list[int]:
    """The number of the document of each segment."""
    found: list[int] = []
    for block in files:
        assert block.documents is not None
        found.extend(block.documents.tolist())
    return found


def test_documents_from_a_field_a_file_of_names_and_blank_lines(tmp_path: Path) -> None:
    names, texts = ["x", "x", "y", "x", "z"], ["a", "", "b", "c", "d"]
    rows = [json.dumps({"text": text, "doc": name}) for text, name in zip(texts, names, strict=True)]
    plain, record = write(tmp_path / "a.txt", texts), write(tmp_path / "b.jsonl", rows)
    docids = write(tmp_path / "docids.txt", names)
    for references, hypotheses, document, by in (
        ([record], [plain], "doc", "field doc"),
        ([plain], [record], "doc", "field doc"),
        ([plain], [write(tmp_path / "c.txt", texts)], docids, "docids.txt"),
        ([record], [plain], docids, "docids.txt"),
    ):
        files = ParallelFiles(references, hypotheses, Reading(document=document))
        assert documents_of(files) == [0, 0, 1, 0, 2]
        assert files.documents_by == by
    files = ParallelFiles([plain], [docids], Reading(document="blank-line"))
    assert (documents_of(files), files.documents_by) == ([0, 0, 1, 1, 1], "blank lines")
    for document in (None, "unknown", "segment"):
        files = ParallelFiles([plain], [docids], Reading(document=document))
        assert next(iter(files)).documents is None
        assert files.documents_by == ("segments" if document == "segment" else "unknown")


def test_documents_follow_segments_that_are_matched_by_id(tmp_path: Path) -> None:
    def records(name: str, order: list[int], **fields: list[str]) -> str:
        rows = [{"text": f"t{i}", "id": i} | {key: values[i] for key, values in fields.items()} for i in order]
        return write(tmp_path / name, [json.dumps(row) for row in rows])

    documents = ["x", "y", "x", "z"]
    first = records("a.jsonl", [0, 1, 2, 3], doc=documents)
    other = records("b.jsonl", [3, 1, 0, 2], doc=documents)
    outputs = [(first, other), (other, first)]
    assert [documents_of(ParallelFiles([a], [b], Reading(id="id", document="doc"))) for a, b in outputs] == [
        [0, 1, 0, 2],
        [0, 1, 2, 2],
    ]
    docids = write(tmp_path / "docids.txt", documents)
    assert documents_of(ParallelFiles([first], [other], Reading(id="id", document=docids))) == [0, 1, 0, 2]
    with pytest.raises(InputError, match=r"short.txt: 1 names of documents for the 4 segments"):
        documents_of(ParallelFiles([first], [other], Reading(id="id", document=write(tmp_path / "short.txt", ["x"]))))


def test_each_file_of_folders_is_a_document(tmp_path: Path) -> None:
    for folder in ("ref", "a"):
        for name, lines in (("one.txt", ["1", "", "2"]), ("two.txt", ["3"])):
            write(tmp_path / folder / name, lines)
    folders = [str(tmp_path / "ref")], [str(tmp_path / "a")]
    for document, by, numbers in ((None, "files", [0, 0, 0, 1]), ("blank-line", "blank lines", [0, 0, 1, 2])):
        files = ParallelFiles(*folders, Reading(document=document))
        assert (documents_of(files), documents_of(files), files.documents_by) == (numbers, numbers, by)
    assert next(iter(ParallelFiles(*folders, Reading(document="unknown")))).documents is None


def test_a_document_is_one_in_whichever_file_of_a_folder(tmp_path: Path) -> None:
    for folder in ("ref", "a"):
        for name, documents in (("one.jsonl", "xyx"), ("two.jsonl", "zx")):
            write(tmp_path / folder / name, [json.dumps({"text": "t", "doc": of}) for of in documents])
    folders = [str(tmp_path / "ref")], [str(tmp_path / "a")]
    assert documents_of(ParallelFiles(*folders, Reading(document="doc"))) == [0, 1, 0, 2, 0]
    assert next(iter(ParallelFiles(*folders))).documents is None


def test_what_cannot_tell_documents(tmp_path: Path) -> None:
    plain, other = write(tmp_path / "a.txt", ["a", "b"]), write(tmp_path / "b.txt", ["a", "b"])
    with pytest.raises(UsageError, match=r"--document doc: there is no such file .* and .*a.txt is plain text"):
        ParallelFiles([plain], [other], Reading(document="doc"))
    with pytest.raises(UsageError, match="--document file needs folders"):
        ParallelFiles([plain], [other], Reading(document="file"))
    with pytest.raises(InputError, match=r"c.txt ends first, after 1 line"):
        documents_of(ParallelFiles([plain], [other], Reading(document=write(tmp_path / "c.txt", ["x"]))))
    write(tmp_path / "ref" / "a.txt", ["a"])
    write(tmp_path / "hyp" / "a.txt", ["a"])
    with pytest.raises(UsageError, match="in folders one file cannot name all documents"):
        ParallelFiles([str(tmp_path / "ref")], [str(tmp_path / "hyp")], Reading(document="doc"))
