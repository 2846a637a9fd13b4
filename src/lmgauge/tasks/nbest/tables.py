"""N-best lists as tables of ids: Kaldi's folders with a text and files of scores, ESPnet's folders, one for each rank.

    nbest/text       utt1-1 a dog barks         1best_recog/text    utt1 a dog barks
    nbest/ac_cost    utt1-1 5120.3              1best_recog/score   utt1 tensor(-7.31)
    nbest/lm_cost    utt1-1 31.7                2best_recog/text    utt1 a dock barks

Kaldi's scripts (steps/rnnlmrescore.sh and what follows it) call the words `words_text`, and the costs that nbest-to-linear
writes `acwt`, `lmwt.nolm` and the like. Costs are negative logs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from lmgauge.errors import InputError
from lmgauge.readable import first_few
from lmgauge.records.formats import COMPRESSIONS
from lmgauge.tasks.nbest.lines import read_table
from lmgauge.tasks.nbest.lists import ListBuilder, is_cost
from lmgauge.tasks.nbest.srilm import as_number
from lmgauge.tasks.settings import NbestReading

KALDI_TEXTS = ("text", "words_text", *(f"text{ending}" for ending in COMPRESSIONS))
"""Files of words with the ids of hypotheses, as Kaldi's scripts call them."""

_HYPOTHESIS = re.compile(r"(.+)-([0-9]{1,9})")
_TENSOR = re.compile(r"tensor\(([^,()]+)(,.*)?\)")


def read_kaldi(folder: Path, names: Sequence[str], reading: NbestReading, builder: ListBuilder) -> None:
    """Add the lists of a folder; hypothesis utt1-2 is the second of utterance utt1."""
    words = next((name for name in KALDI_TEXTS if name in names), None)
    if words is None:
        raise InputError(f"{folder}: has no file `text` or `words_text` with the hypotheses of Kaldi's lists")
    texts = read_table(folder / words)
    titles = reading.score or [name for name in names if _holds_scores(name) and (folder / name).is_file()]
    columns = {_bare(title): _scores(folder / title, texts, folder / words) for title in titles}
    ranked: dict[str, list[tuple[int, str]]] = {}
    for key, (line, _) in texts.items():
        match = _HYPOTHESIS.fullmatch(key)
        if match is None:
            raise InputError(
                f"{folder / words}:{line}: {key!r} is not the id of a hypothesis, such as utt1-1: is this a transcript?"
            )
        ranked.setdefault(match[1], []).append((int(match[2]), key))
    for utterance, own in ranked.items():
        for _, key in sorted(own):
            line, text = texts[key]
            scores = {title: column[key] for title, column in columns.items()}
            builder.add(utterance, text, scores, f"{folder / words}:{line}", str(folder))


def read_espnet(folder: Path, ranks: Sequence[str], reading: NbestReading, builder: ListBuilder) -> None:
    """Add the lists of a folder with the folders 1best_recog, 2best_recog and so on."""
    if not ranks:
        raise InputError(f"{folder}: has no folder 1best_recog, as ESPnet writes them")
    for rank in sorted(ranks, key=lambda name: (len(name), name)):
        path = folder / rank / "text"
        texts = read_table(path)
        titles = reading.score or (("score",) if (folder / rank / "score").is_file() else ())
        columns = {title: _scores(folder / rank / title, texts, path) for title in titles}
        for utterance, (line, text) in texts.items():
            scores = {title: column[utterance] for title, column in columns.items()}
            builder.add(utterance, text, scores, f"{path}:{line}", str(folder))


def _holds_scores(name: str) -> bool:
    return is_cost(_bare(name)) or _bare(name) in ("score", "scores")


def _bare(name: str) -> str:
    return next((name.removesuffix(ending) for ending in COMPRESSIONS if name.endswith(ending)), name)


def _scores(path: Path, texts: dict[str, tuple[int, str]], beside: Path) -> dict[str, float]:
    table = read_table(path)
    absent = [key for key in texts if key not in table]
    if absent:
        raise InputError(f"{path}: has no score of {first_few(absent, 1)}, which {beside} has")
    scores: dict[str, float] = {}
    for key, (line, rest) in table.items():
        match = _TENSOR.fullmatch(rest)
        scores[key] = as_number(match[1] if match else rest, "a number", f"{path}:{line}")
    return scores
