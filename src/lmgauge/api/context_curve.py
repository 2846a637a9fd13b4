"""`lmgauge.context_curve`: what a longer context is worth."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, loaded
from lmgauge.errors import UsageError
from lmgauge.evaluation.context_curve.curve import CurveSettings
from lmgauge.evaluation.context_curve.curve import context_curve as _context_curve
from lmgauge.evaluation.context_curve.results import ContextCurve
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.row_files import check_row_file
from lmgauge.files import refuse_replacing
from lmgauge.models.network.options import ScoringOptions, parse_lengths
from lmgauge.models.protocol import LanguageModel
from lmgauge.models.registry import model_names
from lmgauge.models.spelling.model import SpelledModel
from lmgauge.progress import say_progress, show_speed
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.models.network.model import NetworkModel


def context_curve(
    model: Model,
    text: Text,
    contexts: str | Sequence[int | str],
    *,
    stride: int | None = None,
    document: str | None = None,
    threads: int | None = None,
    output: PathLike | None = None,
    scoring: ScoringOptions | None = None,
) -> ContextCurve:
    """Score the same tokens under contexts of several lengths: `lmgauge eval --contexts`.

    Counted are the tokens that have at least as many tokens of their segment before them as the longest context holds. A
    context of L tokens is a window that moves on by the stride s, so that each is seen with L - s + 1 to L of them.

    Args:
        model: a network (torch or GGUF), or the path of one.
        text: files: a path, several, or a `Corpus`. Its segments must be long: documents rather than lines.
        contexts: two lengths or more, in tokens: `[512, 1024, 2048]` or `"512,1k,2k"`.
        stride: tokens from one window to the next; a quarter of the shortest length if None. Each token is computed about
            L / stride times.
        document: what is independent, behind intervals and tests: see `Corpus.from_files`.
        threads: how many; no number depends on it but for rounding.
        output: a file for a row a length, .parquet, .csv, .tsv or .jsonl.
        scoring: how a model named by its path scores (device, processes, dtype ...), without a context.

    Returns:
        Of each length bits per token and byte, with 95 % intervals; from each length to the next the paired difference, its
        interval and test.

    Raises:
        InputError: no segment is longer than the longest context, or the text cannot be used.
        ModelFileError: the model cannot be loaded.
        UsageError: the model is not such a network, its context runs on, it has positions for fewer tokens, or the lengths
            or the stride cannot be; or `output` would replace an input, or has another ending.

    Example:
        >>> from tokenizers import Tokenizer, models
        >>> from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
        >>> from lmgauge import Corpus, NeuralModel
        >>> letters = Tokenizer(models.BPE({letter: i for i, letter in enumerate("#ab ")}, merges=[]))
        >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, bos_token="#", eos_token="#")
        >>> sizes = {"vocab_size": 4, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 1}
        >>> network = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).eval()
        >>> text = Corpus.from_strings(["abba abba ab", "ba ba ba ba b"])
        >>> curve = context_curve(NeuralModel.wrap(network, tokenizer), text, [4, 8])
        >>> curve.events, [point.context for point in curve.points]  # the tokens with 8 or more before them
        (11, [4, 8])
    """
    from lmgauge.models.network.long_segments import LongSegments

    lengths = parse_lengths(contexts)
    step = max(1, lengths[0] // 4) if stride is None else stride
    if step < 1 or step > lengths[0]:
        raise UsageError(f"stride {step}: give 1 to {lengths[0]:,}, the shortest of the contexts")
    if scoring is not None and (scoring.context is not None or scoring.stride is not None or scoring.stream):
        raise UsageError("contexts say how much is seen: leave context, stride and stream out of the scoring options")
    corpus = corpus_of(text, ReadingOptions(document=document)).without_given("a curve of contexts")
    if output is not None:
        check_row_file(os.fspath(output))
        named = [os.fspath(model)] if isinstance(model, PATHS) else []
        refuse_replacing({"--per-context": output}, [*named, *(source.path for source in corpus.sources)])
    network = loaded(model, scoring)
    networks = _with_lengths(network, lengths, step)
    models = [network.around(one) for one in networks] if isinstance(network, SpelledModel) else networks
    show_speed(models)
    (name,) = model_names([model], [network])
    curve = _context_curve(
        models,
        LongSegments(networks[-1], corpus, lengths[-1]),
        corpus,
        CurveSettings(contexts=lengths, stride=step, threads=threads),
        origin=Origin.of_model(network, name),
        progress=lambda done: say_progress(f"scored {done / 1e6:,.0f} MB"),
    )
    if output is not None:
        curve.write_rows(output)
    return curve


def _with_lengths(network: LanguageModel, lengths: Sequence[int], stride: int) -> list[NetworkModel]:
    """Return a network once for each length.

    Raises:
        UsageError: it is not a network whose windows can be chosen here.
    """
    from lmgauge.models.network.model import NetworkModel

    network = network.inner if isinstance(network, SpelledModel) else network
    if not isinstance(network, NetworkModel):
        raise UsageError(
            f"{network.label}: contexts need a network that computes here (torch or GGUF), whose window can be chosen; "
            "n-gram models see a fixed number of words, mixtures and servers choose for themselves"
        )
    if network.context_policy.runs_on:
        raise UsageError(
            f"{network.label}: its context runs on from segment to segment, and contexts of a length do not: load it with "
            "--context sentence"
        )
    if network.context_policy.protocol is not None:
        raise UsageError(f"protocol {network.context_policy.protocol}: lays its own windows; compare contexts without it")
    options = network.options
    return [network.with_options(replace(options, context=length, stride=stride)) for length in lengths]
