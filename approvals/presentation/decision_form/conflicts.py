"""Merges what the reader typed over an earlier version of the proposal into the form of the current one.

A conflict stays in the form until its sender says whose value counts: a hidden field holds what they typed, and nothing
is sent while one is undecided. So it outlives a reload, a draft, and further versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.decisions import edit_state
from approvals.errors import Problem, make_problem
from approvals.forms import merging, names
from checkpoints.values import json_pointer

from . import actions, left_out

CONFLICT, COUNTS = "conflict.", "counts."  # before an input's name: what was typed, and whose value counts
MINE, THEIRS = "mine", "theirs"
STATE = "state"  # the input of the whole state
CHOOSE = "You changed this, and so did somebody else. Choose whose value counts."


@dataclass(frozen=True, kw_only=True)
class OpenConflict:
    """A text that was typed, where others changed the same. `counts`: MINE, THEIRS, or "" while undecided."""

    mine: str
    counts: str = ""


@dataclass(frozen=True, kw_only=True)
class ShownConflict:
    """A conflict on the page. `theirs` is None where the field is gone: then there is nothing to choose but that."""

    name: str  # of the input
    action: str  # its title
    label: str
    mine: str
    theirs: str | None
    counts: str
    field: str = ""  # the id of the input


def found_in(form: Mapping[str, str]) -> dict[str, OpenConflict]:
    """Return the conflicts of a posted form, by input."""
    found = {name.removeprefix(CONFLICT): text for name, text in form.items() if name.startswith(CONFLICT)}
    return {name: OpenConflict(mine=text, counts=form.get(COUNTS + name, "")) for name, text in found.items()}


def settled(form: Mapping[str, str], open_ones: Mapping[str, OpenConflict]) -> Mapping[str, str]:
    """Return a form without the typed texts in whose place their sender takes the current values."""
    taken = {name for name, each in open_ones.items() if each.counts == THEIRS}
    return {name: text for name, text in form.items() if name not in taken} if taken else form


def undecided(open_ones: Mapping[str, OpenConflict], card: Card) -> list[Problem]:
    """List a problem for each conflict about which nothing is chosen."""
    found = []
    for name, each in open_ones.items():
        if each.counts not in (MINE, THEIRS):
            if is_of_state(name):
                found.append(edit_state.fault(CHOOSE, pointer_of(name)))
                continue
            prefix = names.split(name)[0]
            action = next((one for one in card.actions if actions.prefix(one) == prefix), None)
            found.append(make_problem(CHOOSE, action=action.id if action else "", pointer=pointer_of(name)))
    return found


def merged(
    posted: Mapping[str, str], before: Card, now: Card, known: Mapping[str, OpenConflict]
) -> tuple[dict[str, str], dict[str, OpenConflict]]:
    """Merge the texts that were typed over the card `before` into the card as it is `now`: (texts, conflicts)."""
    texts: dict[str, str] = {}
    found: dict[str, OpenConflict] = {name: each for name, each in known.items() if not each.counts}
    for action in before.actions:
        if not action.editable:
            continue
        typed, next_one = actions.form_of(action, posted), now.action(action.id)
        old = actions.form_of(action, left_out.composed(posted, action, typed)[0])
        open_ones = [name for name in found if names.split(name)[0] == actions.prefix(action)]
        made = merging.merged(old, _drawn(next_one), {name: found.pop(name).mine for name in open_ones})
        secret = {each.name for each in old.fields if each.kind == "secret"}
        texts |= made.texts | names.display_marks(posted, actions.prefix(action))
        found |= {name: OpenConflict(mine=text) for name, text in made.conflicts.items() if name not in secret}
    return texts, found


def _drawn(action: Action | None) -> merging.Drawn | None:
    return (lambda texts: actions.form_of(action, texts)) if action is not None and action.editable else None


def shown(open_ones: Mapping[str, OpenConflict], sheets: Sequence[actions.ActionSheet]) -> list[ShownConflict]:
    """List the conflicts for the page, in which each still is one."""
    found = []
    for name, each in open_ones.items():
        if is_of_state(name):
            continue
        prefix, mark, path = names.split(name)
        sheet = next((one for one in sheets if one.prefix == prefix), None)
        now = merging.rendered(sheet.form).get(name) if sheet and sheet.form else None
        if now == each.mine:
            continue
        node = next((field for field in sheet.fields if field.name == name), None) if sheet else None
        words = [_order(text) if mark == names.ORDER else text for text in (each.mine, now or "")]
        found.append(
            ShownConflict(
                name=name, action=sheet.named if sheet else "", label=node.label if node else _label(path, mark),
                mine=words[0], theirs=None if now is None else words[1], counts=each.counts,
                field=node.id if node else "",
            )
        )  # fmt: skip
    return found


def of_state(pointer: str) -> str:
    """Return the name of a conflict about a place of the whole state."""
    return STATE + "".join("/" + names.encoded(token) for token in json_pointer.split_pointer(pointer))


def is_of_state(name: str) -> bool:
    """Tell whether a conflict is about a place of the whole state."""
    return name.startswith(STATE + "/")


def pointer_of(name: str) -> str:
    """Return the place that a conflict is about."""
    return json_pointer.join("", *map(names.decoded, names.split(name)[2].split("/")[1:]))


def _label(path: str, mark: str) -> str:
    words = " ".join(_part(each) for each in path.split("/")[1:]).replace("_", " ")
    return f"Items of {words}" if mark == names.ORDER else words


def _part(token: str) -> str:
    """Write a token of a path for people; the number of an item that is gone, from 1."""
    number = token.removeprefix(names.GONE)
    return str(int(number) + 1) if number != token and number.isdecimal() else names.decoded(token)


def _order(text: str) -> str:
    """Write the order of a list for people: the numbers of its items, from 1."""
    ids = names.ids_of(text)
    return ", ".join(
        "a new one" if names.is_new(each) else str(int(each) + 1 if each.isdigit() else each) for each in ids
    )
