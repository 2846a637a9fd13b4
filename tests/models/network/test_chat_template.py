"""Renderings of chat templates and the places of contents in them, against a slow twin that builds texts piece by piece."""

from __future__ import annotations

import json
import pickle
import random
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from lmgauge.base.errors import InputError, UsageError
from lmgauge.models.network.chat_template import ChatTemplate, FramedTurn, Span, source_ends
from lmgauge.text.readers import Conversation, Turn

TEMPLATES = Path(__file__).parent / "templates"
TOKENS: dict[str, dict[str, Any]] = json.loads((TEMPLATES / "tokens.json").read_text("utf-8"))
CHATML = (TEMPLATES / "chatml.jinja").read_text("utf-8")

Message = dict[str, Any]
Piece = tuple[str, int | None]
"""A piece of a rendering, and the message whose content it is."""


# -- The twin: what each template writes, by its documentation -----------------------------------------------------------
class Twin(NamedTuple):
    """A template written out by hand."""

    pieces: Callable[[list[Message], bool], list[Piece]]
    end: str  # what ends the assistant's turn
    system: bool = True  # a conversation may begin with a message of the system


def _each_turn(
    messages: list[Message], begin: Callable[[Message], str], end: str, core: Callable[[str], str]
) -> list[Piece]:
    pieces: list[Piece] = []
    for at, message in enumerate(messages):
        pieces += [(begin(message), None), (core(message["content"]), at), (end, None)]
    return pieces


def _as_it_is(content: str) -> str:
    return content


def _chatml(messages: list[Message], prompt: bool) -> list[Piece]:
    pieces = _each_turn(messages, lambda m: f"<|im_start|>{m['role']}\n", "<|im_end|>\n", _as_it_is)
    return [*pieces, ("<|im_start|>assistant\n" if prompt else "", None)]


def _llama_3(messages: list[Message], prompt: bool) -> list[Piece]:
    pieces = _each_turn(messages, lambda m: f"<|start_header_id|>{m['role']}<|end_header_id|>\n\n", "<|eot_id|>", str.strip)
    return [
        ("<|begin_of_text|>", None),
        *pieces,
        ("<|start_header_id|>assistant<|end_header_id|>\n\n" if prompt else "", None),
    ]


def _gemma(messages: list[Message], prompt: bool) -> list[Piece]:
    names = {"user": "user", "assistant": "model"}
    pieces = _each_turn(messages, lambda m: f"<start_of_turn>{names[m['role']]}\n", "<end_of_turn>\n", str.strip)
    return [("<bos>", None), *pieces, ("<start_of_turn>model\n" if prompt else "", None)]


def _phi_3(messages: list[Message], prompt: bool) -> list[Piece]:
    pieces = _each_turn(messages, lambda m: f"<|{m['role']}|>\n", "<|end|>\n", _as_it_is)
    return [*pieces, ("<|assistant|>\n" if prompt else "<|endoftext|>", None)]


def _zephyr(messages: list[Message], prompt: bool) -> list[Piece]:
    pieces = _each_turn(messages, lambda m: f"<|{m['role']}|>\n", "</s>\n", _as_it_is)
    return [*pieces, ("<|assistant|>\n" if prompt and messages else "", None)]


def _qwen_2(messages: list[Message], prompt: bool) -> list[Piece]:
    own = "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
    return [("" if messages[0]["role"] == "system" else own, None), *_chatml(messages, prompt)]


def _qwen_3(messages: list[Message], prompt: bool) -> list[Piece]:
    asked = len(messages) - 1
    for at, message in enumerate(messages):
        content = message["content"]
        if message["role"] == "user" and not (
            content.startswith("<tool_response>") and content.endswith("</tool_response>")
        ):
            asked = at
    pieces: list[Piece] = []
    for at, message in enumerate(messages):
        content, reasoning, opening = message["content"], "", ""
        if message["role"] == "assistant" and message.get("reasoning_content") is not None:
            reasoning = message["reasoning_content"]
        elif message["role"] == "assistant" and "</think>" in content:
            opening = content.split("</think>")[0].rstrip("\n")
            reasoning = opening.split("<think>")[-1].lstrip("\n")
            opening = opening[: opening.rindex(reasoning)] if reasoning else opening
            content = content.split("</think>")[-1].lstrip("\n")
        pieces.append((f"<|im_start|>{message['role']}\n", None))
        thinks = message["role"] == "assistant" and at > asked and (at == len(messages) - 1 or reasoning)
        said = f"{reasoning.strip(chr(10))}\n</think>\n\n{content.lstrip(chr(10))}"
        if thinks and (message.get("reasoning_content") is not None or "</think>" not in message["content"]):
            before, said = said[: said.index("</think>") + 10], said[said.index("</think>") + 10 :]
            pieces += [(f"<think>\n{before}", None), (said, at)]
        elif thinks and opening.strip() == "<think>":  # the template writes again what the message begins with
            pieces.append((f"<think>\n{said}", at))
        elif thinks:
            pieces += [("<think>\n", None), (said, at)]
        else:
            pieces.append((content, at))
        pieces.append(("<|im_end|>\n", None))
    return [*pieces, ("<|im_start|>assistant\n" if prompt else "", None)]


def _qwen_3_silent(messages: list[Message], prompt: bool) -> list[Piece]:
    return [*_qwen_3(messages, prompt), ("<think>\n\n</think>\n\n" if prompt else "", None)]


def _deepseek(messages: list[Message], prompt: bool) -> list[Piece]:
    pieces: list[Piece] = [("<｜begin▁of▁sentence｜>", None)]
    pieces += [(each["content"], at) for at, each in enumerate(messages) if each["role"] == "system"]
    for at, message in enumerate(messages):
        if message["role"] == "user":
            pieces += [("<｜User｜>", None), (message["content"], at)]
        if message["role"] == "assistant":
            said = message["content"].split("</think>")[-1]
            pieces += [("<｜Assistant｜>", None), (said, at), ("<｜end▁of▁sentence｜>", None)]
    return [*pieces, ("<｜Assistant｜><think>\n" if prompt else "", None)]


def _command_r(messages: list[Message], prompt: bool) -> list[Piece]:
    who = {"system": "SYSTEM", "user": "USER", "assistant": "CHATBOT"}
    pieces: list[Piece] = [("<BOS_TOKEN>", None)]
    for at, message in enumerate(messages):
        content = message["content"]
        pieces.append((f"<|START_OF_TURN_TOKEN|><|{who[message['role']]}_TOKEN|>", None))
        pieces += [(content if message["role"] == "system" else content.strip(), at), ("<|END_OF_TURN_TOKEN|>", None)]
    return [*pieces, ("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>" if prompt else "", None)]


def _llama_2(messages: list[Message], prompt: bool) -> list[Piece]:
    pieces: list[Piece] = []
    for at, message in enumerate(messages):
        content = message["content"]
        if message["role"] == "system":
            pieces += [("<s>[INST] ", None), ("<<SYS>>\n", None), (content, at), ("\n<</SYS>>", None)]
        elif message["role"] == "user" and at == 1:  # the system's message and the user's are one, stripped as one
            pieces += [("\n\n", None), (content.rstrip(), at)] if content.strip() else [("", at)]
            pieces.append((" [/INST]", None))
        elif message["role"] == "user":
            pieces += [("<s>[INST] ", None), (content.strip(), at), (" [/INST]", None)]
        else:
            pieces += [(" ", None), (content.strip(), at), (" </s>", None)]
    return pieces


def _mistral(messages: list[Message], prompt: bool) -> list[Piece]:
    pieces: list[Piece] = [("<s>", None)]
    for at, message in enumerate(messages):
        content = message["content"]
        if message["role"] == "user":
            pieces.append(("[INST] ", None))
            if at == len(messages) - 1 and messages[0]["role"] == "system":
                pieces += [(messages[0]["content"], 0), ("\n\n", None)]
            pieces += [(content, at), ("[/INST]", None)]
        elif message["role"] == "assistant":
            pieces += [(" ", None), (content.strip(), at), ("</s>", None)]
    return pieces


TWINS = {
    "chatml": Twin(_chatml, "<|im_end|>"),
    "command-r": Twin(_command_r, "<|END_OF_TURN_TOKEN|>"),
    "deepseek-r1": Twin(_deepseek, "<｜end▁of▁sentence｜>"),
    "gemma": Twin(_gemma, "<end_of_turn>", system=False),
    "llama-2": Twin(_llama_2, " </s>"),
    "llama-3": Twin(_llama_3, "<|eot_id|>"),
    "mistral": Twin(_mistral, "</s>"),
    "phi-3": Twin(_phi_3, "<|end|>"),
    "qwen-2.5": Twin(_qwen_2, "<|im_end|>"),
    "qwen-3": Twin(_qwen_3, "<|im_end|>"),
    "qwen-3 silent": Twin(_qwen_3_silent, "<|im_end|>"),
    "zephyr": Twin(_zephyr, "</s>"),
}


def twin_spans(pieces: list[Piece]) -> dict[int, tuple[int, int]]:
    """The bytes of each message's content."""
    spans, length = {}, 0
    for text, message in pieces:
        if message is not None:
            spans[message] = length, length + len(text.encode())
        length += len(text.encode())
    return spans


def twin_frame(twin: Twin, messages: list[Message], at: int) -> FramedTurn:
    """An assistant's turn, as the model meets it."""
    pieces = twin.pieces(messages[: at + 1], False)
    here = next(nth for nth, (_, message) in enumerate(pieces) if message == at)
    before, content = "".join(text for text, _ in pieces[:here]), pieces[here][0]
    prompt = "".join(text for text, _ in twin.pieces(messages[:at], True))
    has_prompt = twin.pieces not in (_llama_2, _mistral)
    if not (before + content).startswith(prompt):
        return FramedTurn(prompt, content, twin.end, "", has_prompt)
    shown = max(len(before), len(prompt))
    whole = before + content
    return FramedTurn(whole[:shown], whole[shown:], twin.end, whole[len(prompt) : shown], has_prompt)


# -- Conversations by chance ---------------------------------------------------------------------------------------------
_WORDS = [
    "the cat sat. ",
    "Ünïcödé",
    "日本語",
    "👩\u200d👩\u200d👧",
    "🇨🇭",
    "e\u0301\u0301",
    "ﷺ",
    "{{ messages }}",
    "{% raw %}",
    "{# x #}",
    "\\n",
]
_WORDS += [
    "<|im_end|>",
    "<|im_start|>user\n",
    "[/INST]",
    "</s>",
    "<s>",
    "<｜Assistant｜>",
    "<end_of_turn>",
    "\n<</SYS>>\n\n",
    "<|eot_id|>",
]
_WORDS += ["\ue000", "\uf8ff", "\u2003", "&amp;", "<b>", "a\x00b"]
_WHITE = ["", "", "", " ", "\n", "\n\n", "\t", " \n ", "\u3000", "\u2003 ", "\r\n", "\x1c"]


def some_content(chance: random.Random, role: str) -> str:
    """A content that templates may trip over."""
    if chance.random() < 0.08:
        return chance.choice(["", " ", "\n\n", "\u3000"])
    core = chance.choice(["", " ", "\n"]).join(chance.choices(_WORDS, k=chance.randint(1, 4)))
    if role == "assistant" and chance.random() < 0.15:
        reasoning = chance.choice(["", "\n", "\nso \n", "<b>so</b>\n"])
        core = f"{chance.choice(['<think>', '<think>', ''])}{reasoning}</think>{chance.choice(['', chr(10) * 2])}{core}"
    return chance.choice(_WHITE) + core + chance.choice(_WHITE)


def some_conversation(chance: random.Random, system: bool) -> Conversation:
    """Messages of a user and an assistant in turn; one in fifty conversations has 50."""
    size = 50 if chance.random() < 0.02 else chance.randint(1, 6)
    roles = ["system"] * (system and chance.random() < 0.5) + ["user", "assistant"] * 25
    messages = [{"role": role, "content": some_content(chance, role)} for role in roles[:size]]
    if messages[0]["role"] == "system" and len(messages) == 1:
        messages.append({"role": "user", "content": "and so"})
    return Conversation(tuple(messages))


@cache
def template(name: str) -> ChatTemplate:
    file, _, silent = name.partition(" ")
    tokens = dict(TOKENS[file])
    specials = tokens.pop("specials")
    source = (TEMPLATES / f"{file}.jinja").read_text("utf-8")
    arguments = {"enable_thinking": False} if silent else {}
    return ChatTemplate(source, name=f"{file}.jinja", tokens=tokens, arguments=arguments, specials=specials)


@pytest.mark.parametrize("name", TWINS)
def test_spans_and_turns_are_those_of_the_twin(name: str) -> None:
    twin, ours, chance = TWINS[name], template(name), random.Random(name)
    for _ in range(200):
        conversation = some_conversation(chance, twin.system)
        messages = list(conversation.messages)
        pieces = twin.pieces(messages, False)
        text, spans = ours.spans(conversation)
        assert text == "".join(piece for piece, _ in pieces)
        wanted = twin_spans(pieces)
        assert {span.message: (span.start, span.end) for span in spans} == {
            at: place for at, place in wanted.items() if place[0] < place[1] or at in {span.message for span in spans}
        }
        # What is scored and what is not tile the text.
        edges = sorted(edge for span in spans for edge in span[1:])
        assert edges == [edge for span in sorted(spans, key=lambda span: span.start) for edge in span[1:]]
        for at, message in enumerate(messages):
            if message["role"] == "assistant":
                assert ours.frame(Turn(conversation, at)) == twin_frame(twin, messages, at), (messages, at)


def test_a_rendering_is_the_one_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models

    tool = {"type": "function", "function": {"name": "größe", "parameters": {"a": [1, 2.5, None, True, "<&>"]}}}
    chance = random.Random(7)
    for name in [*TWINS, "everything"]:
        ours, file = template(name), name.partition(" ")[0]
        source = (TEMPLATES / f"{file}.jinja").read_text("utf-8")
        theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), chat_template=source)
        for token in ("bos_token", "eos_token"):
            setattr(theirs, token, TOKENS[file].get(token))
        arguments = {"enable_thinking": False} if "silent" in name else {}
        for prompt in (False, True):
            for _ in range(10):
                messages = some_conversation(chance, name not in TWINS or TWINS[name].system).messages
                if chance.random() < 0.3:
                    messages = (*messages[:-1], {**messages[-1], "reasoning": "so\n", "name": "a"})
                wanted = theirs.apply_chat_template(
                    list(messages), tools=[tool], tokenize=False, add_generation_prompt=prompt, **arguments
                )
                assert ours.render(Conversation(messages, (tool,)), prompt=prompt) == wanted


USER, HELLO = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello <b>"}
SHORT = Conversation((USER, HELLO))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("a\n{% if %}", "line 2 of the chat template: Expected an expression"),
        ("{% for message in messages %}", "line 1 of the chat template: Unexpected end of template"),
        ("{{ 1 | nothing }}", "line 1 of the chat template: No filter named 'nothing'"),
        ("{{ " + "(" * 5000 + " }}", "maximum recursion depth"),
    ],
)
def test_a_template_that_cannot_be_read_is_refused_at_once(source: str, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)) as error:
        ChatTemplate(source, name="mine.jinja")
    assert str(error.value).startswith("mine.jinja: ")
    assert "\n" not in str(error.value)


_NESTED = "{% for a in range(99999) %}{% for b in range(99999) %}.{% endfor %}{% endfor %}"
_DOUBLED = "{% set n = namespace(x='ab') %}{% for i in range(80) %}{% set n.x = n.x OPERATOR n.x %}{% endfor %}"
_LISTS = "{% set n = namespace(x=[1]) %}{% for i in range(80) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}"
_SLICES = "{% set n = namespace(x='a' * 10**6) %}" + "{% set a = n.x[1:] %}" * 1000
_STEPS = "mine.jinja: the chat template: it takes more than 2,000,000 steps"
_BOTH = "{% macro f(x) %}{% if x %}{{ f(x - 1) }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(80) }}"
_LONG = "{% macro f() %}{% for i in range(1000) %}" + "y" * 100_000 + "{% endfor %}{% endmacro %}{% for i in range(9999) %}"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (_NESTED, _STEPS),
        (_BOTH, _STEPS),
        (_LONG + "{% set a = f() %}{% endfor %}", _STEPS),
        (_DOUBLED.replace("OPERATOR", "~"), _STEPS),
        (_DOUBLED.replace("OPERATOR", "+"), _STEPS),
        (_SLICES, _STEPS),
        (_LISTS, _STEPS),
        ("{{ 'a' * 10**9 }}", _STEPS),
        ("{{ [0] * 10**9 }}", _STEPS),
        ("{{ 9 ** 9 ** 9 }}", _STEPS),
        ("{{ 'a' | center(10**9) }}", _STEPS),
        ("{{ 'a'.ljust(10**9) }}", _STEPS),
        ("{{ '%999999999d' % 1 }}", _STEPS),
        ("{{ '%*d' % (10**9, 1) }}", _STEPS),
        ("{{ '%*d' | format(10**9, 1) }}", _STEPS),
        ("{{ '{:999999999}'.format(1) }}", _STEPS),
        ("{{ ('a' * 10**6).replace('a', 'b' * 10**6) }}", _STEPS),
        ("{{ ('a' * 10**6) | replace('a', 'b' * 10**6) }}", _STEPS),
        ("{{ (['a' * 10**6] * 100) | map('upper') | join('b' * 10**6) }}", _STEPS),
        ("{{ messages | tojson(indent=10**9) }}", _STEPS),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "maximum recursion depth"),
        ("{% for m in messages recursive %}{{ loop(messages) }}{% endfor %}", "maximum recursion depth"),
        ("\n\n{{ raise_exception('no \x1b[31mtwo\nlines') }}", "mine.jinja: the chat template: no \ufffd[31mtwo lines"),
        ("{{ nothing + 1 }}", "'nothing' is undefined"),
        ("{{ nothing.at.all }}", "'nothing' is undefined"),
        ("{{ messages[7].content + '' }}", "has no element 7"),
        ("{{ messages[0].content + 1 }}", "can only concatenate str"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{% for a in 5 %}{% endfor %}", "not iterable"),
        ("{{ nothing() }}", "'nothing' is undefined"),
        ("{{ strftime_now('%Y') }}", "'strftime_now' is undefined"),
        ("{{ lipsum() }}", "'lipsum' is undefined"),
        ("{% include 'other' %}", "no loader"),
        ("{{ messages.append(1) }}", "is unsafe"),
        ("{{ ''.__class__.__mro__ }}", "is unsafe"),
        ("{{ cycler.__init__.__globals__ }}", "is unsafe"),
    ],
)
def test_what_a_template_may_do_is_bounded(source: str, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)) as error:
        ChatTemplate(source, name="mine.jinja").render(SHORT)
    assert str(error.value).startswith("mine.jinja: ")
    assert "\n" not in str(error.value)


# -- Planted faults, and templates that rewrite --------------------------------------------------------------------------
TALK = Conversation(tuple({"role": "user" if at % 2 == 0 else "assistant", "content": f" t{at} <b> "} for at in range(50)))


def made(source: str, **options: Any) -> ChatTemplate:
    return ChatTemplate(source, name="mine.jinja", specials=["<s>", "<|im_start|>", "<|im_end|>"], **options)


@pytest.mark.parametrize("begin", ["", "<s>", "<s><s>"])
def test_a_first_token_stands_in_the_context_as_often_as_the_template_writes_it(begin: str) -> None:
    framed = made("{{ bos_token }}" * (len(begin) // 3) + CHATML, tokens={"bos_token": "<s>"}).frame(Turn(TALK, 1))
    assert framed.before == begin + "<|im_start|>user\n t0 <b> <|im_end|>\n<|im_start|>assistant\n"
    assert framed.content == " t1 <b> "
    assert framed.end == "<|im_end|>"
    assert framed.preamble == ""


def test_what_the_prompt_lacks_is_the_preamble() -> None:
    silent = made(CHATML[: CHATML.index("{% if add_generation_prompt")])
    assert silent.frame(Turn(TALK, 3)).preamble == "<|im_start|>assistant\n"
    assert silent.frame(Turn(TALK, 3)).has_prompt is False
    last = "('<think></think>' if loop.last and message['role'] == 'assistant' else '') + message['content']"
    thinking = made(CHATML.replace("message['content']", last))
    assert thinking.frame(Turn(TALK, 3)).preamble == "<think></think>"
    assert thinking.frame(Turn(TALK, 3)).has_prompt is True
    # The user's turn is nothing that a prompt asks for.
    assert thinking.frame(Turn(TALK, 2)).before.endswith("<|im_end|>\n<|im_start|>user\n")
    assert thinking.frame(Turn(TALK, 2)).preamble == ""


def test_what_the_prompt_has_is_not_scored() -> None:
    opening = made(CHATML.replace("assistant\\n' }}{% endif", "assistant\\n<think>' }}{% endif"))
    messages = (USER, {"role": "assistant", "content": "<think>so</think>yes"})
    framed = opening.frame(Turn(Conversation(messages), 1))
    assert framed.before.endswith("<|im_start|>assistant\n<think>")
    assert framed.content == "so</think>yes"


@pytest.mark.parametrize(
    "content",
    [
        "message['content'] + message['content']",
        "'dropped'",
        "message['content'][::-1]",
        "message['content'] | length | string",
    ],
)
def test_a_turn_that_cannot_be_located_is_refused(content: str) -> None:
    template = made(CHATML.replace("message['content']", f"({content} if loop.index == 4 else message['content'])"))
    with pytest.raises(InputError, match=r"^mine.jinja: message 4 \(assistant\): the chat template rewrites this turn"):
        template.frame(Turn(TALK, 3))
    # Others are as ever.
    assert template.frame(Turn(TALK, 1)).content == " t1 <b> "
    assert template.frame(Turn(TALK, 5)).content == " t5 <b> "
    text, spans = template.spans(TALK)
    assert [span.message for span in spans] == [at for at in range(50) if at != 3]
    assert all(text.encode()[span.start : span.end].decode() == f" t{span.message} <b> " for span in spans)


@pytest.mark.parametrize(
    ("content", "rendered"),
    [
        ("message['content'] | upper", " T1 <B> "),
        ("message['content'].replace('<b>', '<i>')", " t1 <i> "),
        ("message['content'].rstrip()", " t1 <b>"),
        ("message['content'].strip(' ')", "t1 <b>"),
        ("message['content'].split('<b>')[0]", " t1 "),
        ("message['content'].split('<b>')[-1]", " "),
        ("message['content'].split('<')[0].strip()", "t1"),
    ],
)
def test_a_rewritten_content_is_what_the_template_writes(content: str, rendered: str) -> None:
    framed = made(CHATML.replace("message['content']", content)).frame(Turn(TALK, 1))
    assert framed.content == rendered
    assert framed.before.endswith("<|im_start|>assistant\n")
    assert framed.end == "<|im_end|>"


def test_contents_may_change_places() -> None:
    last_first = made("{% for m in messages[::-1] %}{{ '<s>' + m.content }}{% endfor %}")
    text, spans = last_first.spans(TALK, 3)
    assert text == "<s> t2 <b> <s> t1 <b> <s> t0 <b> "
    assert spans == [Span(0, 25, 33), Span(1, 14, 22), Span(2, 3, 11)]


def test_a_fault_of_a_later_turn_does_not_touch_an_earlier_one() -> None:
    messages = (USER, HELLO, HELLO)
    assert template("mistral").frame(Turn(Conversation(messages), 1)).content == "Hello <b>"
    with pytest.raises(InputError, match="roles must alternate"):
        template("mistral").frame(Turn(Conversation(messages), 2))


def test_the_assistant_may_begin_where_the_template_lets_it() -> None:
    alone = Conversation((HELLO,))
    wanted = FramedTurn("<|im_start|>assistant\n", "Hello <b>", "<|im_end|>")
    assert template("chatml").frame(Turn(alone, 0)) == wanted
    assert template("qwen-2.5").frame(Turn(alone, 0)).before.endswith("assistant.<|im_end|>\n<|im_start|>assistant\n")
    for name in ("gemma", "llama-2", "mistral", "command-r"):
        with pytest.raises(InputError, match="roles must alternate"):
            template(name).frame(Turn(alone, 0))


def test_messages_without_a_text_are_shown_and_have_no_span() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}
    source = "{% for m in messages %}<s>{{ m.content or m.tool_calls | tojson }}{% endfor %}"
    text, spans = made(source).spans(Conversation((USER, call, HELLO)))
    assert text == '<s>Hi<s>[{"function": {"name": "f", "arguments": {"a": 1}}}]<s>Hello <b>'
    assert [span.message for span in spans] == [0, 2]


def test_marks_are_characters_that_the_conversation_has_not() -> None:
    private = "".join(chr(code) for code in range(0xE000, 0xF8FF))
    one_left = Conversation((USER, {"role": "assistant", "content": private}))
    with pytest.raises(InputError, match="cannot be known exactly"):
        made(CHATML).frame(Turn(one_left, 1))
    two_left = Conversation((USER, {"role": "assistant", "content": private[:-1]}))
    assert made(CHATML).frame(Turn(two_left, 1)).content == private[:-1]
    # What only the template has counts as well.
    assert made("\ue000" + CHATML).frame(Turn(TALK, 1)).before.startswith("\ue000<|im_start|>")


def test_one_rendering_has_the_places_of_all_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[bool] = []
    render = ChatTemplate.render
    monkeypatch.setattr(ChatTemplate, "render", lambda *args, **named: counted.append(True) or render(*args, **named))
    for source in (CHATML, CHATML.replace("message['content']", "message['content'] | trim")):
        counted.clear()
        chatml = made(source)
        for at in range(1, 50, 2):
            chatml.frame(Turn(TALK, at))
        assert len(counted) <= 2 * 25 + 3


def test_the_digest_is_of_the_source_and_the_arguments() -> None:
    plain = made(CHATML)
    assert re.fullmatch("[0-9a-f]{6}", plain.digest)
    assert plain.digest == ChatTemplate(CHATML, name="other", tokens={"bos_token": "<s>"}).digest
    arguments = [{}, {"a": 1}, {"a": "1"}, {"a": True}, {"b": 1}, {"a": 1, "b": 2}]
    assert len({made(CHATML, arguments=each).digest for each in arguments} | {made(CHATML + " ").digest}) == 7
    assert made(CHATML, arguments={"a": 1, "b": 2}).digest == made(CHATML, arguments={"b": 2, "a": 1}).digest


def test_arguments_are_variables_and_come_before_tokens() -> None:
    source = "{{ bos_token }}{{ mood }}{{ messages | length }}"
    assert made(source, tokens={"bos_token": "<s>"}, arguments={"mood": "glad"}).render(SHORT) == "<s>glad2"
    assert made(source, tokens={"bos_token": "<s>"}, arguments={"bos_token": "!"}).render(SHORT) == "!2"
    with pytest.raises(UsageError, match="the conversation sets messages"):
        made(source, arguments={"messages": []})


def test_a_template_goes_to_another_process() -> None:
    again = pickle.loads(pickle.dumps(template("qwen-3")))
    assert again.frame(Turn(TALK, 3)) == template("qwen-3").frame(Turn(TALK, 3))


def test_jinja_is_loaded_where_there_is_a_template() -> None:
    program = (
        "import sys, lmgauge.models.network.chat_template as m; a = 'jinja2' in sys.modules; m.ChatTemplate('', name='')"
    )
    program += "; sys.exit(a or 'jinja2' not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_what_one_rendering_costs_does_not_burden_the_next() -> None:
    nested = made("{% for a in range(900) %}{% for b in range(900) %}{% endfor %}{% endfor %}.")
    assert [nested.render(SHORT) for _ in range(4)] == ["."] * 4


# -- Spans of a rendering in bytes of the record ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("rendered", "source", "ends", "mapped"),
    [
        ("ab", "ab", [0, 1, 2], [0, 1, 2]),
        ("ab", "  ab\n", [0, 1, 2], [2, 3, 5]),
        ("ab", "\u3000ab", [1, 2], [4, 5]),
        ("", " \n", [0], [2]),
        ("", "", [0], [0]),
        ("yes", "<think>so</think>yes", [1, 3], [18, 20]),
        ("<think>\nso\n</think>\n\nyes", "<think>so</think>yes", [7, 8, 10, 11, 19, 21, 24], [7, 7, 7, 7, 7, 17, 20]),
        ("aXXc", "aYc", [1, 2, 3, 4], [1, 1, 2, 3]),
        ("é", "e", [1, 2], [0, 1]),
        ("aéb", "aèb", [1, 2, 3, 4], [1, 1, 3, 4]),
    ],
)
def test_ends_in_the_record(rendered: str, source: str, ends: list[int], mapped: list[int]) -> None:
    assert source_ends(rendered.encode(), source.encode(), np.array(ends)).tolist() == mapped


def test_ends_in_the_record_ascend_and_reach_its_end() -> None:
    chance = random.Random(3)
    for _ in range(2000):
        source = "".join(chance.choices([" ", "\n", "a", "b", "é", "日", "</think>"], k=chance.randint(0, 9)))
        cut, after = sorted(chance.choices(range(len(source) + 1), k=2))
        rendered = chance.choice(
            [source.strip(), source[:cut] + chance.choice(["", "ab", "é "]) + source[after:], source[cut:]]
        )
        ends = np.arange(len(rendered.encode()) + 1)
        mapped = source_ends(rendered.encode(), source.encode(), ends)
        assert mapped[-1] == len(source.encode())
        assert (np.diff(mapped) >= 0).all()
        assert mapped[0] >= 0
        if rendered == source.strip() and rendered:
            lead = len(source.encode()) - len(source.lstrip().encode())
            assert mapped[:-1].tolist() == (ends + lead)[:-1].tolist()
