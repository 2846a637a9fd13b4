"""Where helpers of the door were before; nothing new belongs here."""

from __future__ import annotations

from lmgauge.api.evaluate import evaluate as evaluate
from lmgauge.api.evaluate import evaluate_scores as evaluate_scores
from lmgauge.api.inputs import Model as Model
from lmgauge.api.inputs import PathLike as PathLike
from lmgauge.api.inputs import Text as Text
from lmgauge.api.inputs import corpus_of as corpus_of
from lmgauge.api.inputs import loaded as loaded
from lmgauge.api.sample import sample as sample
