"""What a model has: eight members, and traits with defaults, which a model of somebody else's gets at the door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import UsageError
from lmgauge.models.custom import CustomModel, WrappedModel
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.protocol import LanguageModel, completed
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.scores.distributions import Entropy, reduce
from lmgauge.settings import ScoringOptions

TEXT = ["the cat sat", "the dog sat"]


class Stranger:
    """What a model must have, and nothing else; rows are those of an n-gram model."""

    def __init__(self, **more: Any) -> None:
        self._behind = lmgauge.train("witten-bell", Corpus.from_strings(TEXT), order=2)
        self.vocabulary, self.tokenizer = self._behind.vocabulary, self._behind.tokenizer
        self.score, self.score_block = self._behind.score, self._behind.score_block
        self.log_distribution = self._behind.log_distribution
        self.__dict__.update(more)


def test_a_model_with_the_traits_is_itself() -> None:
    model = Stranger()._behind
    assert completed(model) is model


def test_a_stranger_gets_the_defaults() -> None:
    model = completed(Stranger())
    assert isinstance(model, LanguageModel)
    assert (model.label, model.fingerprint, model.context_policy) == ("Stranger", "", ContextPolicy())
    assert (list(model.notes), model.tolerance, model.options, model.tokens, model.progress) == ([], 0.0, None, None, None)
    assert not any([model.is_spelled, model.blocks_are_independent, model.computes_many(), model.takes("context")])
    assert model.keep_journal(Path("journal")) is None
    assert model.with_reserved("escape") is model
    assert model.to_dict() == {}
    assert not model.may_replace(Path("folder"))
    with pytest.raises(UsageError, match=r"Stranger: the model has no method save\(path\)"):
        model.save("folder")


def test_the_engine_of_distributions_takes_a_stranger_that_is_completed() -> None:
    text = Corpus.from_strings(TEXT)
    model: Any = Stranger()
    with pytest.raises(UsageError, match=r"Stranger has not all that a model of lmgauge has: .*protocol\.completed"):
        list(reduce(model, text, [Entropy()]))
    (own,), (behind,) = (list(reduce(one, text, [Entropy()])) for one in (completed(model), model._behind))
    assert own.extra["entropy"].tolist() == pytest.approx(behind.extra["entropy"].tolist())


def test_what_a_stranger_says_counts() -> None:
    options = ScoringOptions(context=7)
    own = Stranger(
        label="own", fingerprint="1" * 64, notes=["a note"], tolerance=0.001, options=options, context_policy="stream"
    )
    model = completed(own)
    assert (model.label, model.fingerprint, list(model.notes), model.tolerance) == ("own", "1" * 64, ["a note"], 0.001)
    assert model.context_policy == ContextPolicy(unit="stream")
    assert [model.takes(name) for name in ("context", "device", "bos", "processes", "tokenizer")] == [
        True,
        True,
        *[False] * 3,
    ]
    own.notes = ["another"]
    assert list(model.notes) == ["another"]


def test_a_stranger_is_evaluated_audited_and_compared() -> None:
    own, behind = Stranger(label="own"), Stranger()._behind
    assert lmgauge.perplexity(own, "the cat sat") == lmgauge.perplexity(behind, "the cat sat")  # type: ignore[arg-type]
    noted = lmgauge.evaluate(Stranger(notes=["a note"]), texts=TEXT)  # type: ignore[arg-type]
    assert "a note" in noted.notes
    assert lmgauge.audit(own, Corpus.from_strings(TEXT)).passed  # type: ignore[arg-type]
    mixed = lmgauge.mix([own, behind], weights=[0.5, 0.5])  # type: ignore[list-item]
    assert mixed.label == "mix(own+wb2)"


@pytest.mark.parametrize("name", ["score", "vocabulary", "tokenizer"])
def test_what_lacks_a_member_is_not_a_model(name: str) -> None:
    own = Stranger()
    del own.__dict__[name]
    with pytest.raises(UsageError, match="a model is an object with score and log_distribution, or a path, not Stranger"):
        completed(own)


def test_without_distributions_rows_are_all_there_is() -> None:
    own = Stranger()
    del own.log_distribution
    assert lmgauge.evaluate(own, texts=TEXT).events == 8  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Stranger has no log_distribution"):
        lmgauge.audit(own, Corpus.from_strings(TEXT))  # type: ignore[arg-type]


def test_a_value_of_its_own_stands_before_the_default() -> None:
    class Own(CustomModel):
        def __init__(self) -> None:
            super().__init__(["a"])
            self.tolerance, self.notes = 0.01, ["of its own"]  # type: ignore[misc]

    assert (Own().tolerance, list(Own().notes), CustomModel(["a"]).tolerance) == (0.01, ["of its own"], 0.0)


def test_a_changed_distribution_speaks_for_itself() -> None:
    class Changed(NgramModel):
        def log_distribution(self, context_ids: Any) -> NDArray[np.float64]:
            return super().log_distribution(context_ids)

    model = Stranger()._behind
    changed = Changed(model.tables, model.vocabulary, model.tokenizer, model.settings)
    assert (model.computes_many(), changed.computes_many(), model.computes_many("log_distributions")) == (True, False, False)

    class Around:
        def __getattr__(self, name: str) -> Any:
            return getattr(model, name)

        def log_distribution(self, context_ids: Any) -> NDArray[np.float64]:
            return model.log_distribution(context_ids)

    assert not completed(Around()).computes_many()


def test_a_model_around_a_model_inherits_what_it_does_not_change() -> None:
    own = Stranger(label="own", notes=["a note"], tolerance=0.001, options=ScoringOptions(), progress=print)
    model = WrappedModel(own)  # type: ignore[arg-type]
    assert (model.label, list(model.notes), model.tolerance, model.options) == ("own", ["a note"], 0.001, ScoringOptions())
    assert model.takes("context")
    model.progress = len  # type: ignore[assignment]
    assert model.inner.progress is len
    begin = np.array([1], np.uint32)
    assert model.log_distribution(begin).tolist() == own.log_distribution(begin).tolist()
