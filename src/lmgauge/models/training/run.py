"""Training a neural language model: from text to a folder that `AutoModelForCausalLM` loads."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lmgauge.base.choices import VocabularyKind
from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.base.files import refuse_other_folder, writing_directory
from lmgauge.base.result_list import Result, data_frame
from lmgauge.base.threads import thread_count
from lmgauge.base.version import __version__
from lmgauge.models.combined.spelling.learn import learn_parts, refuse_once
from lmgauge.models.combined.spelling.speller import Spelling
from lmgauge.models.combined.spelling.storage import write_spelling
from lmgauge.models.combined.spelling.whitespace_model import SeparatorModel
from lmgauge.models.network.tokens import CONFIG_KEY
from lmgauge.models.network.torch.architectures import register_architectures
from lmgauge.models.network.torch.checkpoint import choose_device, quiet
from lmgauge.models.network.torch.runtime import FLOAT32_INSTEAD
from lmgauge.models.protocol import read_config
from lmgauge.models.training.checkpoints import CheckpointFolder, training_folder
from lmgauge.models.training.data import TrainingText, make_source, read_text
from lmgauge.models.training.loop import Loop, TrainingEvent, TrainingFailedError, Watch, finite
from lmgauge.models.training.networks import build_model, computable, parameter_count
from lmgauge.models.training.progress_file import ProgressFile
from lmgauge.models.training.settings import RECURRENT, NeuralTrainingSettings, RunSettings
from lmgauge.models.training.tokenizers import fixed_vocabulary, make_training_tokenizer, write_tokenizer
from lmgauge.text.documents import Corpus
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import Vocabulary
from lmgauge.work.manifest import unfinished

if TYPE_CHECKING:
    import pandas as pd

FORMAT_VERSION = 1
_WIDE = 650
Progress = Callable[[str], None]


@dataclass(frozen=True, repr=False)
class NeuralTraining(Result):
    """What a training came to."""

    path: Path
    settings: NeuralTrainingSettings
    parameters: int
    vocabulary_size: int
    events: int  # tokens to predict in the training text
    epochs: int
    history: tuple[dict[str, float], ...]
    valid_perplexity: float | None  # of the parameters that were kept; None without a validation text
    seconds: float
    notes: tuple[str, ...]  # what was changed while reading, and what else is to be known
    # where unseen words are spelled, what was learned of their letters and of white space, as `SpelledModel.learned` says
    # it; None where they are not
    learned: dict[str, Any] | None = None

    def to_pandas(self) -> pd.DataFrame:
        """Return `history`: a row for each epoch."""
        return data_frame(self.history)

    def _in_brief(self) -> str:
        valid = "" if self.valid_perplexity is None else f", validation perplexity {self.valid_perplexity:,.2f}"
        return f"{self.path}: {self.settings.kind}, {self.epochs} epochs{valid}"


def run_training(
    settings: NeuralTrainingSettings,
    run: RunSettings,
    texts: Corpus,
    *,
    valid: Corpus | None = None,
    output: str | os.PathLike[str],
    progress: Progress = lambda stage: None,
    watch: Watch = lambda event: None,
) -> NeuralTraining:
    """Train a model and write it."""
    # The parameters of the epoch with the lowest perplexity of the validation text are kept; without one, the last. While
    # training goes on its checkpoints are in `OUTPUT.training/`, with `progress.jsonl`; from them it is resumed: on a
    # processor the model is then the same, bit for bit, as that of a run that was never stopped, given the same number of
    # threads.
    # What torch has for the whole process, such as its random generators and its number of threads, is afterwards as it was.
    if valid is None and settings.patience:
        raise UsageError("patience looks at a validation text: give one with --valid, or choose --patience 0")
    refuse_unlearnable(run.vocabulary, run.tokenizer, texts)
    folder = CheckpointFolder(training_folder(output))
    refuse_other_folder(output, is_ours=is_trained_here)  # before hours are spent
    place = choose_device(run.device)
    with folder.held(), _afterwards_as_before(place, _threads(run.threads, settings)):
        _check_resumed(Path(output), folder, run.resume)
        register_architectures()
        asked, settings = settings, computable(settings, place)
        progress("reading the text")
        tokenizer = make_training_tokenizer(run.tokenizer, texts, folder, progress)
        text, vocabulary = _read(texts, tokenizer, settings, run)
        spelling = None
        if run.vocabulary == "spelled":
            spelling = learn_network_spelling(
                texts, tokenizer, vocabulary, threads=torch.get_num_threads(), progress=progress
            )
        held_out = None
        if valid is not None:
            context, reserved = settings.context, run.reserved
            held_out, _ = read_text(valid, tokenizer, vocabulary, context=context, reserved=reserved, name="validation")
        loop = _begin(settings, text, held_out, len(vocabulary), folder, place)
        loop.made_of |= {"tokenizer": tokenizer.fingerprint, "vocabulary": vocabulary.ids_fingerprint}
        loop.checkpoint_every = run.checkpoint_every
        newest = folder.newest() if run.resume else None
        if newest is not None:
            loop.resume(folder.load(newest))
        rates = [each.events / each.bytes if each is not None and each.bytes else None for each in (text, held_out)]
        with ProgressFile(folder.path, resumed=newest is not None) as progress_file:

            def tell(event: TrainingEvent) -> None:
                progress_file.write(event.total_update, _said_of(event, *rates))
                watch(event)

            loop.watch = tell
            loop.run()
        notes = [] if settings == asked else [FLOAT32_INSTEAD]
        return _finish(loop, Path(output), text, vocabulary, tokenizer, run.reserved, notes, spelling)


@contextmanager
def _afterwards_as_before(device: torch.device, threads: int) -> Iterator[None]:
    # Leaves torch's random generators, threads and device as they were.
    with ExitStack() as stack:
        if device.type == "cuda":
            stack.enter_context(torch.cuda.device(device))
        stack.enter_context(torch.random.fork_rng([device] if device.type == "cuda" else []))
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(threads)
        yield


def _threads(given: int | None, settings: NeuralTrainingSettings) -> int:
    # How many threads to train with.
    # The steps of a narrow recurrent network are small. Two threads are less than twice as fast on two free cores (200
    # units: 29 ms an update, with one 64), and far slower where another program has one of them (1,069 ms, with one 58).
    if given is None and settings.kind in RECURRENT and settings.hidden_size < _WIDE:
        return 1
    return thread_count(given)


def _begin(
    settings: NeuralTrainingSettings,
    text: TrainingText,
    held_out: TrainingText | None,
    vocabulary_size: int,
    folder: CheckpointFolder,
    device: torch.device,
) -> Loop:
    source = make_source(text.ids, settings)
    torch.manual_seed(settings.seed)
    model = build_model(settings, vocabulary_size).to(device)
    torch.manual_seed(settings.seed * 1009)  # dropout
    made_of = {"training_text": text.sha256, "validation_text": None if held_out is None else held_out.sha256}
    ids = None if held_out is None else held_out.ids
    return Loop(model, source, ids, settings, folder, made_of)


def _check_resumed(output: Path, folder: CheckpointFolder, resume: bool) -> None:
    newest = folder.newest()
    if newest is not None and not resume:
        raise unfinished(folder.path, newest.name)
    if resume and newest is None and is_trained_here(output):
        raise UsageError(f"{output}: is a finished model, so there is nothing to resume; without --resume it is replaced")


def is_trained_here(path: Path) -> bool:
    """Return True if a folder is a neural model that lmgauge trained."""
    try:
        return isinstance(read_config(path).get(CONFIG_KEY), dict)
    except ModelFileError:
        return False


def _read(
    corpus: Corpus, tokenizer: Tokenizer, settings: NeuralTrainingSettings, run: RunSettings
) -> tuple[TrainingText, Vocabulary]:
    fixed = fixed_vocabulary(tokenizer)
    if fixed is not None and (run.min_count != 1 or run.vocab_size is not None):
        raise UsageError(f"the vocabulary of {tokenizer.name} is fixed; leave out min-count and vocab-size")
    restricted: dict[str, Any] = {"min_count": run.min_count, "vocab_size": run.vocab_size}
    return read_text(corpus, tokenizer, fixed, context=settings.context, reserved=run.reserved, **restricted)


def _said_of(event: TrainingEvent, events_per_byte: float | None, valid_per_byte: float | None) -> dict[str, float | None]:
    # Figures of an event for the progress file; bits per byte are those per token times tokens per byte.
    figures = {
        "loss": math.log(event.perplexity) if event.perplexity > 0 else None,
        "perplexity": event.perplexity,
        "bits_per_byte": None if events_per_byte is None else event.bits * events_per_byte,
        "learning_rate": event.learning_rate,
        "tokens_per_second": event.tokens_per_second,
    }
    if (valid := event.valid_perplexity) is not None and valid > 0:
        figures |= {"valid_loss": math.log(valid), "valid_perplexity": valid}
        figures["valid_bits_per_byte"] = None if valid_per_byte is None else math.log2(valid) * valid_per_byte
    return figures


def _finish(
    loop: Loop,
    output: Path,
    text: TrainingText,
    vocabulary: Vocabulary,
    tokenizer: Tokenizer,
    reserved: str,
    notes: list[str],
    spelling: NetworkSpelling | None,
) -> NeuralTraining:
    # Write the model that a run has come to.
    best = loop.rate.best
    notes += text.notes
    if fixed_vocabulary(tokenizer) is None and not vocabulary.closed and not text.unknown:
        notes.append(
            "the training text has no <unk>: what the model gives to unseen words was never learned; --min-count 2 makes "
            "rare words unknown"
        )
    if loop.valid is not None and loop.rate.best_epoch + 1 < loop.epoch:
        notes.append(f"the parameters are those after epoch {loop.rate.best_epoch + 1}, where validation was best")
    result = NeuralTraining(
        path=output,
        settings=loop.settings,
        parameters=parameter_count(loop.model),
        vocabulary_size=len(vocabulary),
        events=text.events,
        epochs=loop.epoch,
        history=tuple(loop.history),
        valid_perplexity=None if math.isinf(best) else best,
        seconds=loop.seconds,
        notes=tuple(notes),
        learned=None if spelling is None else spelling.learned(),
    )
    if loop.valid is not None:
        loop.folder.load_best(loop.model)
    _describe(loop.model, result, tokenizer, vocabulary, text, reserved)
    _write(loop.model, tokenizer, vocabulary, output, spelling)
    loop.folder.remove()
    return result


def _describe(
    model: Any, result: NeuralTraining, tokenizer: Tokenizer, vocabulary: Vocabulary, text: TrainingText, reserved: str
) -> None:
    settings = result.settings
    said = {
        "format_version": FORMAT_VERSION,
        "kind": settings.kind,
        "preset": settings.preset,
        "tokenizer": tokenizer.settings(),
        "vocabulary": "closed" if vocabulary.closed else "open",
        "vocabulary_fingerprint": vocabulary.ids_fingerprint,
        "reserved": reserved,
        "context": settings.context,
        "training": {
            "settings": settings.to_dict(),
            "seed": settings.seed,
            "text": {"sha256": text.sha256, "segments": text.segments, "bytes": text.bytes, "events": text.events},
            "epochs": result.epochs,
            "valid_perplexity": result.valid_perplexity,
            "history": list(result.history),
            "seconds": round(result.seconds, 1),
            "torch": str(torch.__version__),
            "lmgauge": __version__,
        },
        "notes": list(result.notes),
    }
    setattr(model.config, CONFIG_KEY, said)


def _write(model: Any, tokenizer: Tokenizer, vocabulary: Vocabulary, output: Path, spelling: NetworkSpelling | None) -> None:
    if not finite(model):
        raise TrainingFailedError(f"{output}: not written, as parameters of the model are not finite")
    with quiet(), writing_directory(output, is_ours=is_trained_here) as folder:
        model.save_pretrained(folder)
        write_tokenizer(tokenizer, vocabulary, folder)
        for file in folder.iterdir():
            file.chmod((folder / "config.json").stat().st_mode)  # the weights' writer lets nobody else read them
        if spelling is not None:
            spelling.write(folder)


# -- A speller beside a network in training: what is refused before hours are spent, and what goes into its folder ----


@dataclass(frozen=True)
class NetworkSpelling:
    """How the unseen words of a network are spelled, which is decided before it is trained."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    spelling: Spelling | None  # of unseen words; None for a network of characters
    separators: SeparatorModel | None  # between words; None for a network of characters

    def learned(self) -> dict[str, Any]:
        """Return what was learned, as `SpelledModel.learned` does."""
        if self.spelling is None or self.separators is None:
            return {}
        return {"speller": self.spelling.summary(), "separators": self.separators.summary()}

    def write(self, folder: Path) -> None:
        """Write the folder `spelling` into that of the network."""
        write_spelling(folder, self.tokenizer, self.vocabulary, self.spelling, self.separators)


def refuse_unlearnable(vocabulary: VocabularyKind, tokenizer: str | Tokenizer, texts: Corpus) -> None:
    """Refuse what no network can be trained to, before its text is read."""
    if vocabulary == "closed":
        raise UsageError("vocabulary closed is for n-gram models: a network has an output for unseen words; leave it out")
    if vocabulary == "spelled":
        unit = tokenizer if isinstance(tokenizer, str) else tokenizer.unit
        if unit.partition(":")[0] in _WHOLE:
            raise UsageError(whole_already(unit))
        refuse_once(texts)


_WHOLE = ("bpe", "unigram", "byte", "subword")


def whole_already(tokenizer: str) -> str:
    """Return why a tokenizer needs no speller."""
    return (
        f"tokenizer {tokenizer}: subwords and bytes give every text a probability already, so no word is left to "
        "be spelled; leave out the vocabulary, or train on words"
    )


def learn_network_spelling(
    texts: Corpus, tokenizer: Tokenizer, vocabulary: Vocabulary, *, threads: int, progress: Callable[[str], None]
) -> NetworkSpelling:
    """Learn from the training text how words that a network does not know are spelled."""
    if tokenizer.unit not in ("word", "character"):
        raise UsageError(whole_already(tokenizer.name))
    spelling, separators = learn_parts(tokenizer, vocabulary, texts, threads=threads, progress=progress)
    return NetworkSpelling(tokenizer, vocabulary, spelling, separators)
