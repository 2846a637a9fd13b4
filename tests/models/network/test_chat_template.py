"""Renderings of chat templates and the places of contents in them, against a slow twin that builds texts piece by piece."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lmgauge.base.errors import InputError
from lmgauge.models.network.chat_template import ChatTemplate, FramedTurn
from lmgauge.text.conversations import Conversation, Turn

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
        ("{{ " + "(" * 5000 + " }}", "nested too deeply"),
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
_BOTH = "{% macro f(x) %}{% if x %}{{ f(x - 1) }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(80) }}"
_LONG = "{% macro f() %}{% for i in range(1000) %}" + "y" * 100_000 + "{% endfor %}{% endmacro %}{% for i in range(9999) %}"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (_NESTED, "line 1 of the chat template: it takes more than 2,000,000 steps (endless or nested loops?)"),
        (_BOTH, "it takes more than 2,000,000 steps"),
        (_LONG + "{% set a = f() %}{% endfor %}", "it takes more than 2,000,000 steps"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "maximum recursion depth"),
        ("{% for m in messages recursive %}{{ loop(messages) }}{% endfor %}", "maximum recursion depth"),
        (_DOUBLED.replace("OPERATOR", "~"), "a value has more than"),
        (_DOUBLED.replace("OPERATOR", "+"), "a value has more than"),
        (_LISTS, "it prints more than"),
        ("{{ 'a' * 10**9 }}", "would make a value that is too long"),
        ("{{ [0] * 10**9 }}", "would make a value that is too long"),
        ("{{ 9 ** 9 ** 9 }}", "a number is too large"),
        ("{{ 'a' | center(10**9) }}", "center would make"),
        ("{{ 'a'.ljust(10**9) }}", "ljust would make"),
        ("{{ '%999999999d' % 1 }}", "% would make"),
        ("{{ '%*d' % (10**9, 1) }}", "% would make"),
        ("{{ '{:999999999}'.format(1) }}", "format would make"),
        ("{{ ('a' * 10**6).replace('a', 'b' * 10**6) }}", "replace would make"),
        ("{{ ('a' * 10**6) | replace('a', 'b' * 10**6) }}", "replace would make"),
        ("{{ messages | tojson(indent=10**9) }}", "tojson would make"),
        ("\n\n{{ raise_exception('no \x1b[31mtwo\nlines') }}", "line 3 of the chat template: no \ufffd[31mtwo lines"),
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
        ("{% set n = namespace(__call__=1) %}", "cannot have the attribute '__call__'"),
        ("{% set n = namespace({'__call__': 1}) %}", "cannot have the attribute '__call__'"),
        ("{{ cycler.__init__.__globals__ }}", "is unsafe"),
    ],
)
def test_what_a_template_may_do_is_bounded(source: str, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)) as error:
        ChatTemplate(source, name="mine.jinja").render(SHORT)
    assert str(error.value).startswith("mine.jinja: ")
    assert "\n" not in str(error.value)
