"""The jobs whose digits are recorded: every kind of number that lmgauge prints, on the texts that come with the tests.

A job returns named values. Whole numbers and strings agree on every machine; numbers with a fraction agree within the
tolerance of their job. It is zero where no logarithm, power or exponential is taken: these differ in the last bit between
C libraries, and between processors with one C library.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import lmgauge
from lmgauge import Corpus
from lmgauge.base.choices import SMOOTHING_KINDS, SmoothingKind
from lmgauge.numerics import information
from lmgauge.tasks import BLEU, CER, TER, WER, ChrF, ComparisonSettings, score_systems

Value = int | float | str
Values = dict[str, Value]

DATA = Path(__file__).resolve().parent.parent / "data"
SAME_BITS = 0.0
LOGARITHMS = 1e-13
"""Relative: sums of logarithms and what follows from them."""
NETWORKS = 1e-5
"""Relative: the order of a network's float32 sums is the processor's."""

_TEXT_OF_RUNS = ("label", "notes", "signature", "seconds", "version")


@dataclass(frozen=True)
class Job:
    """What is computed, and how far its digits agree on all machines.

    Attributes:
        run: what returns the values.
        tolerance: relative, of numbers with a fraction; 0: the same bits.
        needs: a library without which the job is left out.
    """

    run: Callable[[Bench], Values]
    tolerance: float
    needs: str | None = None


JOBS: dict[str, Job] = {}


def job(name: str, tolerance: float, needs: str | None = None) -> Callable[[Callable[[Bench], Values]], None]:
    """Enter a function in the table of jobs."""

    def enter(run: Callable[[Bench], Values]) -> None:
        JOBS[name] = Job(run, tolerance, needs)

    return enter


def numbers(plain: Any, path: str = "") -> Iterator[tuple[str, int | float]]:
    """Yield every number of nested lists and dicts with its path; text, which may be worded anew, is left out."""
    match plain:
        case bool() | str() | None:
            return
        case int() | float():
            yield path, plain
        case Mapping():
            for key, value in plain.items():
                if key not in _TEXT_OF_RUNS:
                    yield from numbers(value, f"{path}.{key}" if path else str(key))
        case _:
            for index, value in enumerate(plain):
                yield from numbers(value, f"{path}.{index}")


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes: all their digits in one line."""
    return hashlib.sha256(data).hexdigest()


def lines(name: str) -> list[str]:
    """Return the lines of a text of the tests that are not empty."""
    return [line for line in (DATA / name).read_text(encoding="utf-8").split("\n") if line]


class Bench:
    """The texts and models of the jobs, each made once; files go into a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _corpus(self, name: str, begin: int, end: int) -> Corpus:
        return Corpus.from_strings(lines(name)[begin:end])

    @cached_property
    def train(self) -> Corpus:
        return self._corpus("classic-books.train.txt", 0, 500)

    @cached_property
    def held_out(self) -> Corpus:
        return self._corpus("classic-books.train.txt", 500, 540)

    @cached_property
    def test(self) -> Corpus:
        return self._corpus("classic-books.test.txt", 0, 60)

    @cached_property
    def trigrams(self) -> lmgauge.NgramModel:
        return lmgauge.train("modified-kneser-ney", self.train, order=3)

    @cached_property
    def bigrams(self) -> lmgauge.NgramModel:
        return lmgauge.train("witten-bell", self.train, order=2)

    @cached_property
    def runs(self) -> list[Path]:
        models = {"trigrams": self.trigrams, "bigrams": self.bigrams}
        lmgauge.evaluate(models, self.test, output=self.folder / "runs")
        return [self.folder / "runs" / name for name in models]

    def smoothed(self, kind: SmoothingKind) -> lmgauge.NgramModel:
        """Return a model of order three; what is added to counts, where that is asked for, is a half."""
        return lmgauge.train(kind, self.train, order=3, k=0.5 if kind == "lidstone" else None)

    def evaluation(self, model: Any) -> Values:
        """Return every figure of a model on the test text."""
        result = lmgauge.evaluate(model, self.test).to_dict()
        return {"model": result["fingerprints"]["model"], **dict(numbers(result))}


def _arpa(bench: Bench) -> Path:
    path = bench.folder / "trigrams.arpa"
    if not path.exists():
        lmgauge.models.write_arpa(bench.trigrams, path)
    return path


@job("tables of all smoothings", SAME_BITS)
def _tables(bench: Bench) -> Values:
    models = {kind: bench.smoothed(kind) for kind in SMOOTHING_KINDS}
    discounts = {
        f"discounts.{kind}.{path}": value
        for kind, model in models.items()
        for path, value in numbers([list(order) for order in getattr(model, "discounts", None) or ()])
    }
    return {kind: model.fingerprint for kind, model in models.items()} | discounts


@job("tables made in parts", SAME_BITS)
def _parts(bench: Bench) -> Values:
    kinds = ("modified-kneser-ney", "good-turing")
    models = {
        kind: lmgauge.train(kind, bench.train, order=3, memory="256M", workers=1, output=bench.folder / f"parts-{kind}")
        for kind in kinds
    }
    return {kind: model.fingerprint for kind, model in models.items()}


@job("tables with cutoffs, a closed vocabulary, characters", SAME_BITS)
def _settings(bench: Bench) -> Values:
    return {
        "cutoffs": lmgauge.train("kneser-ney", bench.train, order=4, cutoffs=(0, 1, 1, 2)).fingerprint,
        "backing off": lmgauge.train("modified-kneser-ney", bench.train, order=3, interpolate=False).fingerprint,
        "rare words unknown": lmgauge.train("witten-bell", bench.train, order=3, min_count=2).fingerprint,
        "characters": lmgauge.train("witten-bell", bench.train, order=5, tokenizer="character").fingerprint,
    }


@job("evaluations of all smoothings", LOGARITHMS)
def _smoothings(bench: Bench) -> Values:
    models = {kind: bench.smoothed(kind) for kind in SMOOTHING_KINDS}
    return {f"{kind}.{name}": value for kind, model in models.items() for name, value in bench.evaluation(model).items()}


@job("an ARPA file", SAME_BITS)
def _arpa_file(bench: Bench) -> Values:
    return {"file": digest(_arpa(bench).read_bytes())}


@job("a KenLM binary", SAME_BITS)
def _kenlm_file(bench: Bench) -> Values:
    bench.trigrams.save(bench.folder / "probing.binary")
    return {"file": digest((bench.folder / "probing.binary").read_bytes())}


@job("evaluations of an ARPA file, a KenLM binary and another program's file", LOGARITHMS)
def _files(bench: Bench) -> Values:
    bench.trigrams.save(bench.folder / "scored.binary")
    paths = {"arpa": _arpa(bench), "kenlm": bench.folder / "scored.binary", "lmplz": DATA / "kenlm3.arpa.gz"}
    models = {name: lmgauge.load_model(path) for name, path in paths.items()}
    return {f"{name}.{key}": value for name, model in models.items() for key, value in bench.evaluation(model).items()}


@job("a mixture with estimated weights, and a cache", LOGARITHMS)
def _mixture(bench: Bench) -> Values:
    mixture = lmgauge.mix([bench.trigrams, bench.bigrams], bench.held_out)
    cached = lmgauge.cache(bench.trigrams, bench.held_out)
    both = {"mixture": mixture, "cache": cached}
    weights = {f"{name}.weights.{index}": float(w) for name, model in both.items() for index, w in enumerate(model.weights)}
    rows = {f"{name}.{key}": value for name, model in both.items() for key, value in bench.evaluation(model).items()}
    return weights | {key: value for key, value in rows.items() if not key.endswith(".model")}


@job("a model that spells", LOGARITHMS)
def _spelled(bench: Bench) -> Values:
    return bench.evaluation(lmgauge.train("modified-kneser-ney", bench.train, order=3, vocabulary="spelled"))


@job("pruning", LOGARITHMS)
def _pruning(bench: Bench) -> Values:
    pruned = lmgauge.prune(bench.trigrams, to_size=9000, text=bench.test)
    return dict(numbers(pruned.to_dict())) | {"ngrams": json.dumps(list(pruned.ngrams))}


@job("a comparison with its intervals and tests", LOGARITHMS)
def _comparison(bench: Bench) -> Values:
    return dict(numbers(lmgauge.compare(bench.runs, text=bench.test, train=bench.train).to_dict()))


@job("a diagnosis", LOGARITHMS)
def _diagnosis(bench: Bench) -> Values:
    only = ("slices", "tokens", "segments", "unseen", "calibration")
    result = lmgauge.diagnose(
        bench.runs[0], text=bench.test, train=bench.train, model=bench.trigrams, contexts=50, examples=3, only=only
    )
    return dict(numbers({key: value for key, value in result.to_dict().items() if key != "evaluation"}))


@job("whole distributions: entropies, ranks, moments, and two models' divergence", LOGARITHMS)
def _distributions(bench: Bench) -> Values:
    result = lmgauge.divergence(bench.trigrams, bench.bigrams, bench.held_out, events=300, examples=2)
    return dict(numbers(result.to_dict()))


@job("overlap of texts", SAME_BITS)
def _overlap(bench: Bench) -> Values:
    result = lmgauge.overlap(bench.train, bench.test, n=4).to_dict()
    return dict(numbers({key: value for key, value in result.items() if key != "passages"}))


def _outputs() -> tuple[dict[str, list[str]], list[str]]:
    """Return the outputs of two systems and their reference: sentences with words dropped and exchanged by rule."""
    reference = lines("pud.en.txt")[:40]

    def worse(step: int) -> list[str]:
        words = [line.split() for line in reference]
        for row, line in enumerate(words):
            line[row % step :: step] = reversed(line[row % step :: step])
            del line[row % 5 : row % 5 + row % 3]
        return [" ".join(line) for line in words]

    return {"first": worse(4), "second": worse(7)}, reference


@job("BLEU, chrF, TER, WER and CER with intervals and tests", LOGARITHMS)
def _systems(bench: Bench) -> Values:
    outputs, reference = _outputs()
    settings = ComparisonSettings(significance="sacrebleu", resamples=300)
    values: Values = {}
    for metric in (BLEU(), ChrF(word_order=2), TER(), WER(), CER()):
        result = score_systems(metric, hypotheses=outputs, references=reference, settings=settings)
        values |= {f"{metric.name}.{key}": value for key, value in numbers(result.to_dict())}
    return values


@job("information of distributions", LOGARITHMS)
def _information(bench: Bench) -> Values:
    counts = [((index * 7919) % 97) + 1 for index in range(64)]
    p = [count / sum(counts) for count in counts]
    q = p[1:] + p[:1]
    pairs = {(left, right): (left * 5 + right * 3) % 7 for left in range(6) for right in range(5)}
    return {
        "entropy": float(information.entropy(p)),
        "cross-entropy": float(information.cross_entropy(p, q)),
        "Kullback-Leibler": float(information.kl_divergence(p, q)),
        "Jensen-Shannon": float(information.jensen_shannon_divergence(p, q)),
        "branching factor": float(information.branching_factor(p)),
        "mutual": float(information.mutual_information(pairs)),
    }


@job("scores of documents, and their percentiles", LOGARITHMS)
def _documents(bench: Bench) -> Values:
    texts = lines("wikitext2.test.txt")[:50]
    source, target = bench.folder / "documents.jsonl", bench.folder / "scored.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    lmgauge.score_documents({"m": bench.trigrams}, source, target)
    rows = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    percentiles = lmgauge.learn_percentiles({"m": bench.trigrams}, source)
    ends = {f"percentile.{share}": percentiles.value("m", None, share) for share in (10, 50, 90)}
    return dict(numbers([{key: value for key, value in row.items() if key != "text"} for row in rows])) | ends


@job("texts drawn from a seed", SAME_BITS)
def _samples(bench: Bench) -> Values:
    texts = lmgauge.sample(bench.trigrams, 5, seed=7, temperature=0.8, max_tokens=30)
    return {str(index): text for index, text in enumerate(texts)}


@job("a network with stated weights", NETWORKS, needs="torch")
def _network(bench: Bench) -> Values:
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = [f"<{name}>" for name in ("unk", "eos")] + sorted(set(" ".join(lines("classic-books.train.txt")[:500]).split()))[
        ::40
    ]
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<eos>")
    config = transformers.GPT2Config(
        vocab_size=len(words), n_positions=64, n_embd=16, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=1
    )
    network = transformers.GPT2LMHeadModel(config)
    state = 1
    with torch.no_grad():
        for parameter in network.parameters():
            weights = []
            for _ in range(parameter.numel()):
                state = (state * 1103515245 + 12345) % 2**31
                weights.append((state // 2**8 % 4096 - 2048) / 2048)
            parameter.copy_(torch.tensor(weights).reshape(parameter.shape))
    for part in (network, wrapped):
        part.save_pretrained(bench.folder / "network")
    values = bench.evaluation(lmgauge.load_model(bench.folder / "network"))
    return {name: value for name, value in values.items() if name != "model"}
