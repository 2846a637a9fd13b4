"""`lmgauge.evaluate_protocols`: one model under the rules of every program that can be followed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmgauge.api.evaluate import evaluate
from lmgauge.api.types import Model, Text
from lmgauge.choices import PROTOCOL_NAMES, ProtocolName
from lmgauge.declaration import verb
from lmgauge.errors import InputError, UsageError
from lmgauge.models.network.options import DECIDED, ScoringOptions
from lmgauge.option_numbers import Count
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.evaluation.protocol_table import ProtocolRow, ProtocolTable
    from lmgauge.models.network.model import NetworkModel
    from lmgauge.text.documents import Corpus


@verb
def evaluate_protocols(
    model: Model,
    text: Text | None = None,
    *,
    texts: Iterable[str] | str | None = None,
    threads: Count | None = None,
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> ProtocolTable:
    """Evaluate one model by lmgauge's own rules and by those of each protocol: `lmgauge eval --protocol all`.

    The text is read and scored once for each. A protocol that the model or the text cannot follow has a row that says why.

    Args:
        model: a network, or the path of one.
        text: files: a path, several, or a `Corpus` that can be read more than once.
        texts: strings in place of files, each a segment.
        threads: how many; no number depends on it.
        reading: how files are read.
        scoring: device, dtype and the like; `context` is the length of windows under every protocol.
        fields: those of both by name.

    Raises:
        InputError: the text is empty or cannot be used.
        ModelFileError: the model cannot be loaded.
        UsageError: it is not a network on this machine, or an option was chosen that protocols decide.

    Example:
        >>> from lmgauge import Corpus, train
        >>> evaluate_protocols(train("laplace", Corpus.from_strings(["a b"])), texts=["a b"])
        Traceback (most recent call last):
        lmgauge.errors.UsageError: laplace3: only networks on this machine can follow protocols, which lay windows of tokens
    """
    from lmgauge.api.inputs import named_models, one_text
    from lmgauge.evaluation.protocol_table import ProtocolTable
    from lmgauge.models.network.model import NetworkModel

    for name in DECIDED:
        if getattr(scoring, name) is not None:
            raise UsageError(f"{name.replace('_', '-')}: protocols decide that; leave it out, or name one protocol")
    corpus = one_text(text, texts, reading)
    (loaded,), (name,) = named_models([model], scoring)
    if not isinstance(loaded, NetworkModel):
        spelled = "; this one is spelled, and scores all of a text" if getattr(loaded, "is_spelled", False) else ""
        raise UsageError(f"{name}: only networks on this machine can follow protocols, which lay windows of tokens{spelled}")
    if not corpus.rereadable:
        raise UsageError("a table of protocols reads the text once for each: save it in a file first")
    rows = [_row(loaded, name, corpus, protocol, threads) for protocol in (None, *PROTOCOL_NAMES)]
    return ProtocolTable(tuple(rows), model=name)


def _row(model: NetworkModel, name: str, corpus: Corpus, protocol: ProtocolName | None, threads: int | None) -> ProtocolRow:
    """Return what comes of one protocol; None for the rules of lmgauge.

    Raises:
        InputError: the text cannot be used, whatever the protocol.
    """
    from lmgauge.evaluation.protocol_table import OWN, ProtocolRow

    options = model.options
    if protocol is not None:
        options = replace(options, protocol=protocol, stride=None, stream=None, first_token=None, end=None)
    try:
        following = model.with_options(options) if protocol is not None else model
        return ProtocolRow(protocol or OWN, evaluate({name: following}, corpus, threads=threads).items[0])
    except (InputError, UsageError) as error:
        if protocol is None:
            raise
        return ProtocolRow(protocol, None, str(error).removeprefix(f"protocol {protocol}: "))
