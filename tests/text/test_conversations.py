"""Conversations: read from all formats alike, their turns segments, and all of their messages part of the fingerprint."""

from __future__ import annotations

import csv
import datetime
import json
import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError
from lmgauge.text.readers import Conversation
from lmgauge.text.reading_options import ReadingOptions

CALL = {"type": "function", "function": {"name": "sum", "arguments": {"a": 1}}}
SUMS: list[dict[str, Any]] = [
    {"role": "system", "content": "Reckon."},
    {"role": "user", "content": "1 + 1?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "2", "tool_call_id": "a"},
    {"role": "assistant", "content": "two", "reasoning_content": "the tool says so"},
    {"role": "user", "content": "für\r\n漢"},
    {"role": "assistant", "content": ""},
]
SHARED = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]
RECORDS: list[dict[str, Any]] = [
    {"id": "sums", "topic": "math", "messages": SUMS, "tools": [CALL]},
    {"id": "alone", "topic": "talk", "messages": SUMS[:2]},
    {"id": "shared", "topic": "talk", "messages": SHARED},
]
FORMATS = ["jsonl", "parquet", "csv", "tsv"]


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    elif path.suffix == ".parquet":
        names = list(records[0])
        pq.write_table(pa.table({name: [record.get(name) for record in records] for name in names}), path)
    else:
        cells = [[record.get(name) for name in records[0]] for record in records]
        rows = [[value if isinstance(value, str) else json.dumps(value) for value in row] for row in cells]
        with path.open("w", encoding="utf-8", newline="") as file:
            if path.suffix == ".csv":
                csv.writer(file).writerows([list(records[0]), *rows])
            else:  # nothing is quoted there
                file.write("".join("\t".join(row) + "\n" for row in [list(records[0]), *rows]))
    return path


def read(corpus: Corpus) -> list[tuple[str, int, Conversation, int | None]]:
    """Of each segment its text, which message it is, of what conversation, and the number of its document."""
    return list(_turns(corpus))


def _turns(corpus: Corpus) -> Iterator[tuple[str, int, Conversation, int | None]]:
    for block in corpus:
        assert block.turns is not None
        assert len(block.turns) == len(block)
        for i, turn in enumerate(block.turns):
            document = None if block.documents is None else int(block.documents[i])
            assert turn.message["content"] == block.text(i).decode()
            yield block.text(i).decode(), turn.at, turn.conversation, document


def test_each_turn_of_the_assistant_is_a_segment_and_each_conversation_a_document() -> None:
    corpus = Corpus.from_conversations(RECORDS)
    turns = read(corpus)
    assert [(text, at, document) for text, at, _, document in turns] == [("two", 4, 0), ("", 6, 0), ("Hello", 1, 1)]
    assert turns[0][2].messages[2] == {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert turns[0][2].messages[4]["reasoning_content"] == "the tool says so"
    assert turns[0][2].tools == (CALL,)
    assert turns[2][2] == Conversation(({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}))
    assert corpus.roles == ("assistant",)
    report = corpus.report
    assert (report.segments, report.bytes, report.documents, report.documents_by) == (3, 8, 2, "conversations")
    assert report.notes() == [
        "1 CRLF line ends read as LF",
        "1 turn without content (tool calls): shown, not scored",
        "1 turn with reasoning in a field of its own: not scored",
        "1 conversation without a turn of the roles that are scored",
    ]
    assert Corpus.from_strings(["the cat"]).roles is None


@pytest.mark.parametrize("ending", FORMATS)
def test_all_formats_give_the_same(ending: str, tmp_path: Path) -> None:
    corpus, expected = Corpus.from_conversations(RECORDS), read(Corpus.from_conversations(RECORDS))
    path = write(tmp_path / f"x.{ending}", RECORDS)
    files = Corpus.from_files(path, chat="messages", id="id", keep="topic")
    assert read(files) == read(corpus) == expected
    assert files.report.sha256 == corpus.report.sha256
    assert files.report.repeated_ids == 0
    (block,) = files
    assert (block.ids, block.labels["keep:topic"]) == (["sums", "sums", "shared"], ["math", "math", "talk"])
    write(path, [{name: record[name] for name in ("id", "messages")} for record in RECORDS])
    without_tools = read(Corpus.from_files(path, chat="messages"))
    assert [turn[2].tools for turn in without_tools] == [None] * 3


def test_members_of_messages_that_other_rows_have_are_not_there(tmp_path: Path) -> None:
    """A column of structs has all members that any row has, null where a row has it not."""
    path = write(tmp_path / "x.parquet", RECORDS)
    first, *_ = Corpus.from_files(path, chat="messages")
    assert first.turns is not None
    assert first.turns[0].conversation.messages[:2] == tuple(SUMS[:2])


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": WORDS}, optional={"name": WORDS}
)
CONVERSATIONS = st.lists(st.lists(MESSAGES, min_size=1, max_size=5), min_size=1, max_size=6)
SOME_ROLES = st.lists(st.sampled_from(["user", "assistant", "tool"]), min_size=1, unique=True)


@settings(max_examples=50, deadline=None)
@given(CONVERSATIONS, SOME_ROLES, st.sampled_from(FORMATS[:3]), st.integers(1, 300))
def test_what_is_read_depends_neither_on_the_format_nor_on_the_size_of_blocks(
    conversations: list[list[dict[str, Any]]], roles: list[str], ending: str, block_bytes: int
) -> None:
    scored = [messages for messages in conversations if any(message["role"] in roles for message in messages)]
    assume(scored)
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder, f"x.{ending}"), [{"said": messages} for messages in conversations])
        files = Corpus.from_files(path, chat="said", roles=roles, block_bytes=block_bytes)
        strings = Corpus.from_conversations(conversations, roles=roles)
        turns = read(files)
        assert turns == read(strings)
    assert files.report.sha256 == strings.report.sha256
    said = [message["content"] for messages in conversations for message in messages if message["role"] in roles]
    assert [turn[0].replace("\r", "") for turn in turns] == [text.replace("\r", "") for text in said]
    assert files.report.bytes == sum(len(turn[0].encode()) for turn in turns)
    assert (files.report.documents, files.report.without_turns) == (len(scored), len(conversations) - len(scored))


def test_whatever_models_see_is_part_of_the_fingerprint() -> None:
    said = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "the cat"}]
    texts = [
        Corpus.from_conversations([said]),
        Corpus.from_conversations([said], roles="user"),
        Corpus.from_conversations([said], roles=["user", "assistant"]),
        Corpus.from_conversations([[said[0] | {"content": "What?"}, said[1]]]),
        Corpus.from_conversations([[said[0] | {"name": "Ann"}, said[1]]]),
        Corpus.from_conversations([{"messages": said, "tools": [CALL]}]),
        Corpus.from_conversations([said[1:]]),
        Corpus.from_conversations([said, said]),
        Corpus.from_strings(["the cat"], as_turn="assistant"),
        Corpus.from_strings(["the cat"], as_turn="user"),
        Corpus.from_strings(["the cat"]),
    ]
    for text in texts:
        list(text)
    assert len({text.report.sha256 for text in texts}) == len(texts)
    again = Corpus.from_conversations([{"messages": said, "tools": []}], roles=["assistant"])
    list(again)
    assert again.report.sha256 == texts[0].report.sha256


def test_blocks_keep_the_turns_of_their_segments() -> None:
    (block,) = Corpus.from_conversations(RECORDS, roles=["user", "assistant"])
    assert block.turns is not None
    assert [turn.at for turn in block.turns] == [1, 4, 5, 6, 1, 0, 1]
    parts = block.part(1, 4), block.where(np.array([False, True, True, True, False, False, False]))
    assert [part.turns for part in parts] == [block.turns[1:4]] * 2
    chosen = Corpus.from_conversations(RECORDS).chosen(np.array([False, True, True]))
    assert [(text, at) for text, at, *_ in read(chosen)] == [("", 6), ("Hello", 1)]


def test_groups_are_those_of_conversations_or_the_roles_of_turns(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", RECORDS)
    for group, expected in (("topic", ["math"] * 4 + ["talk"] * 3), ("role", ["user", "assistant", "user", "assistant"])):
        corpus = Corpus.from_files(path, chat="messages", roles=["user", "assistant"], group=group)
        (block,) = corpus
        assert block.groups is not None
        assert [corpus.group_names[code] for code in block.groups][: len(expected)] == expected
    named = Corpus.from_conversations(RECORDS, groups=["x", "y", "z"], documents=["d", "d", "d"])
    (block,) = named
    assert (named.group_names, named.report.documents, named.report.documents_by) == (["x", "z"], 1, "names")


def test_plain_text_as_turns(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("the cat\n\nsat\n", encoding="utf-8")
    corpus = Corpus.from_files(tmp_path / "x.txt", as_turn="user")
    turns = read(corpus)
    assert turns[0][2].messages == ({"role": "user", "content": "the cat"},)
    assert [(text, at) for text, at, *_ in turns] == [("the cat", 0), ("", 0), ("sat", 0)]
    assert corpus.roles == ("user",)
    assert read(corpus.in_blocks(1)) == turns
    write(tmp_path / "x.jsonl", [{"text": "the cat"}])
    assert [turn[0] for turn in read(Corpus.from_files(tmp_path / "x.jsonl", as_turn="assistant"))] == ["the cat"]


def test_the_same_text_is_read_again_from_what_is_stored(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", RECORDS)
    for chosen in (
        {"chat": "messages", "roles": ["user", "tool"]},
        {"chat": "messages"},
        {"as_turn": "user", "field": "id"},
    ):
        corpus = Corpus.from_files(path, **chosen)
        stored = json.loads(json.dumps(corpus.settings))
        assert chosen.items() <= stored.items()
        again = Corpus.from_files(stored.pop("paths"), reading=ReadingOptions(**stored))
        assert read(again) == read(corpus)
        assert again.report.sha256 == corpus.report.sha256
    assert "roles" not in Corpus.from_files(path).settings


BAD = [
    ({"messages": []}, "a conversation without messages"),
    ({"messages": None}, "null is not a list of messages"),
    ({"messages": 3}, "a number is not a list of messages"),
    ({"messages": {"a": 1}}, "an object is not a list of messages"),
    ({"messages": "who"}, "not messages, nor JSON: Expecting value"),
    ({"said": SUMS}, "no field 'messages'; the fields are 'said'"),
    ({"messages": ["who"]}, "message 1 is a string, not an object with a role and content"),
    ({"messages": [*SUMS, {"role": "narrator", "content": "x"}]}, "message 8 has the role 'narrator'; roles are system,"),
    ({"messages": [{"role": ["user"], "content": "x"}]}, "message 1 has the role \"['user']\"; roles are"),
    ({"messages": [{"content": "x"}]}, "message 1 has no role; roles are"),
    ({"messages": [{"role": "user"}]}, "message 1 has no content"),
    ({"messages": [{"role": "user", "content": None, "tool_calls": []}]}, "message 1 has no content"),
    ({"messages": [{"role": "user", "content": 3}]}, "the content of message 1 is a number, not a string"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "the content of message 1 is a list, not a string"),
    ({"messages": SUMS, "tools": "f"}, "not messages, nor JSON: Expecting value"),
    ({"messages": SUMS, "tools": {"f": 1}}, "tools are a list, not an object"),
    ({"messages": [{"role": "user", "content": "\0"}]}, "NUL (0x00) is not text"),
    ({"messages": [{"role": "user", "content": "x", "name": "\ud800"}]}, "a lone surrogate"),
]


@pytest.mark.parametrize(("record", "says"), BAD)
def test_a_bad_record_is_named_or_left_out_alone(record: dict[str, Any], says: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", [RECORDS[0], record, RECORDS[2]])
    with pytest.raises(InputError) as refusal:
        list(Corpus.from_files(path, chat="messages"))
    assert f"{path}:2: " in str(refusal.value)
    assert says in str(refusal.value)
    skipping = Corpus.from_files(path, chat="messages", errors="skip")
    good = Corpus.from_conversations([RECORDS[0], RECORDS[2]])
    assert read(skipping) == read(good)
    assert skipping.report.sha256 == good.report.sha256
    assert (skipping.report.skipped, skipping.report.unusable) == (1, 1)
    assert says in skipping.report.left_out()[0]


@pytest.mark.parametrize(("record", "says"), BAD)
def test_a_bad_conversation_of_a_list_is_named_alike(record: dict[str, Any], says: str) -> None:
    if "messages" in record:
        with pytest.raises(InputError) as refusal:
            list(Corpus.from_conversations([SHARED, record]))
        assert "<conversations>:2: " in str(refusal.value)
        assert says in str(refusal.value)


def test_bad_characters_are_replaced_in_all_messages() -> None:
    said = [{"role": "user", "content": "a\0b"}, {"role": "assistant", "content": "\ud800"}]
    corpus = Corpus.from_conversations([said], errors="replace")
    ((text, _, conversation, _),) = read(corpus)
    assert text == "\N{REPLACEMENT CHARACTER}" * 3
    assert conversation.messages[0]["content"] == "a\N{REPLACEMENT CHARACTER}b"
    assert corpus.report.replaced == 4


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"chat": "m", "field": "a"}, "chat makes turns of segments: leave out field"),
        ({"chat": "m", "given": "a"}, "leave out given"),
        ({"chat": "m", "join": " "}, "leave out join"),
        ({"chat": "m", "lists": True}, "leave out lists"),
        ({"chat": "m", "unit": "document"}, "leave out unit"),
        ({"chat": "m", "as_turn": "user"}, "leave out as_turn"),
        ({"as_turn": "user", "given": "a"}, "as_turn makes turns of segments: leave out given"),
        ({"as_turn": "user", "join": "\n"}, "leave out join"),
        ({"as_turn": "narrator"}, "unknown as-turn 'narrator': choose one of system,"),
        ({"roles": "user"}, "name the field of its messages (chat)"),
        ({"chat": "m", "roles": "narrator"}, "unknown role 'narrator': choose of system,"),
        ({"chat": "m", "roles": ()}, "unknown role ''"),
        ({"chat": 3}, "chat must be a string"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as refusal:
        ReadingOptions(**options)
    assert says in str(refusal.value)


def test_text_without_fields_has_no_messages_and_turns_are_not_joined(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("the cat\n", encoding="utf-8")
    with pytest.raises(UsageError, match="lines of text have no field 'messages'"):
        Corpus.from_files(tmp_path / "x.txt", chat="messages")
    for corpus in (Corpus.from_conversations([SHARED]), Corpus.from_strings(["a"], as_turn="user")):
        with pytest.raises(UsageError, match="given text and turns of conversations cannot be kept"):
            corpus.joined("\n")


def test_a_text_in_which_nobody_speaks_who_is_scored_is_refused() -> None:
    for messages, roles in ((SUMS[:2], "assistant"), (SUMS[:3], ["assistant", "tool"])):
        with pytest.raises(InputError, match="no conversation of the text has a turn with content of assistant"):
            list(Corpus.from_conversations([messages], roles=roles))


def test_a_text_of_conversations_can_be_pickled_and_copied() -> None:
    corpus = Corpus.from_conversations(RECORDS)
    assert read(pickle.loads(pickle.dumps(corpus))) == read(corpus) == read(corpus.in_blocks(1))


def test_members_that_json_has_not_are_kept_for_templates_and_part_of_the_fingerprint(tmp_path: Path) -> None:
    days = [datetime.date(2026, 1, day) for day in (1, 2)]
    texts = []
    for day in days:
        table = pa.table({"messages": [[{"role": "assistant", "content": "x", "on": day}]]})
        pq.write_table(table, tmp_path / f"{day}.parquet")
        texts.append(Corpus.from_files(tmp_path / f"{day}.parquet", chat="messages"))
        ((_, _, conversation, _),) = read(texts[-1])
        assert conversation.messages[0]["on"] == day
    assert texts[0].report.sha256 != texts[1].report.sha256


def test_messages_nested_too_deep_are_a_bad_record(tmp_path: Path) -> None:
    deep = '{"messages": [{"role": "assistant", "content": "\\r", "name": ' + "[" * 800 + "]" * 800 + "}]}\n"
    (tmp_path / "x.jsonl").write_text(deep + json.dumps(RECORDS[2]) + "\n", encoding="utf-8")
    corpus = Corpus.from_files(tmp_path / "x.jsonl", chat="messages", errors="skip")
    assert [text for text, *_ in read(corpus)] == ["Hello"]
    assert corpus.report.unusable == 1


def test_columns_that_hold_no_messages_are_refused(tmp_path: Path) -> None:
    latin = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"], pa.binary()).buffers())
    inside = pa.StructArray.from_arrays([pa.array(["assistant"]), latin], ["role", "content"])
    for column, says in (
        (pa.array([["the cat"]]), ":1: field 'm': message 1 is a string, not an object"),
        (pa.array([None]), ":1: field 'm': null is not a list of messages"),
        (
            pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), inside),
            "column 'm' holds a string inside that is not valid",
        ),
    ):
        pq.write_table(pa.table({"m": column}), tmp_path / "x.parquet")
        with pytest.raises(InputError) as refusal:
            list(Corpus.from_files(tmp_path / "x.parquet", chat="m"))
        assert says in str(refusal.value)


def test_a_generator_is_read_once_and_says_so() -> None:
    corpus = Corpus.from_conversations(iter([SHARED, Conversation(tuple(SUMS[:5]))]))
    assert [text for text, *_ in read(corpus)] == ["Hello", "two"]
    assert not corpus.rereadable
    with pytest.raises(UsageError, match="there are more texts than groups"):
        list(Corpus.from_conversations([SHARED, SHARED], groups=["x"]))
    arrays = np.array([SHARED[0], SHARED[1]], object), (message for message in SHARED)  # as data frames have them
    assert [text for text, *_ in read(Corpus.from_conversations(arrays))] == ["Hello", "Hello"]
