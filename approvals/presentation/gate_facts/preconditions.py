"""Prepares a gate's preconditions for its page: the agent's words, the observed value, and whether each counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from approvals.cards.card import Card

FIELD = "only_if."  # before the id, in the name of a check box
OFFERED = "offered."  # before the id, in the name of the hidden field beside it, as an unticked box posts nothing


@dataclass(frozen=True, kw_only=True)
class ShownPrecondition:
    """One precondition. `before` and `after` are the agent's words around the observed value."""

    id: str
    before: str
    after: str
    value: Any
    required: bool
    ticked: bool
    effects: Sequence[str]  # the effects before which it is checked
    counts: bool = False  # at a closed gate: it was added, or required

    @property
    def name(self) -> str:
        """Return the name of its check box in the form."""
        return FIELD + self.id

    @property
    def beside(self) -> str:
        """Return the name of the hidden field that says that the box was on the page."""
        return OFFERED + self.id


def shown(card: Card, *, ticked: Collection[str] | None, counted: Collection[str] = ()) -> list[ShownPrecondition]:
    """List all preconditions of the card; `ticked` None: as the agent suggests."""
    return [
        ShownPrecondition(
            id=each.id,
            before=each.around()[0],
            after=each.around()[1],
            value=each.value,
            required=each.required,
            ticked=each.required or (each.preselected if ticked is None else each.id in ticked),
            effects=tuple(each.effects) or tuple(card.allows),
            counts=each.id in counted,
        )
        for each in card.preconditions
    ]


def added(card: Card, ids: Collection[str]) -> list[ShownPrecondition]:
    """List the card's preconditions with these ids, which somebody added."""
    return [each for each in shown(card, ticked=ids) if each.id in ids]


def ticked_in(form: Mapping[str, str], card: Card) -> list[str]:
    """List the ids whose boxes are ticked in a posted form, even unknown ones.

    A preselected one counts as unticked only where its box was in the form.
    """
    ticked = [name.removeprefix(FIELD) for name in form if name.startswith(FIELD)]
    unasked = [each.id for each in card.preconditions if each.preselected and OFFERED + each.id not in form]
    return [*ticked, *(each for each in unasked if each not in ticked)]


def dropped(card: Card, ticked: Collection[str]) -> list[str]:
    """List the ids of the preselected ones that somebody unticked."""
    offered = [each for each in card.preconditions if each.preselected and not each.required]
    return [each.id for each in offered if each.id not in ticked]


def world_rows(card: Card, *, of_world: bool) -> list[dict[str, Any]]:
    """List the changes for which a card is asked again: those in the world, or those in the run."""
    rows = (card.reopened or {}).get("changes", [])
    return [row for row in rows if (row["of"] == "world") is of_world]
