"""Digests by which two requests are known to be alike. Pure.

*Exactly the same* is the same request: agent, policy, step and all actions; such gates may be decided by one order.
*Of one kind* are gates that people read alike, so that they may select them together. *The same* is one action: its
tool with its arguments. By the same agent it is another attempt, and after rejections it has to wait; done for any run
of the team it is a risk. The same *key fields* are the pinned arguments, where they are at least two and one of them
names something: an amount or an address alone is no sign of the same. The same *resource* is the one thing that a card
says it acts on; that alone makes nothing the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from checkpoints.values import digests, json_pointer

from .action import Action
from .card import Card

NAMES = re.compile(r"(?=.*[^\W\d_]).{4,}", re.DOTALL)  # a text that may name something: no figure, no currency's code
KEY_FIELDS = 2  # pinned arguments at least


class Likeness(NamedTuple):
    """Digests by which an action, as it may run or is asked about, is found again in its team; "" for none."""

    arguments: str = ""
    key: str = ""
    resource: str = ""


def request_digest(agent: str, policy: str, step: str, card: Card) -> str:
    """Return a digest that gates share where they ask for exactly the same; "" for a question or without actions."""
    if card.question is not None or not card.actions:
        return ""
    actions = [{"tool": each.tool, "arguments": each.arguments} for each in card.actions]
    return digests.of_value({"agent": agent, "policy": policy, "step": step, "actions": actions}).hex()


def draw_digest(team: int, agent: str, policy: str, step: str, card: Card) -> str:
    """Return a digest of what a card asks for, by key fields where it has them; "" without actions.

    Whoever changes a word beside these asks for the same.
    """
    alike = [likeness_of(team, each, "") for each in card.actions]
    asked = [each.key or each.arguments for each in alike]
    return digests.of_value({"agent": agent, "policy": policy, "step": step, "actions": asked}).hex() if asked else ""


def kind_digest(agent: str, policy: int, step: str, kind: str, card: Card) -> str:
    """Return a text that gates of one kind share: they ask about the same tools, with the same verdicts."""
    tools = sorted({(action.tool, *action.verdicts) for action in card.actions})
    return digests.of_value([agent, step, policy, kind, [list(each) for each in tools]]).hex()[:16]


def tools_digest(card: Card) -> str:
    """Return a digest that cards share which ask for the same tools, with whatever arguments."""
    return _digest(sorted({action.tool for action in card.actions}))


def attempt_digests(agent: str, actions: Iterable[Action]) -> list[str]:
    """Return digests of which two gates of a team share one where the agent asks for the same again."""
    asked = [{"agent": agent, "tool": each.tool, "arguments": each.arguments} for each in actions]
    return sorted({_digest(each) for each in asked})


def likeness_of(team: int, action: Action | None, resource: str) -> Likeness:
    """Return the digests of an action in a team; None: of what is no action of the card. No two teams share one."""
    about = " ".join(resource.split())
    of_resource = _digest({"team": team, "resource": about}) if about else ""
    if action is None:
        return Likeness(resource=of_resource)
    known = action.derived.setdefault("likeness", {})
    if team not in known:
        known[team] = _own(team, action)
    arguments, key = known[team]
    return Likeness(arguments, key, of_resource)


def _own(team: int, action: Action) -> tuple[str, str]:
    pinned = {place: json_pointer.get(action.arguments, place) for place in action.pinned}
    named = [value for value in pinned.values() if isinstance(value, str) and NAMES.fullmatch(value.strip())]
    key = {"team": team, "tool": action.tool, "key": pinned} if named and len(pinned) >= KEY_FIELDS else None
    same = {"team": team, "tool": action.tool, "arguments": action.arguments}
    return _digest(same), _digest(key) if key else ""


def _digest(value: Any) -> str:
    return digests.of_value(value).hex()[:32]
