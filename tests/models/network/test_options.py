"""What may be chosen about scoring, and what it comes to for a model."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.base.errors import UsageError
from lmgauge.models.network.options import (
    STORED,
    ScoringOptions,
    parse_context,
    parse_lengths,
    resolve_policy,
)
from lmgauge.models.network.tokens import NO_ID, TokenMap
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.vocabulary import Vocabulary

MODEL = dict[str, Any](positions=64, running=False, has_bos=True, has_eos=True, end="newline", puts_first="unscored")
AROUND = {"bos": (7,), "eos": (8,), "unscored": (), "other": (9,)}  # what a tokenizer puts before a text


def resolve(model: dict[str, Any] | None = None, **options: Any) -> ContextPolicy:
    said = MODEL | (model or {})
    tokens = TokenMap(
        make_tokenizer("byte"),
        Vocabulary.from_tokens(()),
        np.array([NO_ID, 7 if said["has_bos"] else NO_ID, 8 if said["has_eos"] else NO_ID]),
        trained_here=said["end"] == "eos",
        running=said["running"],
        around=(AROUND[said["puts_first"]], ()),
    )
    return resolve_policy(ScoringOptions(**options), tokens, said["positions"])


@pytest.mark.parametrize(
    ("options", "model", "expected"),
    [
        ({}, {}, "sentence,64/64,end=newline"),
        ({}, {"positions": None, "end": "eos"}, "sentence"),
        ({}, {"positions": None, "end": "eos", "running": True}, "stream"),
        ({"stream": False}, {"positions": None, "end": "eos", "running": True}, "sentence"),
        ({"stream": True, "context": 32}, {}, "stream,32/32,end=newline"),
        ({"context": 32, "stride": 8}, {"end": "eos"}, "sentence,32/8"),
        ({"stride": 8}, {"end": "eos"}, "sentence,64/8"),
        ({"first_token": "unscored", "end": "none"}, {}, "sentence,64/64,first=unscored,end=none"),
        ({}, {"has_bos": False}, "sentence,64/64,first=uniform,end=newline"),
        ({"first_token": "eos"}, {"has_bos": False}, "sentence,64/64,first=eos,end=newline"),
        ({"end": "eos"}, {}, "sentence,64/64"),
        ({"context": 1}, {}, "sentence,1/1,end=newline"),
        ({"context": 512, "stride": 512}, {"positions": None}, "sentence,512/512,end=newline"),
    ],
)
def test_signatures_tell_the_policy(options: dict[str, Any], model: dict[str, Any], expected: str) -> None:
    assert str(resolve(model, **options)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1024", (1024, None)),
        ("stream", (None, True)),
        ("sentence", (None, False)),
        ("stream,1024", (1024, True)),
        ("1024,stream", (1024, True)),
        ("sentence,7", (7, False)),
        ("007", (7, None)),
        ("0", (0, None)),
    ],
)
def test_context_as_it_is_given(text: str, expected: tuple[int | None, bool | None]) -> None:
    assert parse_context(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", ",", "stream,", "many", "-1", "1.5", "1,2", "stream,sentence", "stream,stream", " 1024", "1_000", "١٢", "Stream"],
)
def test_contexts_that_say_nothing(text: str) -> None:
    with pytest.raises(UsageError, match="give a number of tokens, sentence or stream, or both, as in stream,1024"):
        parse_context(text)


def test_a_context_of_more_digits_than_python_reads() -> None:
    with pytest.raises(UsageError):
        parse_context("9" * 5000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": 0}, "context must be a whole number, 1 or more; got 0"),
        ({"stride": -3}, "stride must be a whole number, 1 or more; got -3"),
        ({"batch_tokens": 0}, "batch-tokens must be a whole number, 1 or more; got 0"),
        ({"first_token": "<s>"}, "unknown first-token '<s>': choose one of bos, eos, uniform, unscored"),
        ({"end": "dot"}, "unknown end 'dot': choose one of eos, newline, none"),
        ({"dtype": "float16"}, "unknown dtype 'float16': choose one of auto, float32, bfloat16"),
        ({"dtype": None}, "unknown dtype None: choose one of auto, float32, bfloat16"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        ScoringOptions(**options)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("options", "model", "message"),
    [
        ({"context": 65}, {}, "context 65: this model has positions for 64 tokens"),
        ({"context": 8, "stride": 9}, {}, "stride 9: longer than the context (8)"),
        ({"stride": 65}, {}, "stride 65: longer than the context (64)"),
        ({"stride": 8}, {"positions": None}, "stride 8: means nothing without --context"),
        ({"first_token": "bos"}, {"has_bos": False}, "first-token bos: this model has no BOS token"),
        ({"first_token": "eos"}, {"has_eos": False}, "first-token eos: this model has no EOS token"),
        ({"end": "eos"}, {"has_eos": False}, "end eos: this model has no EOS token"),
        ({}, {"has_eos": False, "end": "eos"}, "end eos: this model has no EOS token"),
    ],
)
def test_options_that_a_model_cannot_follow(options: dict[str, Any], model: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(model, **options)
    assert message in str(caught.value)


def test_what_is_stored_fills_what_was_not_chosen() -> None:
    stored = {"context": 32, "stride": 16, "stream": False, "first_token": "unscored", "end": "none"}
    assert ScoringOptions().over(stored) == ScoringOptions(**stored)  # type: ignore[arg-type]
    chosen = ScoringOptions(context=64, stream=True, dtype="bfloat16", batch_tokens=7)
    found = chosen.over(stored)
    assert (found.context, found.stride, found.stream, found.first_token, found.end) == (64, 16, True, "unscored", "none")
    assert (found.dtype, found.batch_tokens) == ("bfloat16", 7)
    assert chosen.over({}) == chosen


def test_what_is_stored_comes_back() -> None:
    options = ScoringOptions(context=32, stream=False, end="none", device="cpu", batch_tokens=5, trust_remote_code=True)
    assert options.stored() == {"context": 32, "stream": False, "end": "none"}
    assert ScoringOptions().stored() == {}
    assert ScoringOptions().over(options.stored()).stored() == options.stored()
    assert {field.name for field in fields(ScoringOptions)} >= set(STORED)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ("512,1k,2k", (512, 1024, 2048)),
        ("2K,1", (1, 2048)),
        ([64, "1k", 16], (16, 64, 1024)),
        (("007", 8), (7, 8)),
    ],
)
def test_lengths_as_they_are_given(lengths: Any, expected: tuple[int, ...]) -> None:
    assert parse_lengths(lengths) == expected


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ("1k", "contexts: name two lengths or more to compare, as in 512,1k,2k"),
        ([], "contexts: name two lengths or more"),
        ("1k,1024", "contexts: 1,024 is named twice"),
        ("512,", "contexts: '' is not a number of tokens; write 512 or 1k (1,024)"),
        ("512,1.5k", "contexts: '1.5k' is not a number of tokens"),
        ("512,0", "contexts: '0' is not a number of tokens"),
        ("512,\u0662k", "is not a number of tokens"),
        ("512, 1k", "contexts: ' 1k' is not a number of tokens"),
        ([512, True], "contexts: True is not a number of tokens"),
        ([512, 1.5], "contexts: 1.5 is not a number of tokens"),
        ([512, -4], "contexts: -4 is not a number of tokens"),
        ("5," + "9" * 5000, "is not a number of tokens"),
    ],
)
def test_lengths_that_cannot_be(lengths: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_lengths(lengths)
    assert message in str(caught.value)


@given(st.text(alphabet="0123456789kK,.- x\u0662", max_size=12))
def test_lengths_are_read_or_refused_in_words(text: str) -> None:
    try:
        lengths = parse_lengths(text)
    except UsageError:
        return
    assert len(lengths) > 1
    assert parse_lengths(",".join(map(str, lengths))) == lengths == tuple(sorted(set(lengths)))


WIDE = {"positions": 4096, "puts_first": "unscored"}


@pytest.mark.parametrize(
    ("name", "context", "model", "expected"),
    [
        ("hf-guide", None, {}, "sentence,4095/512,first=unscored,end=none,protocol=hf-guide"),
        ("hf-guide", 600, {"puts_first": "bos"}, "sentence,599/512,end=none,protocol=hf-guide"),
        ("hf-guide", None, {"positions": 513}, "sentence,512/512,first=unscored,end=none,protocol=hf-guide"),
        ("hf-guide", None, {"positions": 512}, "sentence,511/256,first=unscored,end=none,protocol=hf-guide"),
        ("hf-guide", 65, {}, "sentence,64/32,first=unscored,end=none,protocol=hf-guide"),
        ("hf-guide", 2, {}, "sentence,1/1,first=unscored,end=none,protocol=hf-guide"),
        ("harness", None, {}, "sentence,4096/4096,end=none,protocol=harness"),
        ("harness", 100, {"has_bos": False}, "sentence,100/100,first=eos,end=none,protocol=harness"),
        ("harness", None, {"puts_first": "other"}, "sentence,4096/4096,end=none,protocol=harness"),
        ("llama.cpp", None, {}, "sentence,511/512,first=unscored,end=none,protocol=llama.cpp"),
        ("llama.cpp", None, {"puts_first": "bos"}, "sentence,511/512,end=none,bos=each,protocol=llama.cpp"),
        ("llama.cpp", 64, {"positions": 64}, "sentence,63/64,first=unscored,end=none,protocol=llama.cpp"),
        ("gptq", None, {"puts_first": "eos"}, "sentence,2047/2048,first=eos,end=none,protocol=gptq"),
        ("gptq", None, {"positions": 64}, "sentence,63/64,first=unscored,end=none,protocol=gptq"),
        ("gptq", 4096, {}, "sentence,4095/4096,first=unscored,end=none,protocol=gptq"),
    ],
)
def test_what_a_protocol_comes_to(name: str, context: int | None, model: dict[str, Any], expected: str) -> None:
    assert str(resolve(WIDE | model, protocol=name, context=context)) == expected


@pytest.mark.parametrize(
    ("options", "model", "words"),
    [
        ({"protocol": "hf-guide", "stride": 64}, {"positions": 64}, "needs windows of 65 tokens or more.*positions for 64"),
        ({"protocol": "hf-guide", "stride": 512, "context": 512}, {}, "needs windows of 513 tokens or more.*context is 512"),
        ({"protocol": "hf-guide", "context": 1}, {}, "needs windows of 2 tokens"),
        ({"protocol": "llama.cpp"}, {"positions": 64}, "windows of 512 tokens.*positions for 64.*--context"),
        ({"protocol": "gptq", "context": 1}, {}, "needs windows of 2 tokens"),
        ({"protocol": "gptq", "context": 5000}, {}, "positions for 4096"),
        ({"protocol": "harness"}, {"positions": None}, "no longest context.*--context"),
        ({"protocol": "harness"}, {"has_bos": False, "has_eos": False}, "neither BOS nor EOS"),
        ({"protocol": "gptq"}, {"puts_first": "other"}, "something else than BOS or EOS"),
        ({"bos_each_window": True}, {"has_bos": False}, "no BOS token"),
    ],
)
def test_what_a_model_cannot_follow_is_refused_in_one_line(
    options: dict[str, Any], model: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        resolve(WIDE | model, **options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("name", "value"), [("stride", 4), ("stream", True), ("first_token", "bos"), ("end", "none")])
def test_what_a_protocol_decides_cannot_be_chosen_besides(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match="protocol gptq decides that"):
        ScoringOptions(protocol="gptq", **{name: value})


def test_options_stored_with_a_model_give_way_to_a_protocol() -> None:
    stored = ScoringOptions(context=64, stride=32, end="none", dtype="float32").stored()
    assert ScoringOptions(protocol="gptq").over(stored) == ScoringOptions(protocol="gptq", dtype="float32")
    assert ScoringOptions(protocol="gptq", bos_each_window=True).stored() == {"protocol": "gptq", "bos_each_window": True}


def test_every_window_may_begin_with_bos_without_a_protocol() -> None:
    assert str(resolve(bos_each_window=True)) == "sentence,64/64,end=newline,bos=each"


def test_what_a_template_is_told() -> None:
    options = ScoringOptions(template_args=["enable_thinking=false", "date_string=1 May 2026", "depth=3"])
    assert options.template_arguments == {"enable_thinking": False, "date_string": "1 May 2026", "depth": 3}
    assert ScoringOptions(template_args={"enable_thinking": False}).template_args == ("enable_thinking=false",)
    with pytest.raises(UsageError, match="name=value"):
        ScoringOptions(template_args=["enable_thinking"])
