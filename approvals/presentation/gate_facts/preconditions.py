"""Prepares a gate's preconditions for its page: the box of each, and whether it counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from approvals.cards.card import Card
from approvals.cards.precondition import Precondition

FIELD = "only_if."  # before the id, in the name of a check box
OFFERED = "offered."  # before the id, in the name of the hidden field beside it, as an unticked box posts nothing


@dataclass(frozen=True, kw_only=True)
class ShownPrecondition:
    """One precondition, with its box."""

    precondition: Precondition
    ticked: bool
    effects: Sequence[str]  # the effects before which it is checked
    counts: bool  # at a closed gate: it was added, or required

    @property
    def name(self) -> str:
        """Return the name of its check box in the form."""
        return FIELD + self.precondition.id

    @property
    def beside(self) -> str:
        """Return the name of the hidden field that says that the box was on the page."""
        return OFFERED + self.precondition.id


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
