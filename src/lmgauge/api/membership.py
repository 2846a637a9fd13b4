"""`lmgauge.membership`: whether a model has seen texts in training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmgauge.api.inputs import Model, PathLike, Text, corpus_of, load_models, refuse_field, refuse_output, written
from lmgauge.base.declaration import verb
from lmgauge.base.errors import UsageError
from lmgauge.settings import MembershipSettings, ReadingOptions, ScoringOptions

if TYPE_CHECKING:
    from lmgauge import Corpus
    from lmgauge.results import Membership


@verb
def membership(
    model: Model,
    texts: Text,
    control: Text | None = None,
    *,
    label: str | None = None,
    reference: Model | None = None,
    output: PathLike | None = None,
    settings: MembershipSettings = MembershipSettings(),
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Membership:
    """Ask whether a model has seen texts in training: `lmgauge membership`.

    Each segment gets scores that tend to differ between seen and unseen text: loss, Min-K%, Min-K%++, zlib ratio and, with a
    second model, the difference from it. With control texts: how well each score tells both sets apart.

    Sources: Yeom et al. (2018), Carlini et al. (2021), Shi et al. (2024), Zhang et al. (2025).

    Args:
        model: the model in question: a model folder, an ARPA or GGUF file, or a server.
        texts: the texts in question, a segment each.
        control: texts that the model cannot have seen, as similar to the others as possible; may be several.
        label: field of the texts that says 1 (in question) or 0 (control), instead of control texts.
        reference: a second model, which has not seen the texts; adds a score.
        output: file with one row per text: .parquet, .csv, .tsv or .jsonl.
        settings: how texts are scored and sets compared.
        reading: how texts are read.
        scoring: how models named by their path score.
        fields: those of `settings`, `reading` and `scoring`, by name.

    Returns:
        Scores of both sets; with control texts how well each score tells the sets apart, with intervals.

    Raises:
        InputError: a text is empty or cannot be used, labels are not 0 and 1, or the control texts are the texts.
        ModelFileError: a model cannot be loaded.
        UsageError: both `control` and `label`, an option out of range, or an output that would replace an input.

    Shell:
        lmgauge membership kn5/ asked.txt --control fresh.txt
        lmgauge membership model/ wikimia.jsonl --field input --label label

    Example:
        >>> from lmgauge import Corpus, train
        >>> seen, unseen = Corpus.from_strings(["a b c", "b c d", "c d a"]), Corpus.from_strings(["b a d", "c b a", "d b"])
        >>> result = membership(train("witten-bell", seen, order=2), seen, unseen)
        >>> round(result.score("min_k").auroc, 3)
        1.0
    """
    from lmgauge.base.progress import say_progress
    from lmgauge.evaluation.membership.membership import membership as _membership
    from lmgauge.models.registry import model_names

    asked = [model] if reference is None else [model, reference]
    if label is not None and control is not None:
        raise UsageError("control texts are either named (control) or labeled (label), not both")
    corpora = [corpus_of(text, reading, alone=False) for text in (texts, control) if text is not None]
    refuse_field(reading, *corpora)
    if label is not None:
        corpora = [_labeled(corpora[0], label)]
    corpora = [corpus.without_given("membership") for corpus in corpora]
    refuse_output(output, asked, *corpora, rows=True)
    names = model_names(asked, models := load_models(asked, scoring, corpora[0]))
    say_progress("scoring")
    second = None if reference is None else models[1]
    result = _membership(models[0], corpora, settings, labeled=label is not None, reference=second, names=names)
    return written(result, output)


def _labeled(corpus: Corpus, label: str) -> Corpus:
    """Return the same text with its labels as groups."""
    from lmgauge.text.documents import Corpus

    if not corpus.settings:
        raise UsageError("label names a field of files; strings are handed over as texts and control")
    return Corpus.from_files(**corpus.settings | {"paths": [source.path for source in corpus.sources], "group": label})
