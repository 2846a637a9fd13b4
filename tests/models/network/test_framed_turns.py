"""Turns of conversations in a chat template: the same numbers as a loop over the library's own rendering and tokens."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.network.conftest import SIZES, TEXT, byte_fallback
from tests.models.network.test_chat_template import TEMPLATES, TOKENS, TWINS, some_conversation

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.sequences import _cut_turns, block_events
from lmgauge.models.network.tokens import foreign_tokens
from lmgauge.models.network.torch.model import NeuralModel
from lmgauge.scores import EOS_KIND, FRAMING, TOKEN, ScoreBatch
from lmgauge.scores.context_policy import ContextPolicy, EventContexts
from lmgauge.text.documents import Corpus

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("jinja2")

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Drops what was thought in earlier turns, as templates of reasoning models do.
FORGETTING = (
    "<|begin|>{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.role == 'assistant' and not loop.last %}{{ message.content.split('</think>')[-1].lstrip() }}"
    "{% else %}{{ message.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONVERSATIONS: list[list[dict[str, Any]]] = [
    [
        {"role": "user", "content": "The cat?"},
        {"role": "assistant", "content": "It sat on the mat ."},
        {"role": "user", "content": "Who came?"},
        {"role": "assistant", "content": "nobody came . 🙂"},
    ],
    [{"role": "user", "content": "株式会社"}, {"role": "assistant", "content": ""}],
    [
        {"role": "system", "content": "quietly"},
        {"role": "user", "content": "a long day"},
        {"role": "assistant", "content": "<think>hm</think>  It was ."},
        {"role": "user", "content": "The end"},
        {"role": "assistant", "content": "  two spaces in front"},
    ],
]


def tokenizer(template: str | None = CHATML) -> Any:
    """GPT-2's kind, with the special tokens of the templates."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<|begin|>", "<|end|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(TEXT.splitlines(), trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<|begin|>", eos_token="<|end|>")
    fast.add_special_tokens({"additional_special_tokens": special[2:]})
    fast.chat_template = template
    return fast


def network(vocabulary: int, positions: int = 256) -> Any:
    torch.manual_seed(3)
    sizes = {"max_position_embeddings": positions, "bos_token_id": 0, "eos_token_id": 1}
    made = transformers.AutoModelForCausalLM.from_config(transformers.LlamaConfig(vocab_size=vocabulary, **SIZES, **sizes))
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(4 if weight.dim() > 1 else 1)
    return made.eval()


@pytest.fixture(scope="module", params=[CHATML, FORGETTING], ids=["chatml", "forgetting"])
def both(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    fast = tokenizer(request.param)
    return fast, network(len(fast))


def scored(model: NeuralModel, corpus: Corpus) -> tuple[list[list[float]], list[ScoreBatch]]:
    """Log-probabilities of each turn, and the batches."""
    batches = list(model.framed().score(corpus))
    return [part.tolist() for one in batches for part in np.split(one.logprob, np.cumsum(one.segment_events)[:-1])], batches


def by_the_library(fast: Any, net: Any, messages: Sequence[dict[str, Any]]) -> list[list[float]]:
    """Log-probabilities of what each assistant turn adds to its prompt, up to the end of the turn, in nats."""
    turns = []
    for at, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        prompt = fast.apply_chat_template(messages[:at], add_generation_prompt=True, tokenize=False)
        whole = fast.apply_chat_template(messages[: at + 1], tokenize=False)
        given, ids = (fast(text, add_special_tokens=False)["input_ids"] for text in (prompt, whole))
        assert ids[: len(given)] == given
        end = len(ids) - 1 - ids[::-1].index(fast.convert_tokens_to_ids("<|im_end|>"))
        with torch.inference_mode():
            logprob = net(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        turns.append([float(logprob[i - 1, ids[i]]) for i in range(len(given), end + 1)])
    return turns


def test_the_numbers_are_those_of_the_library(both: tuple[Any, Any]) -> None:
    fast, net = both
    turns, batches = scored(NeuralModel.wrap(net, fast), Corpus.from_conversations(CONVERSATIONS))
    expected = [turn for messages in CONVERSATIONS for turn in by_the_library(fast, net, messages)]
    assert [len(turn) for turn in turns] == [len(turn) for turn in expected]
    for own, other in zip(turns, expected, strict=True):
        assert own == pytest.approx(other, rel=1e-5)
    kinds = np.concatenate([batch.kind for batch in batches])
    assert np.count_nonzero(kinds == EOS_KIND) == len(turns)
    assert not np.any(kinds == FRAMING)


def test_messages_of_one_conversation_are_scored_in_the_template(both: tuple[Any, Any]) -> None:
    fast, net = both
    turns = lmgauge.score_text(NeuralModel.wrap(net, fast), messages=CONVERSATIONS[2])
    for turn, expected in zip(turns, by_the_library(fast, net, CONVERSATIONS[2]), strict=True):
        assert list(turn.logprobs) == pytest.approx(expected, rel=1e-5)


def test_what_would_score_contents_out_of_their_template_is_refused(both: tuple[Any, Any]) -> None:
    fast, net = both
    model, corpus = NeuralModel.wrap(net, fast), Corpus.from_conversations(CONVERSATIONS)
    words = lmgauge.train("witten-bell", corpus, order=1)
    with pytest.raises(UsageError, match="has a chat template, which a mixture does not set turns into"):
        lmgauge.mix([model, words], corpus)
    with pytest.raises(UsageError, match="has a chat template, which a mixture does not set turns into"):
        lmgauge.cache(model, corpus)
    with pytest.raises(UsageError, match="a curve of contexts would take turns out of their conversations"):
        lmgauge.context_curve(model, corpus, [8, 16])


def test_a_turn_that_continues_the_one_before_is_scored_with_it() -> None:
    fast = tokenizer()
    model = NeuralModel.wrap(network(len(fast)), fast).framed()
    jobs: list[int] = []
    score = model.engine.score
    model.engine.score = lambda asked: jobs.append(len(asked)) or score(asked)  # type: ignore[method-assign, func-returns-value]
    list(model.score(Corpus.from_conversations(CONVERSATIONS)))
    assert sum(jobs) == 3


def test_spans_are_those_of_the_contents(both: tuple[Any, Any]) -> None:
    fast, net = both
    corpus = Corpus.from_conversations(CONVERSATIONS)
    _, (batch,) = scored(NeuralModel.wrap(net, fast), corpus)
    block = next(iter(corpus))
    contents = [m["content"] for messages in CONVERSATIONS for m in messages if m["role"] == "assistant"]
    assert [block.text(i).decode() for i in range(len(block))] == contents
    ends = np.cumsum(batch.segment_events)
    assert batch.ends[ends - 1].tolist() == [len(text.encode()) for text in contents]
    assert batch.scored_bytes().tolist() == [len(text.encode()) for text in contents]
    trims = fast.chat_template == CHATML
    assert batch.lossy.tolist() == [trims and text != text.strip() for text in contents]


def test_whole_distributions_are_of_the_same_events(both: tuple[Any, Any]) -> None:
    fast, net = both
    corpus = Corpus.from_conversations(CONVERSATIONS)
    model = NeuralModel.wrap(net, fast).framed()
    (batch,) = model.score(corpus)
    (distributions,) = model.distributions(corpus)
    tiles = list(distributions.tiles())
    assert sum(len(tile.logprob) for tile in tiles) == len(batch)
    own = np.concatenate(
        [np.asarray(tile.logprob)[np.arange(len(tile.targets)), np.asarray(tile.targets)] for tile in tiles]
    )
    assert own == pytest.approx(batch.logprob, rel=1e-4)
    before = batch.before
    assert before is not None
    contexts = EventContexts(
        batch.token_ids, batch.segment_events, bos=1, runs_on=False, given_tokens=(before.ids, before.counts)
    )
    for event in range(0, len(batch), 7):
        assert model.log_distribution(contexts[event])[batch.token_ids[event]] == pytest.approx(
            batch.logprob[event], rel=1e-4
        )


def test_what_is_scored_can_be_chosen() -> None:
    fast = tokenizer()
    net, corpus = network(len(fast)), Corpus.from_conversations(CONVERSATIONS)
    whole, _ = scored(NeuralModel.wrap(net, fast), corpus)
    no_end, _ = scored(NeuralModel.wrap(net, fast, ScoringOptions(end_of_turn=False)), corpus)
    assert no_end == [pytest.approx(turn[:-1]) for turn in whole]
    everyone = Corpus.from_conversations(CONVERSATIONS, roles=("system", "user", "assistant"))
    framed, batches = scored(NeuralModel.wrap(net, fast, ScoringOptions(framing=True)), everyone)
    for messages, at in zip(CONVERSATIONS, (0, 4, 6), strict=True):
        text = fast.apply_chat_template(messages, tokenize=False).removesuffix("\n")
        ids = fast(text, add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            logprob = net(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        events = [one for turn in framed[at : at + len(messages)] for one in turn]
        assert events == pytest.approx([float(logprob[i - 1, ids[i]]) for i in range(1, len(ids))], rel=1e-5)
    kinds = np.concatenate([batch.kind for batch in batches])
    assert set(kinds.tolist()) == {TOKEN, EOS_KIND, FRAMING}


def test_plain_text_is_framed_as_a_turn(tmp_path: Path) -> None:
    fast = tokenizer()
    net = network(len(fast))
    model = NeuralModel.wrap(net, fast)
    (tmp_path / "a.txt").write_text("The cat sat .\nIt was a long day\n")
    lines = lmgauge.evaluate(model, tmp_path / "a.txt", as_turn="assistant")
    conversations = [[{"role": "assistant", "content": text}] for text in ("The cat sat .", "It was a long day")]
    turns = lmgauge.evaluate(model, Corpus.from_conversations(conversations))
    assert lines.log_probability == pytest.approx(turns.log_probability)
    raw = lmgauge.evaluate(model, tmp_path / "a.txt")
    assert raw.log_probability != pytest.approx(turns.log_probability)
    assert any("--chat" in note for note in raw.notes)
    assert not any("--chat" in note for note in turns.notes)


def test_framed_and_raw_beside_each_other(tmp_path: Path) -> None:
    fast = tokenizer()
    model = NeuralModel.wrap(network(len(fast)), fast)
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps({"messages": messages}) + "\n" for messages in CONVERSATIONS))
    ngrams = lmgauge.train("laplace", Corpus.from_strings(TEXT.splitlines()), order=2)
    results = lmgauge.evaluate({"chat": model, "ngrams": ngrams}, path, chat="messages", also_raw=True)
    assert [one.model for one in results] == ["chat", "chat (raw)", "ngrams"]
    assert len({one.bytes for one in results}) == 1
    framed, raw, words = results
    assert {"template", "turns"} <= {part.partition("=")[0] for part in framed.context.split(",")}
    assert "template=" not in raw.context
    assert "turns=assistant" in words.context
    assert framed.signature != raw.signature
    with pytest.raises(UsageError, match="also-raw"):
        lmgauge.evaluate(model, texts=["a"], also_raw=True)


def test_errors_are_of_a_line() -> None:
    fast = tokenizer("{% for m in messages %}{{ raise_exception('only users') }}{% endfor %}")
    model = NeuralModel.wrap(network(len(fast)), fast)
    with pytest.raises(InputError, match=r"record 1: .*only users"):
        lmgauge.evaluate(model, Corpus.from_conversations(CONVERSATIONS))
    model = NeuralModel.wrap(network(len(fast), positions=16), tokenizer())
    with pytest.raises(InputError, match="do not fit into one window"):
        lmgauge.evaluate(model, Corpus.from_conversations(CONVERSATIONS))
    with pytest.raises(UsageError, match="--chat"):
        lmgauge.evaluate(model, texts=["a"], end_of_turn=False)
    with pytest.raises(UsageError, match="first-token"):
        NeuralModel.wrap(network(len(fast)), tokenizer(), ScoringOptions(first_token="eos")).framed()


@pytest.mark.parametrize("takes_spaces", [False, True])
def test_turns_cut_together_are_turns_cut_one_by_one(*, takes_spaces: bool) -> None:
    from tokenizers import AddedToken

    fast = tokenizer()
    # Some tokenizers let what ends a turn take the white space behind it: then it ends elsewhere if more comes.
    fast.add_special_tokens({"additional_special_tokens": [AddedToken("<|im_end|>", rstrip=takes_spaces, special=True)]})
    own = NeuralModel.wrap(network(len(fast)), fast).framed().tokenizer
    texts = ["<|im_start|>a cat<|im_end|>"]
    for more in ("\nthe<|im_end|>", " \n mat 🙂<|im_end|>", "", "<|im_start|>a day"):
        texts.append(texts[-1] + more)
    texts += ["", "nobody<|im_end|>", "株<|im_end|>"]
    last = ["<|im_end|>" if text.endswith("<|im_end|>") else "" for text in texts]
    together = _cut_turns([text.encode() for text in texts], last, own)
    each = [own.cut(next(iter(Corpus.from_strings([text]))), special=True) for text in texts]  # type: ignore[attr-defined]
    assert together.ids.tolist() == [i for one in each for i in one.ids.tolist()]
    assert together.span_ends.tolist() == [end for one in each for end in one.span_ends.tolist()]
    assert together.counts.tolist() == [len(one.ids) for one in each]


def of_template(name: str, *, fallback: bool) -> Any:
    """The tokenizer of a published template, of the kind of GPT-2 or of Llama, whose spaces before words are tokens' own."""
    stated = TOKENS[name]
    fast = byte_fallback() if fallback else tokenizer()
    fast.add_special_tokens({"additional_special_tokens": stated["specials"]})
    for one in ("bos_token", "eos_token"):
        if one in stated:
            setattr(fast, one, stated[one])
    fast.chat_template = (TEMPLATES / f"{name.removesuffix('-silent')}.jinja").read_text("utf-8")
    return fast


@pytest.mark.parametrize("fallback", [False, True], ids=["bytes", "fallback"])
@pytest.mark.parametrize("name", [name for name in TOKENS if name != "everything"])
def test_events_tile_the_content_and_all_tokens_are_shown_or_scored(name: str, *, fallback: bool) -> None:
    fast = of_template(name, fallback=fallback)
    tokens = foreign_tokens(fast, name).framed(ScoringOptions(), name)
    assert tokens.framing is not None
    chance = random.Random(name)
    conversations = [some_conversation(chance, TWINS[name].system) for _ in range(40)]
    policy = ContextPolicy(unit="conversation")
    for block in Corpus.from_conversations(conversations, errors="skip"):
        assert block.turns is not None
        events = block_events(block, tokens, policy, spans=True)
        assert events.before is not None
        assert events.kinds is not None
        framed = [tokens.framing.frame(turn) for turn in block.turns]
        wholes = ["".join((one.before, one.content, one.end)) for one in framed]
        bounds = np.cumsum(events.counts)[:-1]
        of_turns = zip(
            *(wholes, framed, events.before.by_segment(), np.split(events.ids, bounds), np.split(events.ends, bounds)),
            *(np.split(events.kinds, bounds), events.lossy.tolist(), [block.text(i).decode() for i in range(len(block))]),
            strict=True,
        )
        for whole, turn, before, ids, ends, kinds, lossy, source in of_turns:
            network_ids = tokens.network_ids[np.concatenate((before, ids))].tolist()
            assert network_ids == fast(whole, add_special_tokens=False)["input_ids"]
            assert np.all(np.diff(ends, prepend=0) >= 0)
            assert len(ends) == 0 or ends[-1] == len(source.encode())
            assert (kinds == EOS_KIND).tolist() == [False] * (len(ids) - 1) + [bool(turn.end)] * bool(len(ids))
            text = fast.decode(tokens.network_ids[ids[kinds <= 1]].tolist(), clean_up_tokenization_spaces=False)
            if not fallback:  # whose first space is lost where it is decoded
                assert turn.content in text  # a token may begin before the content, or end behind it
                assert lossy == (turn.content != source)


def test_a_first_token_that_nothing_is_shown_before_is_shown_itself() -> None:
    fast = tokenizer("{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}")
    model = NeuralModel.wrap(network(len(fast)), fast).framed()
    corpus = Corpus.from_conversations([[{"role": "assistant", "content": "The cat sat ."}], *CONVERSATIONS])
    (batch,) = model.score(corpus)
    assert batch.lossy.tolist() == [True, *[False] * 5]
    ids = fast("The cat sat .<|im_end|>", add_special_tokens=False)["input_ids"]
    assert batch.segment_events[0] == len(ids) - 1
    assert batch.scored_bytes()[0] == len("The cat sat .")


def test_a_mixture_takes_no_templates() -> None:
    fast = tokenizer()
    model = NeuralModel.wrap(network(len(fast)), fast)
    mixture = lmgauge.mix([model, model], weights=[0.5, 0.5])
    with pytest.raises(UsageError, match="a mixture does not set turns into"):
        lmgauge.evaluate(mixture, Corpus.from_conversations(CONVERSATIONS))


def test_a_network_without_a_template_says_so() -> None:
    model = NeuralModel.wrap(network(len(tokenizer())), tokenizer(None))
    result = lmgauge.evaluate(model, Corpus.from_conversations(CONVERSATIONS))
    assert any("--template FILE" in note for note in result.notes)
    assert "template=" not in result.context


def test_what_must_be_known_of_turns_is_said() -> None:
    fast = tokenizer("{% if loud %}!{% endif %}" + CHATML)
    model = NeuralModel.wrap(network(len(fast)), fast, ScoringOptions(template_args={"lout": True}))
    turns = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "a <|im_end|> b", "reasoning_content": "so"},
    ]
    notes = lmgauge.evaluate(model, Corpus.from_conversations([turns])).notes
    assert any("no variable lout (--template-args); it has loud" in note for note in notes)
    assert any("stand in the content of 1 turn" in note for note in notes)
    assert any("reasoning in a field of its own" in note for note in notes)
