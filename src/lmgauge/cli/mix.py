"""`lmgauge mix`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lmgauge.cli.options import (
    corpus_of,
    json_option,
    neural_options,
    refuse_unused,
    reserved_option,
    scoring_options,
    show_speed,
    text_options,
    threads_option,
)
from lmgauge.files import refuse_replacing

if TYPE_CHECKING:
    from lmgauge.models.mixture.model import MixtureModel
    from lmgauge.models.mixture.weights import MixtureFit

_ARPA_NAMES = (".arpa", ".arpa.gz", ".lm", ".lm.gz")


@click.command()
@click.argument("texts", nargs=-1, type=click.Path(allow_dash=True))
@click.option(
    "-m",
    "--model",
    "models",
    multiple=True,
    type=click.Path(),
    help="Model folder, or ARPA file; two or more, over the same words.",
)
@click.option("-o", "--output", required=True, type=click.Path(), help="Folder of the mixture to write.")
@click.option(
    "--weights",
    metavar="W,W...",
    help="One a model, summing to 1, instead of estimating them; TEXTS, if named, then only measure them.",
)
@neural_options
@reserved_option
@text_options
@threads_option
@json_option
def mix(
    texts: tuple[str, ...],
    models: tuple[str, ...],
    output: str,
    weights: str | None,
    reserved: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Mix models, with weights estimated on held-out text.

    TEXTS are held-out text, which no model was trained on: files, globs or - (standard input, also if none is named). The
    weights are those that make it most probable (expectation maximisation).

    \b
    lmgauge mix -m kn3/ -m wb3/ valid.txt -o mixed/
    lmgauge mix -m kn3/ -m wb3/ --weights 0.7,0.3 -o mixed/
    """
    from lmgauge.models.mixture.model import MixtureModel, with_reserved
    from lmgauge.models.mixture.weights import estimate_weights, measure_weights
    from lmgauge.models.registry import open_model
    from lmgauge.report.terminal import progress

    if len(models) < 2:
        raise click.UsageError("a mixture needs at least two models; name each with -m")
    if len(set(models)) < len(models):
        raise click.UsageError("the same model is named twice")
    if output.endswith(_ARPA_NAMES):
        raise click.UsageError(f"-o {output}: only n-gram models have an ARPA form; a mixture is a folder")
    given = None if weights is None else _numbers(weights)
    held_out = corpus_of(texts, options) if texts or given is None else None
    refuse_replacing({"-o": output}, [*models, *(source.path for source in (held_out.sources if held_out else ()))])
    with progress() as status:
        status.update("loading")
        components = [open_model(path, scoring_options(options)) for path in models]
        refuse_unused(options, components)
        if reserved is not None:
            components = with_reserved(components, reserved)  # type: ignore[arg-type]
        show_speed(components, status)
        fit: MixtureFit | None = None
        shared: dict[str, Any] = {"threads": options["threads"], "names": models, "progress": status.update}
        if held_out is not None:
            fit = (
                estimate_weights(components, held_out, **shared)
                if given is None
                else measure_weights(components, given, held_out, **shared)
            )
        found = given if fit is None else fit.weights
        mixture = MixtureModel(components, found or (), estimation=None if fit is None else fit.to_dict(), names=models)
        status.update(f"saving {output}")
        mixture.save(output)
    _print(mixture, fit, models, output, as_json)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise click.UsageError(f"--weights: {text!r} is not a list of numbers like 0.7,0.3") from error


def _print(mixture: MixtureModel, fit: MixtureFit | None, models: tuple[str, ...], output: str, as_json: bool) -> None:
    from lmgauge.json_text import to_json
    from lmgauge.report.mixture import print_mixture
    from lmgauge.report.terminal import number

    if as_json:
        content = mixture.to_dict() | {"path": output, "label": mixture.label, "fingerprint": mixture.fingerprint}
        for component, path in zip(content["components"], models, strict=True):
            component["path"] = path
        click.echo(to_json(content))
        return
    own: tuple[float | None, ...] = (None,) * len(models) if fit is None else fit.component_perplexities
    print_mixture(output, list(zip(models, mixture.weights, own, strict=True)), None if fit is None else fit.perplexity)
    if fit is None:
        return
    how = "weights given" if fit.given else f"weights by EM in {fit.iterations} iterations"
    gain = number(fit.gap) if fit.gap else "0"
    click.echo(f"{how}; {fit.events:,} held-out events; other weights could gain at most {gain} nats an event")
    if fit.skipped:
        without = number(fit.perplexity_without_zeros, 3)
        click.echo(f"{fit.skipped:,} held-out events are impossible to this mixture; perplexity without them {without}")
