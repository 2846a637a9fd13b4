"""The one reader of JSON: what says two things, or is no JSON of ours, is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmgauge
from lmgauge.base.errors import InputError
from lmgauge.base.json_text import from_json
from lmgauge.evaluation.runs import open_run

PACKAGE = Path(lmgauge.__file__).parent
TWICE = '{"text": "the cat", "text": "zebra"}'
INTERNAL = {
    "models/ngram/reading.py",  # our own arrays
    *("models/ngram/model.py", "models/ngram/training.py", "work/engine.py"),
    "models/ngram/storage.py",  # headers under a digest; a list
    *("text/library_tokenizers.py", "models/training/tokenizers.py", "models/network/tokens.py"),  # a library's files
    "models/training/progress_file.py",  # an example
}
"""Where JSON is read that did not come from outside."""

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
)


@given(values)
def test_what_is_written_is_read(value: object) -> None:
    assert from_json(json.dumps(value)) == value
    assert from_json(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")) == value


@given(st.lists(st.text(), min_size=2).filter(lambda keys: len(set(keys)) < len(keys)))
def test_a_key_that_occurs_twice_is_refused(keys: list[str]) -> None:
    inside = ", ".join(f"{json.dumps(key)}: 1" for key in keys)
    for text in (f"{{{inside}}}", f'{{"inner": [{{{inside}}}]}}'):
        with pytest.raises(ValueError, match="occurs twice in one object"):
            from_json(text)


def test_deep_brackets_and_other_programs_numbers() -> None:
    with pytest.raises(ValueError, match="brackets are too deep"):
        from_json("[" * 100_000)
    assert from_json("[Infinity, -Infinity]") == [float("inf"), -float("inf")]
    for text in ("[NaN]", "1" + "0" * 400):
        with pytest.raises(ValueError, match=r"not JSON|401 digits"):
            from_json(text, own=True)
    assert from_json("1" + "0" * 400) == 10**400


def test_there_is_one_reader() -> None:
    own = {
        path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if "json.loads(" in path.read_text("utf-8")
    }
    assert own <= INTERNAL


def test_records_and_rows_that_say_two_things_are_bad_records(tmp_path: Path) -> None:
    text = tmp_path / "text.jsonl"
    text.write_text(f'{TWICE}\n{{"text": "a"}}\n', encoding="utf-8", newline="\n")
    with pytest.raises(InputError, match=r"text\.jsonl:1: not usable JSON: the key 'text' occurs twice in one object"):
        list(lmgauge.Corpus.from_files([text]))
    corpus = lmgauge.Corpus.from_files([text], errors="skip")
    assert [block.text(0) for block in corpus] == [b"a"]
    assert corpus.report.unusable == 1
    table = tmp_path / "table.jsonl"
    table.write_text('{"segment": 0, "logprob": -1.5, "logprob": -2.5}\n', encoding="utf-8", newline="\n")
    with pytest.raises(InputError, match=":1: not usable JSON: the key 'logprob' occurs twice"):
        list(open_run(table).batches())
