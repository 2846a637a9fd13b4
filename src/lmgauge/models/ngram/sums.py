"""The sums of segments straight from the tables of an n-gram model: no rows are written, nothing is looked at twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmgauge.models.segment_totals import SegmentTotals, TotalsBuffer, totals_of
from lmgauge.text.encoding import encode

if TYPE_CHECKING:
    from lmgauge.models.ngram.settings import NgramSettings
    from lmgauge.models.ngram.tables import NgramTables
    from lmgauge.scores import ScoreBatch
    from lmgauge.text.segments import Segments
    from lmgauge.text.tokens import Tokenizer
    from lmgauge.text.vocabulary import Vocabulary


class SumsSegments:
    """What an n-gram model does for `sum_segments`."""

    if TYPE_CHECKING:
        tables: NgramTables
        vocabulary: Vocabulary
        tokenizer: Tokenizer
        settings: NgramSettings

        def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch: ...

    def sum_block(self, block: Segments) -> SegmentTotals:
        """Return the totals of each segment of a block, those that `totals_of` has for the rows of `score_block`.

        Args:
            block: some segments of a text, contexts of their own.

        Raises:
            InputError: the text contains a reserved token that is refused.
            ModelFileError: the model's file became shorter while in use, or a probability is above one.

        Example:
            >>> import lmgauge
            >>> model = lmgauge.train("mle", lmgauge.Corpus.from_strings(["a b", "a"]), order=1)  # a, </s> 2/5, b 1/5
            >>> totals = model.sum_block(next(iter(lmgauge.Corpus.from_strings(["b a"]))))
            >>> totals.nats.round(4).tolist(), totals.events.tolist(), totals.ends.tolist()
            ([-3.442], [3], [1])
        """
        if block.given_starts is not None:
            return totals_of(self.score_block(block, spans=False))
        self.tables.check_file()  # before the vocabulary is looked at: it is mapped, too
        settings, buffer = self.settings, TotalsBuffer(len(block))
        encoded = encode(block, self.tokenizer, self.vocabulary, bos=True, eos=settings.eos, reserved=settings.reserved)
        self.tables.sum(encoded.ids, buffer.arrays)
        return buffer.totals()
