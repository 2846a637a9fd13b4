"""Plugins: models, importers, exporters and metrics of another package, by its entry points; and ours, declared alike."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused

import lmgauge
from lmgauge import Corpus
from lmgauge.base.choices import ARPA_ENDINGS, KENLM_ENDINGS, PROGRAMS
from lmgauge.base.errors import UsageError
from lmgauge.base.plugins import Plugins
from lmgauge.models.ngram.model import EXPORTERS
from lmgauge.models.registry import MODELS
from lmgauge.report.exports import EXPORTERS as RESULTS
from lmgauge.scores.imports.programs import IMPORTERS
from lmgauge.tasks.items.logs import ITEM_IMPORTERS
from lmgauge.tasks.metrics.protocol import METRICS

BACKEND = '''
"""A backend in one file: bigrams over the words of a list, half of all probability on the word before."""

import json
from pathlib import Path

import numpy as np

import lmgauge
from lmgauge.scores.imports.log import LoggedSegment, ProgramOutput


class Echo(lmgauge.CustomModel):
    label, fingerprint = "echo", "echo-1"

    def log_distribution(self, context_ids):
        p = np.full(len(self.vocabulary), 0.5 / (len(self.vocabulary) - 1))
        p[1] = 0.0  # <s> is never predicted
        p[context_ids[-1] if context_ids[-1] > 1 else 2] += 0.5
        return np.log(p, where=p > 0, out=np.full(len(p), -np.inf))

    def save(self, path):
        Path(path).mkdir()
        config = {"model_type": "echo", "words": self.vocabulary.tokens[3:]}
        Path(path, "config.json").write_text(json.dumps(config))


def load(path, options):
    return Echo(json.loads(Path(path, "config.json").read_text())["words"])


def load_file(path, options):
    return Echo(path.read_text().split())


def load_address(address, options):
    return Echo(address.partition("://")[2].split("+"))


def write(model, path):
    Path(path).write_text(" ".join(model.vocabulary.tokens[3:]))


def parse(file, log):
    log.states("nats", "echo")
    for number, line in file.lines():
        if line != "#echo":
            words = [word.split("/") for word in line.split()]
            pieces = [word for word, _ in words]
            yield LoggedSegment(f"line {number}", pieces, [float(nats) for _, nats in words])


OUTPUT = ProgramOutput(lambda head: head.startswith(b"#echo"), parse, unit="word", words=True)


class Same(lmgauge.tasks.WER):
    name = "same"


def broken(path, options):
    return {}["no such key"]
'''
ENTRY_POINTS = """
[lmgauge.models]
echo = echo_backend:load
.echo = echo_backend:load_file
echoes = echo_backend:load_address
broken = echo_backend:broken
absent = echo_backend:absent
[lmgauge.importers]
echo = echo_backend:OUTPUT
[lmgauge.exporters]
.echo = echo_backend:write
[lmgauge.metrics]
same = echo_backend:Same
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a distribution on the path, two models and texts."""
    (tmp_path / "echo_backend.py").write_text(BACKEND, encoding="utf-8")
    installed = tmp_path / "echo-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: echo\nVersion: 1.0\n", encoding="utf-8")
    (installed / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "echo_backend", raising=False)
    monkeypatch.chdir(tmp_path)
    lines = ["the cat sat", "the the dog sat", "a dog sat sat"]
    Path("text.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    lmgauge.train("witten-bell", Corpus.from_strings(lines), order=2).save("wb2")
    for name in ("echo", "broken", "absent"):
        Path(name).mkdir()
        config = {"model_type": name, "words": ["the", "cat", "sat", "dog", "a"]}
        Path(name, "config.json").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path


def test_a_model_of_another_package_is_a_model_like_any_other(folder: Path) -> None:
    (evaluated,) = json.loads(ok("eval", "-m", "echo", "text.txt", "--json").stdout)
    assert "model:echo@" in evaluated["signature"]
    assert "PASS" in ok("audit", "-m", "echo", "text.txt").stdout
    ok("mix", "-m", "echo", "-m", "wb2", "text.txt", "-o", "mixed")
    both = json.loads(ok("eval", "-m", "mixed", "-m", "echo", "text.txt", "--json").stdout)
    assert both[0]["perplexity"] < both[1]["perplexity"] == evaluated["perplexity"]


def test_its_files_and_addresses_are_opened(folder: Path) -> None:
    ok("convert", "wb2", "words.echo")
    whole, named = (lmgauge.load_model(name) for name in ("words.echo", "echoes://the+cat"))
    assert (whole.vocabulary.tokens[3:], named.vocabulary.tokens[3:]) == (["the", "cat", "sat", "dog", "a"], ["the", "cat"])


def test_what_its_program_wrote_is_imported(folder: Path) -> None:
    Path("log.txt").write_text("#echo\nthe/-1 cat/-2 sat/-1\n", encoding="utf-8")
    imported = lmgauge.import_scores("log.txt", "run")
    assert (imported.events, imported.cross_entropy) == (3, pytest.approx(4 / 3))
    assert ok("import", "log.txt", "-o", "again", "--json").exit_code == 0


def test_its_metric_is_known_by_its_name(folder: Path) -> None:
    Path("ref.txt").write_text("the cat\n", encoding="utf-8")
    scored = {"hypotheses": ["text.txt"], "references": "text.txt"}
    assert lmgauge.tasks.score_files("same", **scored)[0].score.score == 0.0
    with pytest.raises(UsageError, match="metric 'nothing': choose one of bleu, cer, chrf, ter, wer, same"):
        lmgauge.tasks.score_files("nothing", **scored)


def test_a_plugin_that_breaks_is_said_in_words(folder: Path) -> None:
    words = "the plugin broken (echo_backend:broken) breaks: KeyError: 'no such key'"
    assert words in refused("eval", "-m", "broken", "text.txt")
    words = "the plugin absent (echo_backend:absent) breaks: AttributeError"
    assert words in refused("eval", "-m", "absent", "text.txt")
    with pytest.raises(KeyError):  # whoever writes it wants to see where
        lmgauge.load_model("broken")


def test_all_are_listed_with_what_they_are_and_where_from(folder: Path) -> None:
    rows = lmgauge.info(plugins=True)["plugins"]
    assert all(row["description"] and "\n" not in row["description"] for row in rows if row["from"] == "lmgauge")
    known = {(row["group"], row["name"]): row for row in rows}
    assert known["lmgauge.result_exporters", "latex"]["description"].startswith("A table of a paper")
    assert known["lmgauge.importers", "echo"]["from"] == "echo 1.0"
    assert known["lmgauge.importers", "echo"]["description"].startswith("A backend in one file")
    assert "the plugin absent (echo_backend:absent) breaks" in known["lmgauge.models", "absent"]["description"]
    assert "lmgauge.models\techoes\t" in ok("info", "--plugins").stdout
    assert "name a model or a run, or ask for --plugins" in refused("info")
    assert "name a model or a run, or ask for --plugins" in refused("info", "wb2", "--plugins")


@pytest.mark.parametrize(
    "plugins", [MODELS, IMPORTERS, ITEM_IMPORTERS, EXPORTERS, RESULTS, METRICS], ids=lambda plugins: plugins.group
)
def test_ours_are_declared_as_those_of_others_are(plugins: Plugins) -> None:
    assert all(plugins.find(name) is not None for name in plugins.ours if name != ".gguf" or find_spec("llama_cpp"))
    assert plugins.find("not one of them") is None


def test_lists_of_choices_name_ours() -> None:
    assert tuple(IMPORTERS.ours) == PROGRAMS
    assert set(EXPORTERS.ours) == {*ARPA_ENDINGS, *KENLM_ENDINGS}


def test_nobody_else_waits_for_plugins(folder: Path) -> None:
    for call in ("import lmgauge", "from lmgauge.cli.main import main; main(['eval', '-m', 'wb2', 'text.txt'])"):
        code = f"import sys, atexit; atexit.register(lambda: print('importlib.metadata' in sys.modules)); {call}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
        assert done.stdout.splitlines()[-1] == "False"
