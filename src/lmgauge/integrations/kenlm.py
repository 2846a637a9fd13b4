"""The kenlm package's names over lmgauge's models: decoders that call KenLM from Python run unchanged.

    >>> import lmgauge, tempfile
    >>> import lmgauge.integrations.kenlm as kenlm
    >>> folder = tempfile.mkdtemp() + "/wb2"
    >>> lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"]), order=2).save(folder)
    >>> model = kenlm.Model(folder)
    >>> model.order, round(model.score("the cat sat"), 4), "cat" in model
    (2, -0.9719, True)
    >>> before, behind = kenlm.State(), kenlm.State()
    >>> model.BeginSentenceWrite(before)
    >>> round(model.BaseScore(before, "the", behind), 4)
    -0.1312

Logarithms have base ten and single precision here, as KenLM's. A model is an ARPA file, a binary file of KenLM, or a folder
of lmgauge. The scores of a binary file are KenLM's, to the last bit. Other models hold probabilities and not their
logarithms: a word's score agrees to 1e-6. What else differs: a state of another model is refused, not read as one of this;
n-grams that a model holds only because longer ones need them do not count in `ngram_length`; a NUL is a character of a word,
which it ends for KenLM; `<s>` in a sentence is impossible.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from lmgauge._kernels import _native
from lmgauge.base.errors import LmgaugeError
from lmgauge.models.combined.spelling.model import parted
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.registry import load_model

__all__ = ["ARPALoadComplain", "Config", "FullScoreReturn", "LanguageModel", "LoadMethod", "Model", "State"]

State = _native.WrittenState
"""A state that `BeginSentenceWrite`, `NullContextWrite` and `BaseScore` write into; it hashes, compares and copies. One
never written to has nothing before it."""


class LoadMethod:
    """How KenLM brings a binary into memory; models of lmgauge are mapped, whatever is chosen."""

    LAZY, POPULATE_OR_LAZY, POPULATE_OR_READ, READ, PARALLEL_READ = range(5)


class ARPALoadComplain:
    """When KenLM complains about ARPA files; lmgauge never does on the way."""

    ALL, EXPENSIVE, NONE = range(3)


class Config:
    """Settings of KenLM's loading; accepted and without effect: files are mapped, and loading prints nothing.

    Example:
        >>> config = Config()
        >>> config.load_method = LoadMethod.READ
    """

    def __init__(self) -> None:
        self.load_method: int = LoadMethod.POPULATE_OR_READ
        self.show_progress: bool = True
        self.arpa_complain: int = ARPALoadComplain.ALL


class FullScoreReturn:
    """What `BaseFullScore` returns.

    Attributes:
        log_prob: log10 of the probability.
        ngram_length: words of the longest n-gram that ends with the word.
        oov: True for an unknown word.
    """

    __slots__ = ("log_prob", "ngram_length", "oov")

    def __init__(self, log_prob: float, ngram_length: int, oov: bool) -> None:
        self.log_prob, self.ngram_length, self.oov = log_prob, ngram_length, oov

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.log_prob!r}, {self.ngram_length!r}, {self.oov!r})"


class Model(_native.KenlmCalls):
    """An n-gram model behind KenLM's calls.

    `score`, `BaseScore`, `BeginSentenceWrite`, `NullContextWrite` and `order` are compiled: a call of Python more would
    cost as much again.

    Args:
        path: of an ARPA file, a KenLM binary or a folder of lmgauge.
        config: accepted, see `Config`.

    Attributes:
        path: absolute, bytes, as KenLM has it.

    Raises:
        OSError: it cannot be read, or is not an n-gram model.
    """

    path: bytes

    def __init__(self, path: str | bytes | os.PathLike[str], config: Config | None = None) -> None:
        name = os.fsdecode(path)
        try:
            model = load_model(name)
        except LmgaugeError as error:
            raise OSError(f"Cannot read model {name!r} ({error})") from error
        model, _ = parted(model)  # KenLM knows <unk>, and not how it is spelled
        if not isinstance(model, NgramModel):
            raise OSError(f"Cannot read model {name!r} (not an n-gram model: its states are not those of KenLM)")
        super().__init__(model.reader)
        self.path = os.path.abspath(os.fsencode(name))

    def __contains__(self, word: str | bytes) -> bool:
        return bool(super().__contains__(word)) and word not in ("<unk>", b"<unk>")

    def perplexity(self, sentence: str | bytes) -> float:
        """Return the perplexity of a sentence, `</s>` counted; words end at the white space of ASCII, as for `score`."""
        words = sentence.encode() if isinstance(sentence, str) else sentence
        return float(10.0 ** (-self.score(sentence) / (len(words.split()) + 1)))

    def full_scores(self, sentence: str | bytes, bos: bool = True, eos: bool = True) -> Iterator[tuple[float, int, bool]]:
        """Yield log10 of the probability, length of the n-gram found, and whether it is unknown, of each word.

        Args:
            sentence: words between white space of ASCII.
            bos: begin after `<s>`.
            eos: end with `</s>`.
        """
        yield from self._full_scores(sentence, bool(bos), bool(eos))

    def BaseFullScore(self, in_state: State, word: str | bytes, out_state: State) -> FullScoreReturn:
        """Return all about a word after a state, and write the state behind it."""
        return FullScoreReturn(*self._full_step(in_state, word, out_state))

    def __repr__(self) -> str:
        return f"<Model from {os.path.basename(os.fsdecode(self.path))}>"

    def __reduce__(self) -> tuple[type[Model], tuple[bytes]]:
        return Model, (self.path,)


class LanguageModel(Model):
    """The older name of `Model`."""
