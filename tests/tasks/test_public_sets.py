"""Public test sets through sacreBLEU's registry: made of an archive, or copied; nothing is fetched here."""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import ok, refused

from lmgauge.base.errors import InputError, MissingExtraError, UsageError
from lmgauge.tasks import bleu, chrf, find_public_set, ter

sacrebleu = pytest.importorskip("sacrebleu")

SOURCE, REFERENCE, OUTPUT = (
    ["die Katze", "ein Hund"],
    ["the  cat sat on the mat", "a dog barks"],
    ["the cat sat on a mat", "a dog"],
)

Register = Callable[..., Any]


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Register:
    """Return what puts a set into the registry, whose archive is at an address (a file's)."""
    from sacrebleu.dataset import DATASETS
    from sacrebleu.dataset.plain_text import PlainTextDataset

    def put(name: str, address: str, **langpairs: list[str]) -> Any:
        pairs = {pair.replace("_", "-"): files for pair, files in langpairs.items()}
        dataset = PlainTextDataset(name, data=[address], description="", citation="", md5=None, langpairs=pairs)
        dataset._outdir = str(tmp_path / "cache" / name)
        dataset._rawdir = str(tmp_path / "cache" / name / "raw")
        monkeypatch.setitem(DATASETS, name, dataset)
        return dataset

    return put


@pytest.fixture
def fake(tmp_path: Path, register: Register) -> None:
    for name, lines in (("src", SOURCE), ("ref", REFERENCE)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    with tarfile.open(tmp_path / "fake.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "src", "fake/src")
        archive.add(tmp_path / "ref", "fake/ref")
    register("fake", (tmp_path / "fake.tar.gz").as_uri(), de_en=["fake/src", "fake/ref"], de_zh=["fake/src", "fake/ref"])


@pytest.mark.usefixtures("fake")
def test_scores_are_sacrebleus() -> None:
    references = sacrebleu.dataset.DATASETS["fake"].get_reference_files("de-en")
    (clean,) = [Path(path).read_text().splitlines() for path in references]
    named: dict[str, Any] = {"hypotheses": OUTPUT, "test_set": "fake", "language_pair": "de-en"}
    assert bleu(**named).score == pytest.approx(sacrebleu.corpus_bleu(OUTPUT, [clean]).score, abs=1e-12)
    assert chrf(**named).score == pytest.approx(sacrebleu.corpus_chrf(OUTPUT, [clean]).score, abs=1e-12)
    assert ter(**named).score == pytest.approx(sacrebleu.corpus_ter(OUTPUT, [clean]).score, abs=1e-12)
    into_chinese = named | {"language_pair": "de-zh"}
    assert "|tok:zh|" in bleu(**into_chinese).signature
    assert "|tok:13a|" in bleu(**into_chinese, tokenizer="13a").signature


@pytest.mark.usefixtures("fake")
def test_files_of_a_set() -> None:
    public = find_public_set("fake", "de-en")
    assert [Path(path).name for path in (public.source, *public.references)] == ["fake.de-en.src", "fake.de-en.ref"]
    assert repr(public) == "<PublicSet: fake de-en: 1 reference>"


def test_what_cannot_be_fetched_is_copied_from_where_it_can(tmp_path: Path, register: Register) -> None:
    address = (tmp_path / "nowhere.tgz").as_uri()
    dataset = register("far", address, de_en=["a", "b"])
    with pytest.raises(InputError, match="cannot be fetched by sacreBLEU") as error:
        find_public_set("far", "de-en")
    assert f"sacrebleu -t far -l de-en --echo ref, and copy the folder it is in to {dataset._outdir}" in str(error.value)
    for name, lines in (("src", SOURCE), ("ref", REFERENCE)):
        Path(dataset._outdir, f"far.de-en.{name}").write_text("".join(line + "\n" for line in lines))
    assert bleu(hypotheses=REFERENCE, test_set="far", language_pair="de-en").score == pytest.approx(100)


@pytest.mark.usefixtures("fake")
def test_what_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no test set 'fakes', but fake"):
        find_public_set("fakes", "de-en")
    with pytest.raises(UsageError, match="fake is not in en-de; it has de-en, de-zh"):
        find_public_set("fake", "en-de")
    with pytest.raises(UsageError, match="a test set without a language pair"):
        find_public_set("fake", None)
    with pytest.raises(UsageError, match="nothing to score against"):
        bleu(hypotheses=OUTPUT)
    with pytest.raises(UsageError, match="not both"):
        ter(hypotheses=OUTPUT, references=REFERENCE, test_set="fake")
    monkeypatch.setitem(sys.modules, "sacrebleu.dataset", None)
    with pytest.raises(MissingExtraError, match="translation"):
        find_public_set("fake", "de-en")


@pytest.mark.usefixtures("fake")
def test_the_command_takes_the_words_of_sacrebleu(tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    output.write_text("".join(line + "\n" for line in OUTPUT))
    assert "|tok:zh|" in ok("bleu", "-t", "fake", "-l", "de-zh", output, "--json").stdout
    named = ["chrf", "-t", "fake", "-l", "de-en", output, "-b", "-w", "6"]
    assert ok(*named).stdout == f"{chrf(hypotheses=OUTPUT, references=REFERENCE).score:.6f}\n"
    for wrong in (["bleu", "-t", "fake", output], ["ter", output], [*named, "-r", output]):
        refused(*wrong)
