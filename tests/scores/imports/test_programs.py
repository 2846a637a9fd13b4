"""The table of programs: what is recognized as whose output."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scores.imports.outputs import KENLM, MINICONS, OUTPUTS, SRILM, written

import lmgauge
from lmgauge.base.choices import PROGRAMS, Program
from lmgauge.base.errors import InputError, UsageError
from lmgauge.scores.imports.log import SCORE_TABLE
from lmgauge.scores.imports.programs import IMPORTERS, open_logs


def test_every_program_has_a_row() -> None:
    assert set(IMPORTERS.ours) == set(PROGRAMS) == set(OUTPUTS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_is_recognized_as_itself_alone(tmp_path: Path, program: Program) -> None:
    for content in OUTPUTS[program]:
        assert open_logs([written(tmp_path, content)]).program == program
        assert program == "score-table" or not SCORE_TABLE.recognizes(content)


def test_what_is_not_known_is_one_line(tmp_path: Path) -> None:
    for content in (b"the cat sat\n", b"\x00\xff" * 50, b'{"a": 1}', b"a,b\n1,2\n", b"PK\x01\x02"):
        with pytest.raises(InputError, match="is not output that lmgauge knows") as error:
            open_logs([written(tmp_path, content)])
        assert "\n" not in str(error.value)


def test_files_of_two_programs(tmp_path: Path) -> None:
    one, other = written(tmp_path, KENLM, "one"), written(tmp_path, SRILM, "other")
    with pytest.raises(UsageError, match=r"is of kenlm, and .*other of srilm: import those of each on their own"):
        open_logs([one, other])
    assert len(list(open_logs([one, one]).segments())) == 8


def test_unknown_choices(tmp_path: Path) -> None:
    path, unknown = written(tmp_path, MINICONS), {"program": "word2vec", "log_unit": "bans"}
    for name, words in (("program", "'word2vec': choose one of lm-evaluation"), ("log_unit", "'bans': choose one of nats")):
        with pytest.raises(UsageError, match=f"unknown {name.replace('_', '-')} {words}"):
            lmgauge.import_scores(path, tmp_path / "run", **{name: unknown[name]})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="name the files that a program wrote"):
        open_logs([])
    with pytest.raises(UsageError, match="is a score table, which is of a whole text"):
        open_logs([written(tmp_path, OUTPUTS["score-table"][0])] * 2)
