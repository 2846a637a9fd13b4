"""The same bad inputs for lmgauge and for the programs that read such inputs: refused in words, crashed, or given a number?

    python benchmarks/bad_inputs.py --kenlm FOLDER [--json docs/reliability/bad-inputs.json]

Each program runs in a process of its own with a limit on time and memory. What came out is one of:

refused, place     ended in words that name a line, byte, segment or n-gram
refused            ended in words
traceback          ended with the traceback of an error, whatever its last line says
crash              ended by a signal; a C++ exception that nothing caught counts as one
no end             did not end within the time
number, noted      gave a number, and said that something is odd
number             gave a number, and said nothing that it does not say of the sound input; "as sound" if it is its number

A library (nltk, the harness) refuses by an exception: a ValueError, OSError or RuntimeError with words counts as refused.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import harness
from bad_input_cases import HYPOTHESES, LOGPROBS, REFERENCES, TEXT, TRAIN, Case, cases, table

KINDS = {
    "arpa": "ARPA file",
    "binary": "KenLM binary",
    "text": "text",
    "bleu": "translations",
    "wer": "transcripts",
    "scores": "log-probabilities",
}
SECONDS, MEMORY = 120, 8 << 30
PLACE = re.compile(
    r"\b(line|byte|offset|segment|position|row|order|entry|n-gram|word)s?\b[^.]{0,60}?[\d'\"`]"
    r"|[Bb]yte: \d+|:\d+:|\\end|[12]-gram"
)
NOTED = re.compile(r"warning|note:|ignored|skipp|substitut|missing", re.IGNORECASE)
UNFORESEEN = ("IndexError", "KeyError", "TypeError", "AttributeError", "ZeroDivisionError", "AssertionError")


@dataclass(frozen=True)
class Program:
    """What reads inputs of a kind.

    Attributes:
        name: as the table has it.
        command: its words; it runs in the folder of the files.
        number: finds the number in its output.
        stdin: the file that it reads as standard input.
        library: a library of Python, called by a program of ours.
    """

    name: str
    command: list[str]
    number: Callable[[str], float | None]
    stdin: str = ""
    library: bool = False


def after(pattern: str) -> Callable[[str], float | None]:
    """Return what finds the number behind a pattern."""

    def number(out: str) -> float | None:
        match = re.search(pattern + r"\s*\"?([-+]?(?:[\d.]+(?:e[-+]?\d+)?|(?i:nan|inf)))", out)
        return None if match is None else float(match[1])

    return number


def programs(lmgauge: str, kenlm: dict[str, str]) -> dict[str, list[Program]]:
    """Return who reads inputs of each kind, lmgauge first."""
    ppl, own = after('"perplexity":'), [sys.executable, __file__]

    def model(name: str) -> list[Program]:
        peer = Program("KenLM `query`", [kenlm["query"], "-v", "summary", name], after("including OOVs:"), "text.txt")
        return [Program("lmgauge", [lmgauge, "eval", "-m", name, "text.txt", "--json"], ppl), peer]

    return {
        "arpa": model("model.arpa"),
        "binary": model("model.bin"),
        "text": [*model("model.arpa"), Program("nltk", [*own, "nltk"], after("perplexity"), library=True)],
        "bleu": [
            Program("lmgauge", [lmgauge, "bleu", "references", "hypotheses", "--json"], after('"score":')),
            Program("sacreBLEU", ["sacrebleu", "references", "-i", "hypotheses", "-b", "-w", "4"], after("^")),
        ],
        "wer": [
            Program("lmgauge", [lmgauge, "wer", "references", "hypotheses", "--json"], after('"score":')),
            Program("jiwer", ["jiwer", "-r", "references", "-h", "hypotheses"], after("^")),
        ],
        "scores": [
            Program(
                "lmgauge", [lmgauge, "eval", "--scores", "scores.jsonl", "scored.txt", "--json"], after('"bits_per_byte":')
            ),
            Program("lm-evaluation-harness", [*own, "harness"], after("bits_per_byte"), library=True),
        ],
    }


def sound_files(folder: Path, lmgauge: str, kenlm: dict[str, str]) -> dict[str, bytes]:
    """Return the files of the sound inputs."""
    (folder / "train.txt").write_bytes(TRAIN)
    for command in (
        [lmgauge, "train", "witten-bell", "train.txt", "-o", "model", "--order", "2"],
        [lmgauge, "convert", "model", "model.arpa"],
        [kenlm["build_binary"], "model.arpa", "model.bin"],
    ):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    files = {name: (folder / name).read_bytes() for name in ("model.arpa", "model.bin")}
    files |= {"text.txt": TEXT, "references": REFERENCES, "hypotheses": HYPOTHESES, "scores.jsonl": table(LOGPROBS)}
    return files | {"scored.txt": b"the cat\na dog\n"}


@dataclass(frozen=True)
class Ended:
    """How a program ended: the outcome, its number, and what it said of the input besides."""

    outcome: str
    number: float | None = None
    said: frozenset[str] = frozenset()

    def beside(self, sound: Ended) -> Ended:
        """Return the outcome with what it says of the sound input left out."""
        if self.outcome == "number" and self.said - sound.said:
            return Ended("number, noted", self.number, self.said)
        return self


def run(program: Program, files: dict[str, bytes], peer: str = "") -> Ended:
    """Run a program on files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        with (folder / (program.stdin or "text.txt")).open("rb") as stdin:
            try:
                done = subprocess.run(
                    [*program.command, *([peer or "sound"] if program.command[-1] == "harness" else [])],
                    cwd=folder, stdin=stdin, capture_output=True, timeout=SECONDS, preexec_fn=_limited, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return Ended("no end")
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    if done.returncode < 0:
        return Ended("crash")
    if done.returncode:
        return Ended(_refusal(program, out + err))
    number = program.number(out)
    return Ended("no number") if number is None else Ended("number", number, _said(program, out, err))


def _said(program: Program, out: str, err: str) -> frozenset[str]:
    """Return the warnings and notes of a program, numbers left out."""
    notes = [line for line in err.splitlines() if NOTED.search(line)]
    if program.name == "lmgauge":
        result = json.loads(out)
        entry = result[0] if isinstance(result, list) else result
        notes += entry.get("notes", [])
        notes += [name for name in ("zero_probability_events",) if entry.get(name)]
    return frozenset(re.sub(r"[\d.]+", "0", note) for note in notes)


def _refusal(program: Program, text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    if "Traceback (most recent call last)" in text:
        if not program.library or lines[-1].startswith(UNFORESEEN):
            return "traceback"
        text = lines[-1]
    return "refused, place" if PLACE.search(text) else "refused"


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def outcomes(lmgauge: str, kenlm: dict[str, str]) -> Iterator[tuple[Case, list[tuple[str, Ended, Ended]]]]:
    """Yield each case with what each program made of it and of the sound input."""
    readers = programs(lmgauge, kenlm)
    with tempfile.TemporaryDirectory() as folder:
        sound = sound_files(Path(folder), lmgauge, kenlm)
    right = {(kind, program.name): run(program, sound) for kind, several in readers.items() for program in several}
    for (kind, name), ended in right.items():
        if ended.number is None:
            harness.give_up(f"{name} has no number for the sound input of {kind}: {ended.outcome}")
    for case in cases(sound["model.arpa"], sound["model.bin"]):
        harness.note(f"{case.kind}: {case.wrong}")
        asked = [program for program in readers[case.kind] if case.kind != "scores" or case.peer or not program.library]
        rights = [right[case.kind, program.name] for program in asked]
        ended = [run(program, sound | case.files, case.peer).beside(own) for program, own in zip(asked, rights, strict=True)]
        yield case, [(program.name, *both) for program, *both in zip(asked, ended, rights, strict=True)]


def shown(ended: Ended, sound: Ended) -> str:
    """Return an outcome as a cell of the table."""
    if ended.number is None or sound.number is None:
        return ended.outcome
    same = abs(ended.number - sound.number) <= 1e-6 * abs(sound.number)
    return f"{ended.outcome}: {'as sound' if same else f'{ended.number:.4g}, sound {sound.number:.4g}'}"


def main() -> int:
    options = harness.parser(__doc__ or "", runs=1)
    options.add_argument("--json", type=Path, metavar="FILE", help="also write the table there")
    chosen = options.parse_args()
    lmgauge, kenlm = harness.lmgauge_program(chosen.lmgauge), harness.kenlm_programs(chosen.kenlm)
    harness.print_machine(lmgauge)
    rows, counts = [], Counter[tuple[str, str]]()
    for case, (ours, *peers) in outcomes(lmgauge, kenlm):
        counts.update((name, ended.outcome) for name, ended, _ in (ours, *peers))
        rows.append(
            [KINDS[case.kind], case.wrong, shown(*ours[1:]), "; ".join(f"{name}: {shown(*both)}" for name, *both in peers)]
        )
    head = ["input", "what is wrong", "lmgauge", "peer"]
    harness.print_table(head, rows)
    print()
    summary = [[name, outcome, str(count)] for (name, outcome), count in sorted(counts.items())]
    harness.print_table(["program", "outcome", "inputs"], summary)
    if chosen.json:
        content = {"columns": head, "rows": rows, "summary": summary}
        chosen.json.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
    return 0


# --- what runs in a child ---------------------------------------------------------------------------------


def _nltk() -> None:
    """Score text.txt with a bigram model of nltk, of Laplace, which has a probability for unseen words."""
    from nltk.lm import Laplace
    from nltk.lm.preprocessing import pad_both_ends, padded_everygram_pipeline
    from nltk.util import bigrams

    train, vocabulary = padded_everygram_pipeline(2, [line.split() for line in TRAIN.decode().splitlines()])
    model = Laplace(2)
    model.fit(train, vocabulary)
    lines = Path("text.txt").read_text(encoding="utf-8").splitlines()
    pairs = [pair for line in lines for pair in bigrams(pad_both_ends(line.split(), n=2))]
    print("perplexity", model.perplexity(pairs))


def _harness(bad: str) -> None:
    """Run a task of two pages with a model that returns log-likelihoods as it is told."""
    import math

    from datasets import Dataset
    from lm_eval import evaluator
    from lm_eval.api.model import LM
    from lm_eval.api.task import ConfigurableTask

    class Model(LM):
        def loglikelihood(self, requests: object) -> object:
            raise ValueError("not asked for")

        generate_until = loglikelihood

        def loglikelihood_rolling(self, requests: object) -> list[float]:
            values = [sum(scores) for scores in LOGPROBS.values()]
            changed = {"nan": math.nan, "above": 50.0, "minus": -math.inf}
            values[1] = changed.get(bad, values[1])
            if bad == "log10":
                values = [value / math.log(10) for value in values]
            return values[:1] if bad == "short" else [*values, -1.0] if bad == "long" else values

    pages = Dataset.from_list([{"page": "the cat"}, {"page": "a dog"}])
    metrics = [{"metric": name} for name in ("word_perplexity", "bits_per_byte")]
    config = {"task": "pages", "custom_dataset": lambda **options: {"test": pages}, "test_split": "test"}
    config |= {
        "output_type": "loglikelihood_rolling",
        "doc_to_text": "",
        "doc_to_target": "{{page}}",
        "metric_list": metrics,
    }
    results = evaluator.evaluate(lm=Model(), task_dict={"pages": ConfigurableTask(config=config)}, bootstrap_iters=0)
    print("bits_per_byte", results["results"]["pages"]["bits_per_byte,none"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["nltk"]:
        _nltk()
    elif sys.argv[1:2] == ["harness"]:
        _harness(sys.argv[2])
    else:
        sys.exit(main())
