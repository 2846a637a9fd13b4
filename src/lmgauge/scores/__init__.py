"""The score table: what every model makes of a text, and what every number is made from.

In memory a table is a sequence of `ScoreBatch`es of NumPy arrays; on disk and towards other programs it is Arrow. Columns:

    segment   int64                       index of the segment in reading order
    start     int64                       byte span in the segment's UTF-8 text; the spans of a segment tile it
    end       int64
    token     dictionary<int32, string>   the token as the model sees it
    logprob   float64                     natural log of the conditional probability; -inf allowed, NaN never
    kind      dictionary<int8, string>    token, oov, eos, spelled (an unseen word, letter by letter) or framing (of a turn)
    context   uint8, optional             how many tokens of context were used; an n-gram model: the order that matched
    entropy   float64, optional           of the predictive distribution, nats
    rank      int64, optional             of the true token among all, from 1
    spelling  float64, optional           of `logprob`, the part that is the letters of an unseen word, nats; else 0
    separator float64, optional           of `logprob`, the part that is the white space before the event, nats
    altered   float64, optional           1 in turns that a chat template or its tokens do not give back, else 0
    id        dictionary<int32, string>   of the segment, as its source names it; only on disk, for joins

`table.py` has the table in memory, `segment_rows.py` walks it, `files.py` writes and reads it.
May import `errors`, `files`, `numerics` and, to count the source text, `text.documents`, `segments` and `work_units`.
"""

from lmgauge.scores.files import RowReader as RowReader
from lmgauge.scores.files import ScoreWriter as ScoreWriter
from lmgauge.scores.files import read_metadata as read_metadata
from lmgauge.scores.files import read_scores as read_scores
from lmgauge.scores.files import table_format as table_format
from lmgauge.scores.segment_rows import SegmentReader as SegmentReader
from lmgauge.scores.segment_rows import iter_segments as iter_segments
from lmgauge.scores.segment_rows import score_in_pieces as score_in_pieces
from lmgauge.scores.table import ALTERED as ALTERED
from lmgauge.scores.table import EOS_KIND as EOS_KIND
from lmgauge.scores.table import FRAMING as FRAMING
from lmgauge.scores.table import KINDS as KINDS
from lmgauge.scores.table import OF_NO_TEXT as OF_NO_TEXT
from lmgauge.scores.table import OOV as OOV
from lmgauge.scores.table import SEPARATOR as SEPARATOR
from lmgauge.scores.table import SPELLED as SPELLED
from lmgauge.scores.table import SPELLING as SPELLING
from lmgauge.scores.table import TOKEN as TOKEN
from lmgauge.scores.table import GivenTokens as GivenTokens
from lmgauge.scores.table import ScoreBatch as ScoreBatch
from lmgauge.scores.table import Strings as Strings
from lmgauge.scores.table import TokenStrings as TokenStrings
from lmgauge.scores.table import escaped as escaped
from lmgauge.scores.table import example_batch as example_batch
from lmgauge.scores.table import join_batches as join_batches
from lmgauge.scores.table import same_tokens as same_tokens
from lmgauge.scores.table import starts_of as starts_of
from lmgauge.scores.table import unescaped as unescaped
