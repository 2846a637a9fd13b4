"""Many files: one at fault keeps no other from being done, and whatever ends a run, the next one goes on."""

from __future__ import annotations

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from tests.filtering.filtered import small_model

import lmgauge
from lmgauge.base.errors import InputError, LmgaugeError, UsageError
from lmgauge.base.files import OutputError
from lmgauge.filtering import filter_files
from lmgauge.filtering.results import FilteredDocuments
from lmgauge.records import lines
from lmgauge.records.compression import writing_packed

ROW = b'{"text": "a b"}\n'
ROOT = Path(__file__).resolve().parent.parent.parent


def made(root: Path, **files: bytes) -> Path:
    """A folder of files, named without their ending."""
    for name, content in files.items():
        path = root / "in" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def run(root: Path, pattern: str = "*.jsonl", output: str = "out", **options: Any) -> FilteredDocuments:
    return lmgauge.filter_documents({"m": small_model()}, str(root / "in" / pattern), f"{root / output}/", **options)


def names(root: Path, output: str = "out") -> list[str]:
    """The outputs, and whatever else lies in the folder, but for what is remembered."""
    paths = (root / output).rglob("*")
    return sorted(
        path.relative_to(root / output).as_posix() for path in paths if path.is_file() and "_lmgauge" not in path.parts
    )


# -- files at fault -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("workers", [None, 2])
def test_a_file_that_cannot_be_read_keeps_no_other_from_being_done(tmp_path: Path, workers: int | None) -> None:
    made(tmp_path, a=ROW, c=ROW * 2)
    packed = gzip.compress(b"".join(b'{"text": "a %d"}\n' % number for number in range(3000)))
    (tmp_path / "in/b.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "in/d.jsonl").write_bytes('{"text": "a"}\n'.encode("utf-16"))
    small_model().save(tmp_path / "model")  # type: ignore[attr-defined]
    options: dict[str, Any] = {"work": lmgauge.settings.FilterWork(workers=workers)}
    with pytest.raises(InputError) as refusal:
        lmgauge.filter_documents({"m": tmp_path / "model"}, f"{tmp_path}/in/*", f"{tmp_path}/out/", **options)
    message = f"{tmp_path}/in/b.jsonl.gz: the .gz file ends too early; it was cut off: copy or pack it again"
    others = f"; neither could '{tmp_path}/in/d.jsonl' be filtered (2 of 4 files are complete)"
    assert str(refusal.value) == message + others
    assert names(tmp_path) == ["a.jsonl", "c.jsonl"]
    (tmp_path / "in/b.jsonl.gz").write_bytes(packed)
    (tmp_path / "in/d.jsonl").write_bytes(ROW)
    result = lmgauge.filter_documents({"m": tmp_path / "model"}, f"{tmp_path}/in/*", f"{tmp_path}/out/", **options)
    assert (result.files, result.files_before, result.records) == (4, 2, 3004)


def test_a_file_that_vanishes_is_said_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, a=ROW, b=ROW, c=ROW)
    work = filter_files.filter_file

    def losing(plan: Any, job: Any, **options: Any) -> Any:
        (tmp_path / "in/b.jsonl").unlink(missing_ok=True)
        return work(plan, job, **options)

    monkeypatch.setattr(filter_files, "filter_file", losing)
    with pytest.raises(InputError, match=r"b\.jsonl'?: no such file.*\(2 of 3 files are complete\)"):
        run(tmp_path)
    assert names(tmp_path) == ["a.jsonl", "c.jsonl"]


def test_a_bad_record_that_is_to_fail_ends_all(tmp_path: Path) -> None:
    made(tmp_path, a=ROW, b=b"[]\n", c=ROW)
    with pytest.raises(InputError, match=r"b\.jsonl:1: a JSON object such as .* is needed, not a list$"):
        run(tmp_path, errors="fail")
    assert names(tmp_path) == ["a.jsonl"]


# -- what is remembered -------------------------------------------------------------------------------------------------
def test_a_file_that_changed_is_done_again(tmp_path: Path) -> None:
    made(tmp_path, a=ROW, b=ROW)
    run(tmp_path)
    (tmp_path / "in/b.jsonl").write_bytes(ROW * 2)
    result = run(tmp_path)
    assert (result.files_before, result.records) == (1, 3)
    assert len((tmp_path / "out/b.jsonl").read_bytes().splitlines()) == 2


def test_a_file_of_the_same_size_that_was_written_anew_is_done_again(tmp_path: Path) -> None:
    made(tmp_path, a=ROW)
    run(tmp_path)
    (tmp_path / "in/new").write_bytes(b'{"text": "c b"}\n')
    (tmp_path / "in/new").replace(tmp_path / "in/a.jsonl")
    assert run(tmp_path).files_before == 0
    assert b'"c b"' in (tmp_path / "out/a.jsonl").read_bytes()


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"x")])
def test_an_output_that_is_not_what_was_written_is_made_again(tmp_path: Path, harm: Callable[[Path], object]) -> None:
    made(tmp_path, a=ROW, b=ROW)
    run(tmp_path)
    before = (tmp_path / "out/a.jsonl").read_bytes()
    harm(tmp_path / "out/a.jsonl")
    assert run(tmp_path).files_before == 1
    assert (tmp_path / "out/a.jsonl").read_bytes() == before


def test_a_folder_of_other_decisions_is_refused(tmp_path: Path) -> None:
    made(tmp_path, a=ROW)
    run(tmp_path)
    for options, what in (
        ({"max_perplexity": 5}, "rules: max_perplexity"),
        ({"lines": True}, "models: m"),
        ({"id": "id"}, "options: id"),
    ):
        with pytest.raises(UsageError, match=f"out/?: holds other work: {what} is .* there, and .* here; give the same"):
            run(tmp_path, **options)
    assert run(tmp_path).files_before == 1


def test_a_file_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    made(tmp_path, a=ROW, b=ROW)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/b.jsonl").write_text("mine")
    with pytest.raises(UsageError, match=r"b\.jsonl: already exists and is not the output of an earlier run"):
        run(tmp_path)
    assert names(tmp_path) == ["b.jsonl"]
    assert (tmp_path / "out/b.jsonl").read_text() == "mine"


def test_what_a_run_that_was_killed_left_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, a=ROW, b=ROW)

    remember = filter_files.remember

    def killed(job: Any, before: Any, tally: Any) -> None:
        if tally is not None:
            raise KeyboardInterrupt  # the output is there, and what became of it is not remembered
        remember(job, before, tally)

    with monkeypatch.context() as patch:
        patch.setattr(filter_files, "remember", killed)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path)
    assert names(tmp_path) == ["a.jsonl"]
    with pytest.raises(UsageError, match="2 of 2 files are not complete"):
        filter_files.read_folder(str(tmp_path / "out"))
    result = run(tmp_path)
    assert (result.files_before, result.records) == (0, 2)
    assert filter_files.read_folder(str(tmp_path / "out")).records == 2


# -- names --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("bad", ["", '{"x": 1}\n'])
def test_names_may_be_anything(tmp_path: Path, bad: str) -> None:
    odd = [
        "a b",
        "grün",
        "new\nline",
        "a%2Fb",
        "a__b",
        "quote'\"",
        "-",
        "\x1b[31m",
        "x" * 200,
        "[a]",
        "{b}",
        os.fsdecode(b"\xff"),
    ]
    paths = [tmp_path / "in" / f"{name}.jsonl" for name in odd] + [tmp_path / "in/a/b.jsonl", tmp_path / "in/a_/_b.jsonl"]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"text": "a b", "n": {number}}}\n' + bad)
    for before in (0, len(paths)):
        result = lmgauge.filter_documents(
            {"m": small_model()}, paths, f"{tmp_path}/out/", rejects=tmp_path / "rejects.jsonl"
        )
        assert (result.files_before, result.documents) == (before, len(paths))
    for number, path in enumerate(paths):
        written = tmp_path / "out" / path.relative_to(tmp_path / "in")
        assert json.loads(written.read_text())["n"] == number
    rejects = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text().splitlines()]
    assert [record["file"] for record in rejects] == [str(path) for path in paths if bad]


def test_outputs_are_not_read_as_inputs(tmp_path: Path) -> None:
    made(tmp_path, a=ROW)
    pattern = f"{tmp_path}/in/**/*.jsonl"
    lmgauge.filter_documents({"m": small_model()}, pattern, f"{tmp_path}/in/out/")
    with pytest.raises(UsageError, match=r"would replace what this command reads \(.*in/out/a\.jsonl\)"):
        lmgauge.filter_documents({"m": small_model()}, pattern, f"{tmp_path}/in/out/")
    with pytest.raises(UsageError, match="would replace what this command reads"):
        run(tmp_path, output="in")


def test_a_file_named_twice_is_refused(tmp_path: Path) -> None:
    made(tmp_path, a=ROW)
    twice = [tmp_path / "in/a.jsonl", tmp_path / "in" / ".." / "in" / "a.jsonl"]
    with pytest.raises(UsageError, match=r"both would be written to a\.jsonl; name a file once"):
        lmgauge.filter_documents({"m": small_model()}, twice, f"{tmp_path}/out/")


# -- disks --------------------------------------------------------------------------------------------------------------
class SmallDisk:
    """A file on a disk that has no room for many bytes at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, content: bytes) -> int:
        if len(content) > 5000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(content)


def test_a_full_disk_ends_the_run_and_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def on_a_small_disk(path: str) -> Iterator[SmallDisk]:
        with writing_packed(path) as file:
            yield SmallDisk(file)

    made(tmp_path, a=ROW, b=ROW * 100, c=ROW)
    with monkeypatch.context() as patch:
        patch.setattr(lines, "writing_packed", on_a_small_disk)
        with pytest.raises(OutputError, match=r"out/b\.jsonl: the disk is full; nothing of it was left behind"):
            run(tmp_path)
    assert names(tmp_path) == ["a.jsonl"]
    assert run(tmp_path).files_before == 1
    assert names(tmp_path) == ["a.jsonl", "b.jsonl", "c.jsonl"]


@pytest.mark.parametrize("output", ["file/", "file/deeper/"])
def test_a_folder_that_cannot_be_made_is_said_to(tmp_path: Path, output: str) -> None:
    made(tmp_path, a=ROW)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(LmgaugeError, match="file"):
        run(tmp_path, output=output.rstrip("/"))
    assert (tmp_path / "file").read_text() == "mine"


# -- ends of a run ------------------------------------------------------------------------------------------------------
SLOW = """
import signal, sys, time
import lmgauge
from lmgauge.filtering import filter_file

count = filter_file.Tally.of
def slowly(*arguments):
    print("block", flush=True)
    time.sleep(0.2)
    return count(*arguments)
filter_file.Tally.of = slowly
root, workers = sys.argv[1], int(sys.argv[2])
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where the tests run in the background
try:
    work = lmgauge.settings.FilterWork(threads=1, workers=workers)
    lmgauge.filter_documents({"m": root + "/model"}, root + "/in/*.jsonl", root + "/out/", work=work)
except KeyboardInterrupt:
    sys.exit(130)
"""


def start(root: Path, workers: int) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """A run in a program of its own, that says when it has done a block."""
    small_model().save(root / "model")  # type: ignore[attr-defined]
    (root / "slow.py").write_text(SLOW)
    command = [sys.executable, str(root / "slow.py"), str(root), str(workers)]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=root, start_new_session=True)
    assert program.stdout is not None
    return program, program.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different on Windows")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)])
def test_a_run_that_was_ended_from_outside_goes_on(tmp_path: Path, sent: signal.Signals) -> None:
    made(tmp_path, **{f"f{number}": ROW * (number + 1) for number in range(6)})
    program, output = start(tmp_path, 1)
    with program, output:
        for _ in range(3):
            assert output.readline() == b"block\n"
        program.send_signal(sent)
        assert program.wait(20) != 0
        if sent == signal.SIGINT:
            assert program.stderr is not None
            assert b" of 6 files are complete; the same command goes on with the others" in program.stderr.read()
    done = [name for name in names(tmp_path) if not name.startswith(".")]
    assert 2 <= len(done) < 6
    result = lmgauge.filter_documents({"m": tmp_path / "model"}, f"{tmp_path}/in/*.jsonl", f"{tmp_path}/out/")
    assert (result.files, result.records) == (6, 21)
    assert result.files_before in (len(done) - 1, len(done))
    assert names(tmp_path) == [f"f{number}.jsonl" for number in range(6)]


def test_two_runs_at_once_in_a_folder_write_what_one_does(tmp_path: Path) -> None:
    made(tmp_path, **{f"f{number}": ROW * (number + 1) for number in range(6)})
    runs = [start(tmp_path, 1) for _ in range(2)]
    for program, output in runs:
        with program, output:
            assert program.wait(60) == 0, program.stderr.read() if program.stderr else ""
    assert (
        lmgauge.filter_documents({"m": tmp_path / "model"}, f"{tmp_path}/in/*.jsonl", f"{tmp_path}/out/").files_before == 6
    )
    whole = lmgauge.filter_documents({"m": tmp_path / "model"}, f"{tmp_path}/in/*.jsonl", f"{tmp_path}/whole/")
    assert whole.records == 21
    for name in names(tmp_path):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
