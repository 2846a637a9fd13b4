"""`lmgauge.context_curve`: what a longer context is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmgauge.api.inputs import Model, PathLike, Text, corpus_of, named_models, refuse_output, written
from lmgauge.base.declaration import verb
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Count
from lmgauge.base.progress import show_speed
from lmgauge.models.network.options import ScoringOptions, parse_lengths
from lmgauge.settings import ReadingOptions

if TYPE_CHECKING:
    from lmgauge import LanguageModel
    from lmgauge.models.network.model import NetworkModel
    from lmgauge.results import ContextCurve


@verb
def context_curve(
    model: Model,
    text: Text,
    contexts: str | Sequence[int | str],
    *,
    per_context: PathLike | None = None,
    threads: Count | None = None,
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> ContextCurve:
    """Score the same tokens under contexts of several lengths: `lmgauge eval --contexts`.

    Counted are the tokens that have at least as many tokens of their segment before them as the longest context holds. A
    context of L tokens is a window that moves on by the stride s, so that each is seen with L - s + 1 to L of them.

    Args:
        model: a network (torch or GGUF), or the path of one.
        text: files: a path, several, or a `Corpus`. Its segments must be long: documents rather than lines.
        contexts: score with contexts of these lengths; the same tokens are scored under each: 512,1k,2k, where k
            is 1,024.
        per_context: also write one row per length of `contexts`: .tsv, .csv, .jsonl, .parquet, or - .
        threads: how many; does not change results, except by rounding.
        reading: how files are read; `document` says what is independent, behind intervals and tests.
        scoring: how the model scores, without a context; `stride`, tokens from one window to the next, is a quarter of the
            shortest length if not given. Each token is computed about L / stride times.
        fields: those of both by name, as in `stride=16`.

    Returns:
        Of each length bits per token and byte, with intervals; from each to the next the paired difference, and its test.

    Raises:
        InputError: no segment is longer than the longest context, or the text cannot be used.
        ModelFileError: the model cannot be loaded.
        UsageError: the model is not such a network, its context runs on, it has positions for fewer tokens, or the lengths
            or the stride cannot be; or `per_context` would replace an input, or has another ending.

    Example:
        >>> from tokenizers import Tokenizer, models
        >>> from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
        >>> from lmgauge import Corpus
        >>> from lmgauge.models import NeuralModel
        >>> letters = Tokenizer(models.BPE({letter: i for i, letter in enumerate("#ab ")}, merges=[]))
        >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, bos_token="#", eos_token="#")
        >>> sizes = {"vocab_size": 4, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 1}
        >>> network = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).eval()
        >>> text = Corpus.from_strings(["abba abba ab", "ba ba ba ba b"])
        >>> curve = context_curve(NeuralModel.wrap(network, tokenizer), text, [4, 8])
        >>> curve.events, [point.context for point in curve.points]  # the tokens with 8 or more before them
        (11, [4, 8])
    """
    from lmgauge.evaluation.context_curve import curve as curves
    from lmgauge.evaluation.origin import Origin
    from lmgauge.models.combined.spelling.model import SpelledModel
    from lmgauge.models.network.sequences import LongSegments

    lengths = parse_lengths(contexts)
    step = max(1, lengths[0] // 4) if scoring.stride is None else scoring.stride
    if step > lengths[0]:
        raise UsageError(f"stride {step}: give 1 to {lengths[0]:,}, the shortest of the contexts")
    if scoring.context is not None or scoring.stream:
        raise UsageError("contexts already set how much the model sees: leave the context out")
    corpus = corpus_of(text, reading).without_given("a curve of contexts", whole=True)
    refuse_output(per_context, [model], corpus, option="--per-context", rows=True)
    (network,), (name,) = named_models([model], replace(scoring, stride=None))
    networks = _with_lengths(network, lengths, step)
    models = [network.around(one) for one in networks] if isinstance(network, SpelledModel) else networks
    show_speed(models)
    segments, origin = LongSegments(networks[-1], corpus, lengths[-1]), Origin.of_model(network, name)
    curve = curves.context_curve(models, segments, corpus, lengths, step, origin=origin, threads=threads)
    return written(curve, per_context)


def _with_lengths(network: LanguageModel, lengths: Sequence[int], stride: int) -> list[NetworkModel]:
    """Return a network once for each length.

    Raises:
        UsageError: it is not a network whose windows can be chosen here.
    """
    from lmgauge.models.combined.spelling.model import SpelledModel
    from lmgauge.models.network.model import NetworkModel

    network = network.inner if isinstance(network, SpelledModel) else network
    if not isinstance(network, NetworkModel):
        raise UsageError(
            f"{network.label}: contexts need a network that computes here (torch or GGUF), whose window can be chosen; "
            "n-gram models see a fixed number of words, mixtures and servers choose for themselves"
        )
    if network.context_policy.runs_on:
        raise UsageError(
            f"{network.label}: its context continues across segments, and contexts of a set length do not: load it with "
            "--context sentence"
        )
    if network.context_policy.protocol is not None:
        raise UsageError(f"protocol {network.context_policy.protocol}: sets its own windows; compare contexts without it")
    options = network.options
    return [network.with_options(replace(options, context=length, stride=stride)) for length in lengths]
