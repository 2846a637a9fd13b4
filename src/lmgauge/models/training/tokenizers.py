"""Tokenizers to train with, subwords learned from the text among them, and the files in which a network keeps its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

from lmgauge.base.errors import InputError, UsageError, needing
from lmgauge.base.json_text import from_json
from lmgauge.models.training.checkpoints import CheckpointFolder
from lmgauge.text.documents import Corpus
from lmgauge.text.library_tokenizers import HuggingFaceTokenizer
from lmgauge.text.normalizers import NormalizingTokenizer
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.tokens import BYTES_BY_NAME, TOKENIZER_FILE, Tokenizer
from lmgauge.text.vocabulary import SPECIAL_TOKENS, Vocabulary

SUBWORDS = ("bpe", "unigram")
_FEWEST = 256 + len(SPECIAL_TOKENS)  # every byte has a piece, so that no text is unknown
_MOST = 10_000_000
_WHITE_SPACE = r"[ \t\n\x0B\x0C\r]+"  # ASCII's alone: the library's own splitter also splits at no-break spaces


def make_training_tokenizer(
    spec: str | Tokenizer, texts: Corpus, folder: CheckpointFolder, progress: Callable[[str], None]
) -> Tokenizer:
    """Return the tokenizer of that name."""
    # `bpe:N` and `unigram:N` are trained on the text.
    # A run resumed from a checkpoint has the one that was trained before.
    # A tokenizer.json from elsewhere keeps its tokens; their ids move behind those of `<unk>`, `<s>` and `</s>`.
    kind, _, size = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if kind not in SUBWORDS:
        return with_our_ids(_exportable(make_tokenizer(spec)))
    name = f"{kind}-{size}-{TOKENIZER_FILE}"
    wanted = _size(kind, size)
    # Without a checkpoint it is that of a run which was killed early, perhaps on another text.
    content = folder.kept(name) if folder.newest() is not None else None
    if content is None:
        progress(f"training a tokenizer with {size} subwords")
        content = train_subwords(kind, wanted, texts)
        folder.keep(name, content)
    return HuggingFaceTokenizer(content, name)


def _exportable(tokenizer: Tokenizer) -> Tokenizer:
    # Tokenizer, once it is known to have the form in which a network's folder keeps it.
    if isinstance(tokenizer, NormalizingTokenizer) or (
        tokenizer.unit == "subword" and TOKENIZER_FILE not in tokenizer.files()
    ):
        raise UsageError(
            f"tokenizer {tokenizer.name}: the folder of a network keeps its tokenizer as a {TOKENIZER_FILE}, which this one "
            "is not; take bpe:N or unigram:N, or train an n-gram model"
        )
    return tokenizer


def _size(kind: str, text: str) -> int:
    whole = text.isascii() and text.isdigit() and len(text) <= len(str(_MOST))
    if not whole or not _FEWEST <= int(text) <= _MOST:
        raise UsageError(
            f"tokenizer {kind}:{text}: give the number of subwords, {_FEWEST} or more (each byte and three special tokens "
            f"have one) and at most {_MOST}, such as {kind}:8000"
        )
    return int(text)


def train_subwords(kind: str, size: int, texts: Corpus) -> bytes:
    """Learn subwords of bytes from a text."""
    # texts: the text, read once.
    with needing("tokenizers", extra="tokenizers"):
        from tokenizers import Tokenizer as Backend
        from tokenizers import decoders, models, pre_tokenizers, trainers
    options: dict[str, Any] = {
        "vocab_size": size,
        "special_tokens": list(SPECIAL_TOKENS),
        "initial_alphabet": pre_tokenizers.ByteLevel.alphabet(),
        "show_progress": False,
    }
    backend = Backend(models.BPE() if kind == "bpe" else models.Unigram())
    trainer: Any = trainers.BpeTrainer(**options)
    if kind == "unigram":
        trainer = trainers.UnigramTrainer(unk_token=SPECIAL_TOKENS[0], **options)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    lines = (segments.text(i).decode() for segments in texts for i in range(len(segments)))
    first = next(lines, None)
    if first is None:
        raise InputError("the training text is empty: there is nothing to learn subwords from")
    backend.train_from_iterator(chain([first], lines), trainer)
    content: str = backend.to_str()
    return content.encode()


def fixed_vocabulary(tokenizer: Tokenizer) -> Vocabulary | None:
    """Return the vocabulary that a tokenizer brings: all its subwords, or all bytes; None where the text decides."""
    if tokenizer.unit == "byte":
        return Vocabulary.from_tokens([*BYTES_BY_NAME])
    return Vocabulary.from_tokens(tokenizer.strings[3:]) if isinstance(tokenizer, HuggingFaceTokenizer) else None


def with_our_ids(tokenizer: Tokenizer) -> Tokenizer:
    """Return the same tokenizer with `<unk>`, `<s>` and `</s>` as its ids 0, 1 and 2, and its other tokens after them."""
    if not isinstance(tokenizer, HuggingFaceTokenizer):
        return tokenizer
    if "" in tokenizer.strings:
        raise InputError(f"tokenizer {tokenizer.name}: its ids cannot be used: they are not 0, 1, 2, ...")
    if tuple(tokenizer.strings[:3]) == SPECIAL_TOKENS:
        return tokenizer
    content = from_json(tokenizer.files()[TOKENIZER_FILE])
    ordered = [*SPECIAL_TOKENS, *(token for token in tokenizer.strings if token not in SPECIAL_TOKENS)]
    _renumber(content, {token: number for number, token in enumerate(ordered)})
    return HuggingFaceTokenizer(json.dumps(content, ensure_ascii=False).encode(), tokenizer.name)


def _renumber(content: dict[str, Any], ids: dict[str, int]) -> None:
    # Give the tokens of a tokenizer.json other ids; what would add special tokens to a text is left out.
    model, added = content["model"], content.get("added_tokens") or []
    if isinstance(model["vocab"], dict):
        model["vocab"] = {token: number for token, number in ids.items() if token in model["vocab"] or number < 3}
    else:
        # A piece that no text is cut into, as any other way to cut it costs less.
        scores = dict.fromkeys(SPECIAL_TOKENS, -1000000.0) | {str(token): score for token, score in model["vocab"]}
        pieces = [token for token in ids if token in scores]
        unknown = None if model.get("unk_id") is None else model["vocab"][model["unk_id"]][0]
        model["vocab"] = [[token, scores[token]] for token in pieces]
        model["unk_id"] = None if unknown is None else ids[unknown]
    for token in added:
        token["id"] = ids[token["content"]]
    there = {token["content"] for token in added}
    content["added_tokens"] = sorted(
        [*added, *(_special_token(ids[token], token) for token in SPECIAL_TOKENS if token not in there)],
        key=lambda token: int(token["id"]),
    )
    content["post_processor"] = None


def _special_token(number: int, token: str) -> dict[str, Any]:
    # How a tokenizer.json names a token that no text becomes.
    options = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": token} | options | {"special": True}


def write_tokenizer(tokenizer: Tokenizer, vocabulary: Vocabulary, folder: Path) -> None:
    """Write what `transformers.AutoTokenizer` reads, giving the same ids: tokenizer.json and tokenizer_config.json."""
    # `<unk>`, `<s>` and `</s>` spelled out in a text are text: words or pieces like any other, as lmgauge reads them.
    content = tokenizer.files().get(TOKENIZER_FILE) or _tokenizer_json(tokenizer.unit, vocabulary)
    (folder / TOKENIZER_FILE).write_bytes(content)
    unk, bos, eos = SPECIAL_TOKENS
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": unk,
        "bos_token": bos,
        "eos_token": eos,
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
        "model_max_length": int(1e30),
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8", newline="\n")


def _tokenizer_json(unit: str, vocabulary: Vocabulary) -> bytes:
    # A tokenizer.json with the ids of a vocabulary: words, characters or bytes.
    with needing("tokenizers", extra="tokenizers"):
        from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers
        from tokenizers import Tokenizer as Backend
    ids = {token: number for number, token in enumerate(vocabulary.tokens)}
    if unit == "byte":  # no character has a piece of its own, so that each falls back to its bytes
        backend = Backend(models.BPE(ids, [], unk_token=SPECIAL_TOKENS[0], byte_fallback=True))
        backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    else:
        backend = Backend(models.WordLevel(ids, unk_token=SPECIAL_TOKENS[0]))
        pattern, behavior = (_WHITE_SPACE, "removed") if unit == "word" else (r"[\s\S]", "isolated")
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior)
    if unit == "character":  # between words the library puts spaces where there is no decoder
        backend.decoder = decoders.Fuse()
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    return json.dumps(from_json(backend.to_str()), ensure_ascii=False, indent=1).encode()
