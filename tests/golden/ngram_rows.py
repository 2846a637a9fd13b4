"""Published and measured figures of n-gram models on two public texts: what the golden test holds the package against.

Each row says where its figure is from:

* "float64": a slow float64 implementation of interpolated modified Kneser-Ney, independent of this repository;
* "KenLM ...": `lmplz` with these options, then `query` (float32 arithmetic and ARPA text in between);
* "SRILM ...": `ngram-count` with these options, perplexity recomputed in float64 from its ARPA file. "no cut-offs"
  stands for `-gt3min 1 -gt4min 1 -gt5min 1`, "cut-offs" for SRILM's default: singletons of order 3 and more dropped;
* "formula": the textbook formula of additive smoothing in float64; V is 10,001 with `<unk>`, 10,000 without;
* "NLTK ...": the events of finite probability, and how many there are of probability zero;
* "published ...": Mikolov et al. 2011, "Empirical evaluation and combination of advanced language modeling techniques".

Beside each stands what `tests/reference/ngram.py` computes, to the last digit: where it and the tool differ by more
than the rounding of an ARPA file (2e-7), the reason is known, and the package follows the formula:

* SRILM, interpolated (up to 1.2e-4): where the interpolated probabilities seen after a context add up to more than
  1 - 3e-6, it turns interpolation off in that context. With this rule added, the reference gives SRILM's digits
  (3e-8 and better) in every such row.
* KenLM (2e-7 for WikiText-2, 1.4e-4 where `<unk>` is scored 4,794 times): it enters the very last n-gram of each
  order below the highest into the counts of counts with its raw count in place of the adjusted one
  (`adjust_counts.cc`, end of `Run`), so that two n_i of the unigrams can be off by one: D3+ is 1.15669 in place of
  1.15386 in the rows of `--skip_symbols`. With the discounts of these n_i the reference gives KenLM's digits.

SRILM's vocabulary is closed; KenLM's is open, and `<unk>` gets its share of the uniform distribution.

No row is made of figures that answer another question: SRILM's Kneser-Ney with cut-offs (it drops by adjusted counts
below the highest order, and its weight of the lower order leaves out the dropped counts: 152.985 where KenLM's and
ours is 153.238), its `-addsmooth` above order 1 (a back-off model) and `-ndiscount` (natural discounting, not
offered), KenLM's `--interpolate_unigrams 0` and `--vocab_pad`, and NLTK's smoothed models (they give `<s>` mass).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Row:
    """One model, one test text, one figure.

    text : "ptb" (the text's own `<unk>` is an ordinary word), "ptb-unk-removed" (it is removed from the training text
        and out of vocabulary in the test text), "wikitext-2" (all lines), "wikitext-2-nonblank" (blank lines removed
        from both).
    options : those of `lmgauge.train` that differ from its defaults.
    perplexity : as the source has it, over all events; over those of finite probability if there are zeros.
    rel : relative tolerance that holds between the source and the package.
    reference : the perplexity that tests/reference/ngram.py computes.
    without_oov : perplexity of the events that are not out of vocabulary, None if all are known.
    """

    text: str
    kind: str
    order: int
    options: Mapping[str, object] = field(hash=False)
    perplexity: float
    rel: float
    reference: float
    source: str
    zeros: int = 0
    oov: int = 0
    without_oov: float | None = None

    @property
    def model(self) -> str:
        """What tells the model from others."""
        options = [f"{name}={value}" for name, value in sorted(self.options.items())]
        return " ".join([self.text, self.kind, str(self.order), *options])

    @property
    def drops_singletons(self) -> bool:
        return "cutoffs" in self.options


CLOSED = {"vocabulary": "closed"}
BACK_OFF = {"interpolate": False}
CUT = {"cutoffs": (0, 0, 1)}

EVENTS = {"ptb": 82_430, "ptb-unk-removed": 82_430, "wikitext-2": 245_569, "wikitext-2-nonblank": 244_102}
"""Words and line ends of the test texts."""
SEGMENTS = {"ptb": 3_761, "ptb-unk-removed": 3_761, "wikitext-2": 4_358, "wikitext-2-nonblank": 2_891}
EVENT_TYPES = {"ptb": 10_000, "ptb-unk-removed": 9_999, "wikitext-2": 33_278, "wikitext-2-nonblank": 33_278}
"""Words of the training texts, and `</s>`; an open vocabulary has `<unk>` besides."""

ROWS: tuple[Row, ...] = (
    Row("ptb", "mle", 1, {}, 639.3, 1e-5, 639.30080982481, "the table, rounded"),
    Row("ptb", "laplace", 1, CLOSED, 639.78960894306, 2e-7, 639.78960894306, "formula"),
    Row("ptb", "laplace", 1, {}, 639.79028986803, 2e-7, 639.79028986803, "formula"),
    Row("ptb", "lidstone", 1, {**CLOSED, "k": 0.01}, 639.30312058452, 2e-7, 639.30312058452, "formula"),
    Row("ptb", "lidstone", 1, {"k": 0.01}, 639.30312746105, 2e-7, 639.30312746105, "formula"),
    Row("ptb", "lidstone", 1, {**CLOSED, "k": 0.1}, 639.32666742727, 2e-7, 639.32666742727, "formula"),
    Row("ptb", "lidstone", 1, {"k": 0.1}, 639.32673612856, 2e-7, 639.32673612856, "formula"),
    Row("ptb", "witten-bell", 1, {**CLOSED, **BACK_OFF}, 639.78963624231, 2e-7, 639.78960894306, "SRILM -wbdiscount"),
    Row("ptb", "witten-bell", 1, CLOSED, 639.78960925598, 2e-7, 639.78960894306, "SRILM -wbdiscount -interpolate"),
    Row(
        "ptb",
        "absolute-discounting",
        1,
        {**CLOSED, "discount": 0.7},
        639.30079564216,
        2e-7,
        639.30080982481,
        "SRILM -cdiscount 0.7 -interpolate",
    ),
    Row("ptb", "kneser-ney", 1, {**CLOSED, **BACK_OFF}, 639.30076058652, 2e-7, 639.30080982481, "SRILM -ukndiscount"),
    Row("ptb", "kneser-ney", 1, CLOSED, 639.30079564216, 2e-7, 639.30080982481, "SRILM -ukndiscount -interpolate"),
    Row("ptb", "modified-kneser-ney", 1, {}, 639.18759103184, 2e-7, 639.18759103184, "float64"),
    Row("ptb", "modified-kneser-ney", 1, {}, 639.18758513664, 2e-7, 639.18759103184, "KenLM lmplz -o 1 --discount_fallback"),
    Row("ptb", "good-turing", 1, CLOSED, 639.30079564216, 2e-7, 639.30080982481, "SRILM default discounting"),
    Row("ptb", "mle", 2, {}, 63.863709634042, 2e-7, 63.863709634042, "NLTK 3.10 MLE", zeros=15594),
    Row("ptb", "laplace", 2, CLOSED, 824.03159358028, 2e-7, 824.03159358027, "formula"),
    Row("ptb", "laplace", 2, {}, 824.08881376765, 2e-7, 824.08881376765, "formula"),
    Row("ptb", "lidstone", 2, {**CLOSED, "k": 0.01}, 274.27096453285, 2e-7, 274.27096453285, "formula"),
    Row("ptb", "lidstone", 2, {"k": 0.01}, 274.27696673908, 2e-7, 274.27696673908, "formula"),
    Row("ptb", "lidstone", 2, {**CLOSED, "k": 0.1}, 376.59353417651, 2e-7, 376.59353417651, "formula"),
    Row("ptb", "lidstone", 2, {"k": 0.1}, 376.61052316896, 2e-7, 376.61052316896, "formula"),
    Row("ptb", "witten-bell", 2, {**CLOSED, **BACK_OFF}, 199.2642452888, 2e-7, 199.26424109049, "SRILM -wbdiscount"),
    Row("ptb", "witten-bell", 2, CLOSED, 199.83630833069, 2e-7, 199.83631260198, "SRILM -wbdiscount -interpolate"),
    Row(
        "ptb",
        "absolute-discounting",
        2,
        {**CLOSED, "discount": 0.7},
        195.39734813061,
        2e-7,
        195.39734545382,
        "SRILM -cdiscount 0.7 -interpolate",
    ),
    Row("ptb", "kneser-ney", 2, {**CLOSED, **BACK_OFF}, 188.97085960189, 2e-7, 188.97086021978, "SRILM -ukndiscount"),
    Row("ptb", "kneser-ney", 2, CLOSED, 186.79576379255, 2e-7, 186.79576086741, "SRILM -ukndiscount -interpolate"),
    Row("ptb", "modified-kneser-ney", 2, {**CLOSED, **BACK_OFF}, 192.2132293229, 2e-7, 192.21323137199, "SRILM -kndiscount"),
    Row("ptb", "modified-kneser-ney", 2, CLOSED, 185.7046937937, 2e-7, 185.70469423948, "SRILM -kndiscount -interpolate"),
    Row("ptb", "modified-kneser-ney", 2, {}, 185.70489708817, 2e-7, 185.70489708817, "float64"),
    Row("ptb", "modified-kneser-ney", 2, {}, 185.70489315115, 2e-7, 185.70489708817, "KenLM lmplz -o 2"),
    Row("ptb", "good-turing", 2, CLOSED, 194.49715589908, 2e-7, 194.49715449203, "SRILM default discounting"),
    Row("ptb", "mle", 3, {}, 14.645829681747, 2e-7, 14.645829681747, "NLTK 3.10 MLE", zeros=45615),
    Row("ptb", "laplace", 3, CLOSED, 3307.9177042377, 2e-7, 3307.9177042377, "formula"),
    Row("ptb", "laplace", 3, {}, 3308.2265808533, 2e-7, 3308.2265808533, "formula"),
    Row("ptb", "lidstone", 3, {**CLOSED, "k": 0.01}, 1039.6616386244, 2e-7, 1039.6616386244, "formula"),
    Row("ptb", "lidstone", 3, {"k": 0.01}, 1039.7323153397, 2e-7, 1039.7323153397, "formula"),
    Row("ptb", "lidstone", 3, {**CLOSED, "k": 0.1}, 1671.7081718216, 2e-7, 1671.7081718216, "formula"),
    Row("ptb", "lidstone", 3, {"k": 0.1}, 1671.8484686285, 2e-7, 1671.8484686285, "formula"),
    Row(
        "ptb",
        "witten-bell",
        3,
        {**CLOSED, **BACK_OFF, **CUT},
        166.23147894869,
        2e-7,
        166.23147516342,
        "SRILM -wbdiscount, cut-offs",
    ),
    Row(
        "ptb",
        "witten-bell",
        3,
        {**CLOSED, **BACK_OFF},
        176.86756357834,
        2e-7,
        176.86756011752,
        "SRILM -wbdiscount, no cut-offs",
    ),
    Row(
        "ptb",
        "witten-bell",
        3,
        CLOSED,
        186.31175441034,
        1e-5,
        186.31141146801,
        "SRILM -wbdiscount -interpolate, no cut-offs",
    ),
    Row(
        "ptb",
        "absolute-discounting",
        3,
        {**CLOSED, "discount": 0.7},
        173.62315948028,
        1e-5,
        173.62259693939,
        "SRILM -cdiscount 0.7 -interpolate, no cut-offs",
    ),
    Row(
        "ptb",
        "kneser-ney",
        3,
        {**CLOSED, **BACK_OFF},
        158.12055569044,
        2e-7,
        158.12055684876,
        "SRILM -ukndiscount, no cut-offs",
    ),
    Row(
        "ptb",
        "kneser-ney",
        3,
        CLOSED,
        150.60226232216,
        2e-7,
        150.60226156664,
        "SRILM -ukndiscount -interpolate, no cut-offs",
    ),
    Row("ptb", "modified-kneser-ney", 3, CUT, 153.23836187602, 2e-7, 153.23835866294, "KenLM lmplz -o 3 --prune 0 0 1"),
    Row(
        "ptb",
        "modified-kneser-ney",
        3,
        {**CLOSED, **BACK_OFF},
        161.99279808995,
        2e-7,
        161.99279868928,
        "SRILM -kndiscount, no cut-offs",
    ),
    Row(
        "ptb",
        "modified-kneser-ney",
        3,
        CLOSED,
        148.2813356598,
        2e-7,
        148.28133561231,
        "SRILM -kndiscount -interpolate, no cut-offs",
    ),
    Row("ptb", "modified-kneser-ney", 3, {}, 148.28149710815, 2e-7, 148.28149710815, "float64"),
    Row("ptb", "modified-kneser-ney", 3, {}, 148.28149950249, 2e-7, 148.28149710815, "KenLM lmplz -o 3"),
    Row("ptb", "modified-kneser-ney", 3, {}, 148.3, 0.0005, 148.28149710815, "published KN 3-gram"),
    Row(
        "ptb",
        "good-turing",
        3,
        {**CLOSED, **CUT},
        165.23084186958,
        2e-7,
        165.23084005341,
        "SRILM default discounting, cut-offs",
    ),
    Row("ptb", "good-turing", 3, {**CLOSED, **CUT}, 165.2, 0.0005, 165.23084005341, "published Good-Turing 3-gram"),
    Row("ptb", "good-turing", 3, CLOSED, 166.57690306037, 2e-7, 166.57690310655, "SRILM default discounting, no cut-offs"),
    Row(
        "ptb",
        "witten-bell",
        4,
        {**CLOSED, **BACK_OFF, **CUT},
        162.04613777897,
        2e-7,
        162.04613354647,
        "SRILM -wbdiscount, cut-offs",
    ),
    Row(
        "ptb",
        "witten-bell",
        4,
        {**CLOSED, **BACK_OFF},
        182.38624680597,
        2e-7,
        182.38624344469,
        "SRILM -wbdiscount, no cut-offs",
    ),
    Row(
        "ptb",
        "witten-bell",
        4,
        CLOSED,
        201.46364405142,
        0.0001,
        201.45073688895,
        "SRILM -wbdiscount -interpolate, no cut-offs",
    ),
    Row(
        "ptb",
        "absolute-discounting",
        4,
        {**CLOSED, "discount": 0.7},
        180.05008253883,
        0.0002,
        180.03793963634,
        "SRILM -cdiscount 0.7 -interpolate, no cut-offs",
    ),
    Row(
        "ptb",
        "kneser-ney",
        4,
        {**CLOSED, **BACK_OFF},
        160.97156126231,
        2e-7,
        160.97156398723,
        "SRILM -ukndiscount, no cut-offs",
    ),
    Row(
        "ptb",
        "kneser-ney",
        4,
        CLOSED,
        145.09810786613,
        1e-6,
        145.09805088073,
        "SRILM -ukndiscount -interpolate, no cut-offs",
    ),
    Row(
        "ptb",
        "modified-kneser-ney",
        4,
        {**CLOSED, **BACK_OFF},
        165.94780946716,
        2e-7,
        165.94781121739,
        "SRILM -kndiscount, no cut-offs",
    ),
    Row(
        "ptb",
        "modified-kneser-ney",
        4,
        CLOSED,
        142.71552552625,
        1e-6,
        142.71544536244,
        "SRILM -kndiscount -interpolate, no cut-offs",
    ),
    Row("ptb", "modified-kneser-ney", 4, {}, 142.71560081082, 2e-7, 142.71560081082, "float64"),
    Row("ptb", "modified-kneser-ney", 4, {}, 142.71560595162, 2e-7, 142.71560081082, "KenLM lmplz -o 4"),
    Row(
        "ptb",
        "good-turing",
        4,
        {**CLOSED, **CUT},
        162.65263893406,
        2e-7,
        162.65263717338,
        "SRILM default discounting, cut-offs",
    ),
    Row("ptb", "good-turing", 4, CLOSED, 169.75280941548, 2e-7, 169.75280922208, "SRILM default discounting, no cut-offs"),
    Row(
        "ptb",
        "witten-bell",
        5,
        {**CLOSED, **BACK_OFF, **CUT},
        161.15565770058,
        2e-7,
        161.15565354798,
        "SRILM -wbdiscount, cut-offs",
    ),
    Row(
        "ptb",
        "witten-bell",
        5,
        {**CLOSED, **BACK_OFF},
        184.39738129874,
        2e-7,
        184.39737818332,
        "SRILM -wbdiscount, no cut-offs",
    ),
    Row(
        "ptb",
        "witten-bell",
        5,
        CLOSED,
        209.22252501063,
        0.0002,
        209.1972964919,
        "SRILM -wbdiscount -interpolate, no cut-offs",
    ),
    Row(
        "ptb",
        "absolute-discounting",
        5,
        {**CLOSED, "discount": 0.7},
        183.64833682941,
        0.0002,
        183.63340885343,
        "SRILM -cdiscount 0.7 -interpolate, no cut-offs",
    ),
    Row(
        "ptb",
        "kneser-ney",
        5,
        {**CLOSED, **BACK_OFF},
        165.93315935861,
        2e-7,
        165.93316358255,
        "SRILM -ukndiscount, no cut-offs",
    ),
    Row(
        "ptb",
        "kneser-ney",
        5,
        CLOSED,
        143.51440448845,
        0.0001,
        143.51171825515,
        "SRILM -ukndiscount -interpolate, no cut-offs",
    ),
    Row("ptb", "modified-kneser-ney", 5, CUT, 147.40026029303, 2e-7, 147.40025926469, "KenLM lmplz -o 5 --prune 0 0 1"),
    Row(
        "ptb",
        "modified-kneser-ney",
        5,
        {**CLOSED, **BACK_OFF},
        171.48216646127,
        2e-7,
        171.48216987596,
        "SRILM -kndiscount, no cut-offs",
    ),
    Row(
        "ptb",
        "modified-kneser-ney",
        5,
        CLOSED,
        141.18662754386,
        1e-5,
        141.18605226073,
        "SRILM -kndiscount -interpolate, no cut-offs",
    ),
    Row("ptb", "modified-kneser-ney", 5, {}, 141.18620604482, 2e-7, 141.18620604482, "float64"),
    Row("ptb", "modified-kneser-ney", 5, {}, 141.18620709215, 2e-7, 141.18620604482, "KenLM lmplz -o 5"),
    Row("ptb", "modified-kneser-ney", 5, {}, 141.2, 0.0005, 141.18620604482, "published KN 5-gram"),
    Row(
        "ptb",
        "good-turing",
        5,
        {**CLOSED, **CUT},
        162.25432302371,
        2e-7,
        162.25432121556,
        "SRILM default discounting, cut-offs",
    ),
    Row("ptb", "good-turing", 5, {**CLOSED, **CUT}, 162.3, 0.0005, 162.25432121556, "published Good-Turing 5-gram"),
    Row("ptb", "good-turing", 5, CLOSED, 173.66803675444, 2e-7, 173.66803586782, "SRILM default discounting, no cut-offs"),
    Row("ptb", "modified-kneser-ney", 6, {}, 140.83687433594, 2e-7, 140.83687433594, "float64"),
    Row("ptb", "modified-kneser-ney", 6, {}, 140.83687649281, 2e-7, 140.83687433594, "KenLM lmplz -o 6"),
    Row(
        "ptb-unk-removed",
        "modified-kneser-ney",
        3,
        {},
        278.1419221872,
        0.0002,
        278.18083736387,
        "KenLM lmplz -o 3 --skip_symbols",
        oov=4794,
        without_oov=169.17287088859,
    ),
    Row(
        "ptb-unk-removed",
        "modified-kneser-ney",
        5,
        {},
        265.48538599605,
        0.0002,
        265.5225308934,
        "KenLM lmplz -o 5 --skip_symbols",
        oov=4794,
        without_oov=161.26359900466,
    ),
    Row("wikitext-2", "laplace", 1, CLOSED, 914.3837386587, 2e-7, 914.3837386587, "formula"),
    Row("wikitext-2", "laplace", 1, {}, 914.38416958436, 2e-7, 914.38416958436, "formula"),
    Row("wikitext-2", "lidstone", 1, {**CLOSED, "k": 0.01}, 911.72516584475, 2e-7, 911.72516584475, "formula"),
    Row("wikitext-2", "lidstone", 1, {"k": 0.01}, 911.72517020924, 2e-7, 911.72517020924, "formula"),
    Row("wikitext-2", "lidstone", 1, {**CLOSED, "k": 0.1}, 911.91243308606, 2e-7, 911.91243308606, "formula"),
    Row("wikitext-2", "lidstone", 1, {"k": 0.1}, 911.91247667744, 2e-7, 911.91247667744, "formula"),
    Row("wikitext-2", "laplace", 2, CLOSED, 1877.9111624574, 2e-7, 1877.9111624574, "formula"),
    Row("wikitext-2", "laplace", 2, {}, 1877.9526646713, 2e-7, 1877.9526646713, "formula"),
    Row("wikitext-2", "lidstone", 2, {**CLOSED, "k": 0.01}, 498.25924555136, 2e-7, 498.25924555136, "formula"),
    Row("wikitext-2", "lidstone", 2, {"k": 0.01}, 498.26395460851, 2e-7, 498.26395460851, "formula"),
    Row("wikitext-2", "lidstone", 2, {**CLOSED, "k": 0.1}, 795.70349319543, 2e-7, 795.70349319543, "formula"),
    Row("wikitext-2", "lidstone", 2, {"k": 0.1}, 795.71570977578, 2e-7, 795.71570977578, "formula"),
    Row("wikitext-2", "modified-kneser-ney", 2, {}, 263.95979821807, 1e-6, 263.95975077737, "KenLM lmplz -o 2"),
    Row("wikitext-2", "laplace", 3, CLOSED, 11423.055882079, 2e-7, 11423.055882079, "formula"),
    Row("wikitext-2", "laplace", 3, {}, 11423.388727286, 2e-7, 11423.388727286, "formula"),
    Row("wikitext-2", "lidstone", 3, {**CLOSED, "k": 0.01}, 3229.9726354361, 2e-7, 3229.9726354361, "formula"),
    Row("wikitext-2", "lidstone", 3, {"k": 0.01}, 3230.046825132, 2e-7, 3230.046825132, "formula"),
    Row("wikitext-2", "lidstone", 3, {**CLOSED, "k": 0.1}, 5609.7401431169, 2e-7, 5609.7401431169, "formula"),
    Row("wikitext-2", "lidstone", 3, {"k": 0.1}, 5609.8904406581, 2e-7, 5609.8904406581, "formula"),
    Row("wikitext-2", "modified-kneser-ney", 3, {}, 226.05103446674, 1e-6, 226.05099733609, "KenLM lmplz -o 3"),
    Row("wikitext-2", "modified-kneser-ney", 5, {}, 220.13856701343, 1e-6, 220.13852253654, "KenLM lmplz -o 5"),
    Row(
        "wikitext-2-nonblank",
        "modified-kneser-ney",
        2,
        {},
        269.8572981655,
        1e-6,
        269.85725385445,
        "KenLM lmplz -o 2 --discount_fallback",
    ),
    Row(
        "wikitext-2-nonblank",
        "witten-bell",
        3,
        {**CLOSED, **BACK_OFF, **CUT},
        257.24570025204,
        2e-7,
        257.24570803675,
        "SRILM -wbdiscount, cut-offs",
    ),
    Row(
        "wikitext-2-nonblank",
        "witten-bell",
        3,
        {**CLOSED, **BACK_OFF},
        281.33808479696,
        2e-7,
        281.33809388399,
        "SRILM -wbdiscount, no cut-offs",
    ),
    Row(
        "wikitext-2-nonblank",
        "kneser-ney",
        3,
        CLOSED,
        236.70741598621,
        2e-7,
        236.7074180365,
        "SRILM -ukndiscount -interpolate, no cut-offs",
    ),
    Row(
        "wikitext-2-nonblank",
        "modified-kneser-ney",
        3,
        CLOSED,
        230.88610173502,
        2e-7,
        230.88610381526,
        "SRILM -kndiscount -interpolate, no cut-offs",
    ),
    Row(
        "wikitext-2-nonblank",
        "modified-kneser-ney",
        3,
        {},
        230.88634388997,
        1e-6,
        230.88630677665,
        "KenLM lmplz -o 3 --discount_fallback",
    ),
    Row(
        "wikitext-2-nonblank",
        "good-turing",
        3,
        {**CLOSED, **CUT},
        253.3227359079,
        2e-7,
        253.32273105589,
        "SRILM default discounting, cut-offs",
    ),
    Row(
        "wikitext-2-nonblank",
        "good-turing",
        3,
        CLOSED,
        259.4304264423,
        2e-7,
        259.43042411611,
        "SRILM default discounting, no cut-offs",
    ),
    Row(
        "wikitext-2-nonblank",
        "witten-bell",
        5,
        {**CLOSED, **BACK_OFF, **CUT},
        254.03413310911,
        2e-7,
        254.03414103525,
        "SRILM -wbdiscount, cut-offs",
    ),
    Row(
        "wikitext-2-nonblank",
        "witten-bell",
        5,
        {**CLOSED, **BACK_OFF},
        307.9945473997,
        2e-7,
        307.99455974503,
        "SRILM -wbdiscount, no cut-offs",
    ),
    Row(
        "wikitext-2-nonblank",
        "kneser-ney",
        5,
        CLOSED,
        230.7568853815,
        2e-7,
        230.75688697902,
        "SRILM -ukndiscount -interpolate, no cut-offs",
    ),
    Row(
        "wikitext-2-nonblank",
        "modified-kneser-ney",
        5,
        CLOSED,
        224.81135152339,
        2e-7,
        224.81135329355,
        "SRILM -kndiscount -interpolate, no cut-offs",
    ),
    Row(
        "wikitext-2-nonblank",
        "modified-kneser-ney",
        5,
        {},
        224.81159125434,
        1e-6,
        224.81155094442,
        "KenLM lmplz -o 5 --discount_fallback",
    ),
    Row(
        "wikitext-2-nonblank",
        "good-turing",
        5,
        {**CLOSED, **CUT},
        252.46202926154,
        2e-7,
        252.46202508875,
        "SRILM default discounting, cut-offs",
    ),
    Row(
        "wikitext-2-nonblank",
        "good-turing",
        5,
        CLOSED,
        273.87553800646,
        2e-7,
        273.8755347671,
        "SRILM default discounting, no cut-offs",
    ),
)
"""Sorted by model, so that rows of the same model follow each other."""

NGRAM_TYPES: dict[tuple[str, bool], tuple[int, ...]] = {
    ("ptb", False): (264990, 586558, 717733, 737952, 720648),
    ("ptb", True): (264990, 81305, 43110, 22983),
    ("ptb-unk-removed", False): (271372, 578317, 685219, 696182),
    ("wikitext-2", False): (619592, 1398959, 1794725, 1914265),
    ("wikitext-2-nonblank", False): (619591, 1398959, 1794725, 1914265),
    ("wikitext-2-nonblank", True): (619591, 201431, 108311, 52179),
}
"""(text, singletons of order 3 and more dropped) -> kept n-gram types of order 2, 3, ..."""

MATCHED: dict[tuple[str, bool, int], tuple[int, ...]] = {
    ("ptb", False, 1): (82430,),
    ("ptb", False, 2): (15594, 66836),
    ("ptb", False, 3): (15594, 33646, 33190),
    ("ptb", True, 3): (15594, 41274, 25562),
    ("ptb", True, 4): (15594, 41274, 16272, 9290),
    ("ptb", False, 4): (15594, 33646, 19655, 13535),
    ("ptb", True, 5): (15594, 41274, 16272, 5257, 4033),
    ("ptb", False, 5): (15594, 33646, 19655, 7405, 6130),
    ("ptb", False, 6): (15594, 33646, 19655, 7405, 2756, 3374),
    ("ptb-unk-removed", False, 3): (24129, 31432, 26869),
    ("ptb-unk-removed", False, 5): (24129, 31432, 15675, 5787, 5407),
    ("wikitext-2", False, 1): (245569,),
    ("wikitext-2", False, 2): (50340, 195229),
    ("wikitext-2", False, 3): (50340, 97897, 97332),
    ("wikitext-2", False, 5): (50340, 97897, 62349, 23573, 11410),
    ("wikitext-2-nonblank", False, 2): (50340, 193762),
    ("wikitext-2-nonblank", True, 3): (50340, 118000, 75762),
    ("wikitext-2-nonblank", False, 3): (50340, 96430, 97332),
    ("wikitext-2-nonblank", True, 5): (50340, 118000, 53005, 16341, 6416),
    ("wikitext-2-nonblank", False, 5): (50340, 96430, 62349, 23573, 11410),
}
"""(text, singletons dropped, order) -> test events by the length of the longest kept n-gram that ends there."""

DISCOUNTS: dict[int, tuple[tuple[float, float, float], ...]] = {
    1: ((0.5, 1.0, 1.5),),
    2: (
        (0.2565597667638483, 0.8288801234779626, 1.2622704457335219),
        (0.7077248779079559, 1.0838431842243461, 1.4431582707379895),
    ),
    3: (
        (0.2565597667638483, 0.8288801234779626, 1.2622704457335219),
        (0.7278021675701438, 1.0987635953679584, 1.471304207004689),
        (0.8469597635734869, 1.2251231027401084, 1.3857814490962035),
    ),
    4: (
        (0.2565597667638483, 0.8288801234779626, 1.2622704457335219),
        (0.7278021675701438, 1.0987635953679584, 1.471304207004689),
        (0.8688785755351325, 1.2546222377024372, 1.4482214809198326),
        (0.9250268407694491, 1.3399045818584738, 1.3431166167488016),
    ),
    5: (
        (0.2565597667638483, 0.8288801234779626, 1.2622704457335219),
        (0.7278021675701438, 1.0987635953679584, 1.471304207004689),
        (0.8688785755351325, 1.2546222377024372, 1.4482214809198326),
        (0.9428283767675811, 1.3831350807473144, 1.4317310168618451),
        (0.9596706106588457, 1.387900965763625, 1.2417055686989462),
    ),
    6: (
        (0.2565597667638483, 0.8288801234779626, 1.2622704457335219),
        (0.7278021675701438, 1.0987635953679584, 1.471304207004689),
        (0.8688785755351325, 1.2546222377024372, 1.4482214809198326),
        (0.9428283767675811, 1.3831350807473144, 1.4317310168618451),
        (0.9741715176854927, 1.4344207209939628, 1.4279104071777955),
        (0.9739102496038964, 1.4073148724133582, 1.221687590092729),
    ),
}
"""Order -> D1, D2, D3+ of modified Kneser-Ney for each order of the model, on the treebank."""
