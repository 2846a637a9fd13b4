"""N-best lists as files of each format, all saying the same."""

from __future__ import annotations

from pathlib import Path

UTTERANCES = {
    "u1": [("a dock barks", -3.0), ("a dog barks", -3.5)],
    "u2": [("the dog sleeps", -2.0), ("the dock sleeps", -4.25), ("dog sleeps", -5.0)],
}


def write_jsonl(path: Path) -> Path:
    rows = [f'{{"id": "{u}", "text": "{text}", "score": {score}}}' for u, own in UTTERANCES.items() for text, score in own]
    path.write_text("\n".join(rows) + "\n")
    return path


def write_kaldi(folder: Path) -> Path:
    folder.mkdir()
    rows = [(f"{u}-{i}", text, score) for u, own in UTTERANCES.items() for i, (text, score) in enumerate(own, 1)]
    (folder / "words_text").write_text("".join(f"{key} {text}\n" for key, text, _ in sorted(rows, reverse=True)))
    (folder / "acwt").write_text("".join(f"{key}\t{-score}\n" for key, _, score in rows))
    (folder / "ali").write_text("u1-1 3 3 4\n")
    return folder


def write_espnet(folder: Path) -> Path:
    for u, own in UTTERANCES.items():
        for i, (text, score) in enumerate(own, 1):
            rank = folder / f"{i}best_recog"
            rank.mkdir(parents=True, exist_ok=True)
            with (rank / "text").open("a") as texts, (rank / "score").open("a") as scores:
                texts.write(f"{u} {text}\n")
                scores.write(f"{u} tensor({score}{', device=cuda:0' * (i == 1)})\n")
    return folder
