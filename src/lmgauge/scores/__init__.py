"""The score table: what every model makes of a text, and what every number is made from.

In memory a table is a sequence of `ScoreBatch`es of NumPy arrays; on disk and towards other programs it is Arrow. Columns:

    segment   int64                       index of the segment in reading order
    start     int64                       byte span in the segment's UTF-8 text; the spans of a segment tile it
    end       int64
    token     dictionary<int32, string>   the token as the model sees it
    logprob   float64                     natural log of the conditional probability; -inf allowed, NaN never
    kind      dictionary<int8, string>    token, oov or eos
    context   uint8, optional             how many tokens of context were used; an n-gram model: the order that matched
    entropy   float64, optional           of the predictive distribution, nats
    rank      int64, optional             of the true token among all, from 1
    id        dictionary<int32, string>   of the segment, as its source names it; only on disk, for joins

`table.py` has the table in memory and the ways to walk it, `files.py` writes and reads it.
May import `errors`, `files`, `numerics` and, to count the source text, `text.documents` and `text.segments`.
"""

from lmgauge.scores.files import ScoreWriter, read_metadata, read_scores
from lmgauge.scores.table import (
    EOS_KIND,
    KINDS,
    OOV,
    TOKEN,
    ScoreBatch,
    SegmentReader,
    SegmentRows,
    Strings,
    TokenStrings,
    example_batch,
    iter_segments,
    join_batches,
)

__all__ = [
    "EOS_KIND",
    "KINDS",
    "OOV",
    "TOKEN",
    "ScoreBatch",
    "ScoreWriter",
    "SegmentReader",
    "SegmentRows",
    "Strings",
    "TokenStrings",
    "example_batch",
    "iter_segments",
    "join_batches",
    "read_metadata",
    "read_scores",
]
