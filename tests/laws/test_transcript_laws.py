"""An error rate does not depend on the form in which a transcript is written, and alternatives are all that they say."""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lmgauge.tasks import CER, WER, score_files, wer
from lmgauge.tasks.nbest.reading import references_of
from lmgauge.tasks.settings import NbestReading

WORDS = st.text(st.sampled_from("ab/-'."), min_size=1, max_size=5)  # without marks of trn
TEXTS = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=3))
def test_every_form_of_a_transcript_gives_the_same_errors(pairs: list[tuple[str, str]]) -> None:
    ids = [f"u{i}" for i in range(len(pairs))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for k, side in enumerate(("ref", "hyp")):
            rows = [(own, pair[k]) for own, pair in zip(ids, pairs, strict=True)]
            (folder / f"{side}.txt").write_text("".join(f"{own} {text}\n" for own, text in rows[:: 1 - 2 * k]))
            (folder / f"{side}.trn").write_text("".join(f"{text} ({own})\n" for own, text in rows))
        wanted = wer(hypotheses=[two for _, two in pairs], references=[one for one, _ in pairs])
        for first, second in product((".txt", ".trn"), repeat=2):
            files = {"references": folder / f"ref{first}", "hypotheses": [folder / f"hyp{second}"]}
            found = score_files(WER(), **files, significance="none")[0].score
            assert (found.errors, found.reference_length) == (wanted.errors, wanted.reference_length)
            assert score_files(CER(), **files, significance="none")[0].score.errors >= found.errors
        read = [references_of(ids, folder / f"ref{form}", NbestReading()) for form in (".txt", ".trn")]
        assert read[0] == read[1] == ([one for one, _ in pairs], [])


ALTERNATIVES = st.lists(st.lists(st.sampled_from(["a", "b", "c", "b c", ""]), min_size=1, max_size=3), max_size=3)


@given(st.lists(st.tuples(ALTERNATIVES, ALTERNATIVES, ALTERNATIVES), min_size=1, max_size=2))
def test_alternatives_on_any_side_give_the_fewest_errors_of_all_readings_written_out(
    segments: list[tuple[list[list[str]], ...]],
) -> None:
    fewest = 0
    with tempfile.TemporaryDirectory() as name:
        files = [Path(name) / f"{side}.trn" for side in ("one", "two", "hyp")]
        for k, file in enumerate(files):
            texts = [" ".join(f"{{ {' / '.join(word or '@' for word in part)} }}" for part in own[k]) for own in segments]
            file.write_text("".join(f"x {text} (u{i})\n" for i, text in enumerate(texts)))
        found = score_files(WER(), references=files[:2], hypotheses=[files[2]], significance="none")[0].score
    for segment in segments:
        first, second, heard = ([" ".join(("x", *words)) for words in product(*own)] for own in segment)
        pairs = product({*first, *second}, {*heard})
        fewest += min(wer(hypotheses=[output], references=[said]).errors for said, output in pairs)
    assert found.errors == fewest
