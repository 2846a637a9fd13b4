"""A tokenizer whose text goes through a normalizer first; its spans are those of the text as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lmgauge.choices import NORMALIZERS, NormalizerName
from lmgauge.errors import UsageError
from lmgauge.text.normalizers import normalize
from lmgauge.text.segments import Segments
from lmgauge.text.tokens import Tokenizer, TokenizerBase, Tokens, TokenUnit, token_bytes


def check_normalizer(name: str) -> None:
    """Refuse what is not the name of a normalizer."""
    if name not in NORMALIZERS:
        raise UsageError(f"normalizer {name!r}: choose {', '.join(NORMALIZERS)}")


class NormalizingTokenizer(TokenizerBase):
    """Any tokenizer, over text that a normalizer has changed."""

    # A span of the source is what became a token's span of the normalized text; see `NormalizedSegments.source_ends`. A
    # segment that the normalizer changes is not restored.

    kernel: int | None = None  # the compiled encoders see bytes of the source

    def __init__(self, inner: Tokenizer, normalizer: NormalizerName) -> None:
        check_normalizer(normalizer)
        self.inner: Tokenizer = inner.inner if isinstance(inner, NormalizingTokenizer) else inner
        self.normalizer = normalizer
        self.name = f"{normalizer}+{self.inner.name}"
        self.unit: TokenUnit = self.inner.unit

    def tokenize(self, segments: Segments) -> Tokens:
        """Return the tokens of `segments`, with byte spans of the text as it was."""
        normalized = normalize(segments)
        tokens = self.inner.tokenize(normalized.segments)
        span_ends = normalized.source_ends(tokens.span_ends, tokens.counts)
        return replace(tokens, span_ends=span_ends, lossy=tokens.lossy | normalized.changed)

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the normalized text that tokens stand for."""
        return self.inner.detokenize(tokens)

    def token_bytes(self, tokens: Sequence[str]) -> list[bytes]:
        return token_bytes(self.inner, tokens)

    def settings(self) -> dict[str, object]:
        return {"name": self.name, "normalizer": self.normalizer, "tokenizer": self.inner.settings()}

    def files(self) -> dict[str, bytes]:
        return self.inner.files()
