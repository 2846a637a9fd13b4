"""Samples of lm-evaluation-harness (`--log_samples`): a JSON line for each document, with whole log-probabilities.

A rolling document (`loglikelihood_rolling`) has one, of the document; a question has one for each answer, after a text that
is given. Of older versions `arguments` is a list, of newer ones an object, and numbers are strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lmgauge.base.errors import InputError
from lmgauge.base.option_numbers import shown
from lmgauge.scores.imports.log import Log, LogFile, LoggedSegment, NoLogprobsError, ProgramOutput


def recognizes(head: bytes) -> bool:
    """Return True if a file begins as the harness' samples do."""
    # recognizes(b'{"doc_id": 0, "arguments": [["a"]], "resps": [["-1.5"]]}') -> True
    return re.match(rb'\s*\[?\s*\{\s*"doc_id"\s*:', head) is not None and re.search(rb'[^\\]"resps"\s*:', head) is not None


def parse(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield the documents, or the answers of each, of the harness' samples."""
    log.states("nats", "lm-evaluation-harness")
    seen: set[str] = set()
    for where, record in file.values():
        doc_id = str(_member(record, "doc_id", (int, str), where))
        if doc_id in seen:
            log.remark("{:,} records repeat a document, as further filters do; the first of each counts")
            continue
        seen.add(doc_id)
        requests = _member(record, "arguments", (list, dict), where)
        asked = [_strings(request, where) for request in (requests.values() if isinstance(requests, dict) else requests)]
        replies = _member(record, "resps", list, where)
        if len(asked) != len(replies) or not asked:
            raise InputError(f"{where}: has {len(replies)} replies (resps) to {len(asked)} requests (arguments)")
        for texts, reply in zip(asked, replies, strict=True):
            rolling = len(texts) == 1
            if rolling:
                log.remark("{:,} documents are one row each, as the harness logs no tokens: the perplexity is by document")
            else:
                log.remark("{:,} answers are one row each; the text before an answer was given, and is not scored")
            nats = log.nats(_logprob(reply, where), where)
            given, document = (None, None) if rolling else (texts[0], doc_id)
            yield LoggedSegment(where, [texts[-1]], [nats], text=texts[-1], given=given, document=document)


def _strings(request: Any, where: str) -> list[str]:
    # Texts of a request: of a rolling one its document, else what is given and what is scored.
    texts = list(request.values()) if isinstance(request, dict) else request
    if isinstance(texts, str):
        texts = [texts]
    if not isinstance(texts, list) or not 1 <= len(texts) <= 2 or not all(isinstance(text, str) for text in texts):
        raise NoLogprobsError(
            f"{where}: a request is {shown(texts)}, not a text to score: only loglikelihood and loglikelihood_rolling tasks "
            "have log-probabilities"
        )
    return texts


def _logprob(reply: Any, where: str) -> Any:
    # Log-probability of a reply: `["-1.5"]`, `[["-1.5", "False"]]`, and both with numbers.
    value = reply
    for _ in range(3):
        if not isinstance(value, list):
            return value
        if not value:
            break
        value = value[0]
    raise InputError(f"{where}: a reply (resps) is {shown(reply)}, not a log-probability")


def _member(value: Any, name: str, kind: type | tuple[type, ...], where: str) -> Any:
    member = value.get(name) if isinstance(value, dict) else None
    if not isinstance(member, kind):
        what = f"{name} is {shown(member)}" if isinstance(value, dict) and name in value else f"has no {name}"
        raise InputError(f"{where}: {what}; was it written by the program that it was read as?")
    return member


OUTPUT = ProgramOutput(recognizes, parse, unit="document", has_text=True)
