"""What a verb declares: read from signatures and docstrings, gathered from keywords, held to bounds and choices."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import FrozenInstanceError, fields
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import pytest

import lmgauge
from lmgauge.base.declaration import REQUIRED, entries, options_of, settings, settings_of, verb
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Bounds, Count, Share
from lmgauge.cli import derive
from lmgauge.cli.commands import COMMANDS
from lmgauge.cli.derive import declared

if TYPE_CHECKING:
    from lmgauge.text.documents import Corpus


@settings
class Drawing:
    """How a sample is drawn.

    Attributes:
        share, rest: of the whole.
        order: of what is drawn;
            in a second line.
    """

    heading: ClassVar[str] = "Statistics"
    share: Share = 0.5
    rest: Share | None = None
    order: Literal["first", "last"] = "first"

    def __post_init__(self) -> None:
        if self.rest is not None and self.rest > self.share:
            raise UsageError("rest is more than share")


@verb
def take(
    text: Corpus | str,
    count: Count,
    *,
    names: Sequence[str] = (),
    drawing: Drawing = Drawing(),  # noqa: B008 - frozen
    **fields: Any,
) -> tuple[Any, ...]:
    """Take some.

    Args:
        text: to take from.
        count: how many.
        names: what to call them.
        drawing: how.
    """
    return text, count, names, drawing


def test_options_are_read_without_importing_what_only_type_checkers_see() -> None:
    text, count, names, share, rest, order = options_of(take)
    assert [one.name for one in (text, count, names)] == ["text", "count", "names"]
    assert text.positional
    assert count.positional
    assert not names.positional
    assert (count.kinds, count.bounds, count.default) == ((int,), Bounds(1), REQUIRED)
    assert (names.element, names.default) == (str, ())
    assert (order.choices, order.default, order.owner, order.keyword) == (("first", "last"), "first", Drawing, "drawing")
    assert rest.optional
    assert not share.optional
    assert (share.words, order.words) == ("of the whole.", "of what is drawn; in a second line.")


def test_fields_of_settings_are_keywords() -> None:
    assert take("a", 2, share=0.25)[3] == Drawing(share=0.25)
    assert take("a", 2, drawing=Drawing(order="last"), share=0.25)[3] == Drawing(0.25, None, "last")
    assert take("a", 2, drawing=None)[3] == Drawing()
    assert take("a", count=2, names=("b",)) == ("a", 2, ("b",), Drawing())


def test_what_has_a_name_only_is_not_taken_by_position() -> None:
    message = r"take takes names and drawing by name, not by position: take\(text, count, names=\.\.\., drawing=\.\.\.\)"
    with pytest.raises(TypeError, match=message):
        take("a", 2, ("b",))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"cuont": 2}, "take has no option 'cuont'; did you mean count?"),
        ({"share": 2}, "share must be a number from 0 to 1; got 2"),
        ({"share": None}, "share must be a number from 0 to 1; got None"),
        ({"order": "middle"}, "unknown order 'middle': choose one of first, last"),
        ({"rest": 0.75}, "rest is more than share"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        take("a", 1, **keywords)
    assert str(refusal.value) == message


def test_numbers_that_are_given_by_place_are_held_to_their_bounds_as_well() -> None:
    with pytest.raises(UsageError, match="count must be a whole number, 1 or more; got 0"):
        take("a", 0)


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Drawing().share = 1  # type: ignore[misc]


def test_a_mapping_of_files_is_several_and_one_of_words_is_not() -> None:
    def several(models: str | Mapping[str, Annotated[int, Bounds(1)]], pairs: str | Mapping[str, str]) -> None:
        """Do nothing."""

    models, pairs = options_of(several)
    assert models.element is not None
    assert pairs.element is None


def test_sections_end_where_the_next_begins() -> None:
    assert entries(take, "Args")["drawing"] == "how."
    assert entries(take, "Returns") == {}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_two_settings_of_a_verb_share_a_field(name: str) -> None:
    """Which of both would a keyword be for?"""
    for function in (one for one in declared(COMMANDS[name].verbs) if not isinstance(one, type)):
        for one, other in combinations(settings_of(function).values(), 2):
            assert {field.name for field in fields(one)} & {field.name for field in fields(other)} == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_verb_has_at_most_ten_keywords_of_its_own(name: str) -> None:
    def own(function: Callable[..., Any]) -> list[str]:
        return [one.name for one in options_of(function) if one.owner is None and one.keyword == one.name]

    for function in (one for one in declared(COMMANDS[name].verbs) if not isinstance(one, type)):
        assert len(own(function)) + len(settings_of(function)) <= 11, function.__name__  # with the one that is called


@pytest.mark.parametrize("name", COMMANDS)
def test_pages_of_the_reference_find_a_command_by_its_name(name: str) -> None:
    """What the module itself imports, such as a `cache`, would stand in front of it."""
    assert isinstance(getattr(derive, name.replace("-", "_")), derive.Command)


def test_help_shows_types_without_quotes_and_no_address() -> None:
    for function in (lmgauge.train, lmgauge.train_neural, lmgauge.word_surprisal):
        shown = str(inspect.signature(function))
        assert "\"'" not in shown
        assert ": '" not in shown
        assert " at 0x" not in shown
    shown = str(inspect.signature(lmgauge.train))
    assert shown.startswith("(kind: SmoothingKind | NeuralKind, texts: Text | None = None, *, output: PathLike")
