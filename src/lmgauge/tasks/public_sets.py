"""Public test sets of translation, through the registry of sacreBLEU where it is installed: references by their names."""

# sacreBLEU fetches a set on first use and keeps its texts as files with a segment on each line, in ~/.sacrebleu (or where
# the environment variable SACREBLEU says).

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module

from lmgauge.base.choices import BleuTokenizer
from lmgauge.base.display import Displayable
from lmgauge.base.errors import InputError, UsageError, needing
from lmgauge.tasks.settings import PublicTest
from lmgauge.tasks.texts import GivenReferences, Texts
from lmgauge.text.documents import Corpus

TOKENIZERS: dict[str, BleuTokenizer] = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
"""Of BLEU, where the language translated into is one of these and no tokenizer is named: as sacreBLEU chooses."""


@dataclass(frozen=True, repr=False)
class PublicSet(Displayable):
    """A public test set in one direction of translation."""

    name: str  # as sacreBLEU has it, such as "wmt22"
    language_pair: str
    source: str  # path of the file with the texts that were translated
    references: tuple[str, ...]  # path of a file for each reference

    def _in_brief(self) -> str:
        return f"{self.name} {self.language_pair}: {len(self.references)} reference{'s' * (len(self.references) != 1)}"

    @property
    def tokenizer(self) -> BleuTokenizer:
        """Return the tokenizer of BLEU for the language translated into, as sacreBLEU chooses it."""
        return tokenizer_for(self.language_pair)


def tokenizer_for(language_pair: str | None) -> BleuTokenizer:
    """Return the tokenizer of BLEU for the language translated into; 13a without one."""
    return TOKENIZERS.get((language_pair or "").rpartition("-")[2], "13a")


def find_public_set(name: str | None, language_pair: str | None) -> PublicSet:
    """Return the files of a public test set; sacreBLEU fetches them if they are not there.

    Args:
        name: of the set, such as "wmt22" or "wmt21/systems".
        language_pair: such as "en-de".

    Raises:
        UsageError: there is no such set, or not in these languages.
        InputError: it cannot be fetched: says where its files go.
        MissingExtraError: sacreBLEU is not installed.

    Example:
        >>> import lmgauge
        >>> lmgauge.tasks.find_public_set("wmt22", "de-fi")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        lmgauge.base.errors.UsageError: test set wmt22 is not in de-fi; it has cs-en, cs-uk, de-en, de-fr, ...
    """
    if name is None or language_pair is None:
        missing, present = ("a language pair", "test set") if language_pair is None else ("a test set", "language pair")
        raise UsageError(f"a {present} without {missing}: give both, such as wmt22 and en-de")
    with needing("sacrebleu", extra="translation"):
        known = import_module("sacrebleu.dataset").DATASETS
    dataset = known.get(name)
    if dataset is None:
        close = get_close_matches(name, known, 5) or sorted(known)[-5:]
        raise UsageError(f"sacreBLEU has no test set {name!r}, but {', '.join(close)} (sacrebleu --list has all)")
    if language_pair not in dataset.langpairs:
        raise UsageError(f"test set {name} is not in {language_pair}; it has {', '.join(sorted(dataset.langpairs))}")
    try:
        source, references = dataset.get_source_file(language_pair), dataset.get_reference_files(language_pair)
    except (OSError, EOFError, SystemExit, ValueError) as error:
        reason = "its archive is damaged" if isinstance(error, SystemExit) else error
        raise InputError(
            f"test set {name} {language_pair} cannot be fetched by sacreBLEU ({reason}): fetch it where there is a network, "
            f"with sacrebleu -t {name} -l {language_pair} --echo ref, and copy the folder it is in to {dataset._outdir}"
        ) from error
    return PublicSet(name, language_pair, source, tuple(references))


def references_or_public(references: GivenReferences | None, public: PublicTest) -> GivenReferences:
    """Return the references that were given, or those of a public test set."""
    if references is not None and public != PublicTest():
        raise UsageError("give references, or a test set and its language pair: not both")
    if references is None and public == PublicTest():
        raise UsageError("nothing to score against: give references, or a test set and its language pair")
    if references is not None:
        return references
    paths = find_public_set(public.test_set, public.language_pair).references
    files = [Corpus.from_files(path, group=None, format="text", keep_bom=True) for path in paths]
    columns = [[text for block in file for text in Texts.of_segments(block).strings()] for file in files]
    return list(zip(*columns, strict=True))
