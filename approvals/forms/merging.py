"""Merges what was typed over one version of a value into the form of another, by three ways: field by field. Pure.

A field that only the reader changed keeps their text, one that only others changed has its new value, and a long text
that both changed is merged by lines. What cannot be merged is a conflict, in which both texts stand; so is a text whose
place is gone. Nothing that was typed is ever dropped: it is among the merged texts, or in a conflict.

An item of a list that others changed may have another number now: what was typed into it follows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from checkpoints.values import json_pointer
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.patch import are_same, shared_ends

from . import names
from .build import Form
from .builder import normalise_text
from .nodes import MISSING, FormField, FormNode, ItemRows, ShapeChoice

LINES = 2_000  # of a text that is merged by lines; a longer one that both changed is a conflict
PROSE = ("text", "long")
Drawn = Callable[[Mapping[str, str]], Form]  # a form of the new value, with these texts typed into it


class MergedStretch(NamedTuple):
    """A stretch of the sequence as it was, as the one made it, and as the other did."""

    was: Sequence[str]
    mine: Sequence[str]
    theirs: Sequence[str]

    @property
    def merged(self) -> Sequence[str] | None:
        """Return the stretch after both changes; None where they oppose each other."""
        if self.mine in (self.theirs, self.was):
            return self.theirs
        return self.mine if self.theirs == self.was else None


def merge_stretches(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> Iterator[MergedStretch]:
    """Yield the stretches in order; changes that nothing unchanged parts are one stretch, as in `diff3`."""
    sides = [_changes(base, mine), _changes(base, theirs)]
    ends, at = [0, 0], 0  # where each side and the base go on
    while sides[0] or sides[1]:
        low = high = min(changes[0][0] for changes in sides if changes)
        taken: list[list[tuple[int, int, int]]] = [[], []]
        while touching := [side for side in (0, 1) if sides[side] and sides[side][0][0] <= high]:
            side = min(touching, key=lambda side: sides[side][0][0])
            taken[side].append(sides[side].pop(0))
            high = max(high, taken[side][-1][1])
        starts = [end + low - at for end in ends]
        # What a side changed moved the rest of it.
        stops = [start + high - low + sum(grown for *_, grown in taken[side]) for side, start in enumerate(starts)]
        yield from _same(base[at:low])
        yield MergedStretch(base[low:high], mine[starts[0] : stops[0]], theirs[starts[1] : stops[1]])
        ends, at = stops, high
    yield from _same(base[at:])


def _same(part: Sequence[str]) -> Iterator[MergedStretch]:
    if part:
        yield MergedStretch(part, part, part)


def _changes(base: Sequence[str], side: Sequence[str]) -> list[tuple[int, int, int]]:
    """List (from, to, by how many items it grew) for each change, by places in `base`."""
    found = SequenceMatcher(None, base, side).get_opcodes()
    return [(a, b, d - c - (b - a)) for verb, a, b, c, d in found if verb != "equal"]


@dataclass(frozen=True, kw_only=True)
class MergedTexts:
    """Texts by input for the new version's form; `conflicts`: those inputs whose typed text opposes a newer one."""

    texts: dict[str, str] = field(default_factory=dict)
    conflicts: dict[str, str] = field(default_factory=dict)  # name -> what was typed


def merged(old: Form, new: Drawn | None, known: Mapping[str, str] | None = None) -> MergedTexts:
    """Merge what was typed into `old` into the form that `new` draws; None where the whole value is gone.

    `known`: the conflicts that are open in `old`, which stay open wherever their inputs are now.
    """
    typed, known = old.touched, known or {}
    if not typed and not known:
        return MergedTexts()
    if new is None:
        return MergedTexts(conflicts={**known, **typed})
    blank = new({name: text for name, text in typed.items() if names.split(name)[1] != names.ORDER})
    places = ItemPlaces.between(old, blank)
    moved = {name: places.moved(name) for name in typed}
    before, now = rendered(old), rendered(blank)
    form = new({to: _everything(to, typed[name], now) for name, to in moved.items() if to is not None})
    now, kinds = rendered(form), {field.name: field.kind for field in form.fields}
    texts: dict[str, str] = {}
    conflicts = {places.moved(name) or places.gone(name): mine for name, mine in known.items()}
    for name, mine in typed.items():
        to = moved[name]
        if to is None or (to not in now and names.split(to)[1] not in (names.KEY, names.FILE)):
            conflicts[to or places.gone(name)] = mine
            continue
        base, theirs = before.get(name, ""), now.get(to, "")
        joined: str | None
        if names.split(to)[1] == names.ORDER:
            joined, opposed = order(places.ids(name, base), places.ids(name, mine), names.ids_of(theirs))
        else:
            joined, opposed = three_ways(base, mine, theirs, lines=kinds.get(to) in PROSE)
        text = mine if joined is None else joined
        if opposed:
            conflicts[to] = text
        texts[to] = text
    return MergedTexts(texts={name: text for name, text in texts.items() if text != now.get(name)}, conflicts=conflicts)


def three_ways(base: str, mine: str, theirs: str, *, lines: bool = False) -> tuple[str | None, bool]:
    """Return (the text of both changes, False), or (None, True) where they oppose each other."""
    if mine in (theirs, base):
        return theirs, False
    if theirs == base:
        return mine, False
    versions = [_lines(text) for text in (base, mine, theirs)]
    if not lines or max(map(len, versions)) > LINES:
        return None, True
    merged = [stretch.merged for stretch in merge_stretches(*versions)]
    return (None, True) if None in merged else ("".join(line for part in merged for line in part or ()), False)


def values(base: Any, mine: Any, theirs: Any, at: str = "") -> tuple[Any, list[str]]:
    """Merge two changes of a value, member by member: (the merged value, the pointers at which they oppose each other).

    There, and in a list that both changed, it holds `mine`. MISSING stands for a member that is not there.
    """
    if same_or_missing(mine, theirs) or same_or_missing(mine, base):
        return theirs, []
    if same_or_missing(theirs, base):
        return mine, []
    if isinstance(mine, dict) and isinstance(theirs, dict):
        was = base if isinstance(base, dict) else {}
        whole: dict[str, Any] = {}
        opposed: list[str] = []
        for name in dict.fromkeys([*theirs, *mine]):
            first, own, now = (item.get(name, MISSING) for item in (was, mine, theirs))
            value, wrong = values(first, own, now, json_pointer.join(at, name))
            opposed += wrong
            whole |= {} if value is MISSING else {name: value}
        return whole, opposed
    if all(isinstance(item, str) for item in (base, mine, theirs)):
        text, failed = three_ways(base, mine, theirs, lines=True)
        return (mine, [at]) if failed else (text, [])
    return mine, [at]


def same_or_missing(first: Any, second: Any) -> bool:
    """Tell whether two values are the same, or neither is there."""
    return first is second or (MISSING not in (first, second) and are_same(first, second))


def order(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> tuple[str, bool]:
    """Return (the order of a list after both changes, whether they oppose each other). No item of either is dropped.

    An item that one took out and the other moved or replaced beside stays in.
    """
    ids: list[str] = []
    opposed = False
    for stretch in merge_stretches(base, mine, theirs):
        if stretch.merged is None:
            opposed = opposed or _opposed(stretch)
            ids += [*stretch.mine, *(number for number in stretch.theirs if number not in stretch.mine)]
        else:
            ids += stretch.merged
    whole = [*ids, *(word for word in mine if names.is_new(word) and word not in ids)]
    return names.order_of(list(dict.fromkeys(whole))), opposed


def rendered(form: Form) -> dict[str, str]:
    """Return the text of every input, by its name, as it was before anybody typed."""
    found: dict[str, str] = {}
    for node in form.nodes:
        if isinstance(node, FormField):
            found |= {node.name: node.rendered} | ({node.zone_name: node.zone_rendered} if node.zone_name else {})
        elif isinstance(node, ItemRows):
            found[node.order_name] = node.rendered
        elif isinstance(node, ShapeChoice):
            found[node.name] = node.rendered
    return found


def is_as_rendered(texts: Mapping[str, str], posted: Mapping[str, str], prefix: str) -> bool:
    """Tell whether a form came back with the `texts` that it was rendered with, as far as it came back.

    Then nobody typed into it, and its value is the rendered one. A box beside an input has the prefix in its name.
    """
    for name, text in posted.items():
        belongs_to, mark, _ = names.split(name)
        if prefix not in belongs_to or mark in (names.PAGE, names.OPEN):
            continue
        if name not in texts or normalise_text(text) != normalise_text(texts[name]):
            return False
    return True


@dataclass(frozen=True)
class ItemPlaces:
    """The new numbers of the items of lists that others changed: path of the list -> old id -> new id, or None."""

    lists: Mapping[str, Mapping[str, str | None]]

    @classmethod
    def between(cls, old: Form, new: Form) -> ItemPlaces:
        """Find each list of the old form again in the new one, and pair their items."""
        places = cls(found := {})
        there: dict[str, FormNode] = {node.path: node for node in new.nodes if isinstance(node, ItemRows)}
        for node in old.nodes:  # the outermost first, so that what contains a list is placed before it
            if isinstance(node, ItemRows) and isinstance(node.was, list):
                path = places.path(node.path)
                now = there.get(path) if path is not None else None
                found[node.path] = _paired(node.was, now.was if now is not None else None)
        return places

    def path(self, path: str) -> str | None:
        """Return where a place is now; None where it is gone."""
        old = now = ""
        for token in path.split("/")[1:]:
            known = self.lists.get(old)
            to = token if known is None or names.is_new(token) else known.get(token)
            if to is None:
                return None
            old, now = f"{old}/{token}", f"{now}/{to}"
        return now

    def moved(self, name: str) -> str | None:
        """Return the name of the same input now; None where its place is gone."""
        prefix, mark, path = names.split(name)
        now = self.path(path)
        return None if now is None else prefix + mark + now

    def gone(self, name: str) -> str:
        """Return a name for what was typed into an item that is gone: its number may be another item's now."""
        prefix, mark, path = names.split(name)
        tokens = path.split("/")
        at = next((at for at in range(1, len(tokens)) if self.path("/".join(tokens[: at + 1])) is None), 0)
        if not at or tokens[at].startswith(names.GONE):
            return name
        there = self.path("/".join(tokens[:at])) or ""
        return "/".join([f"{prefix}{mark}{there}", names.GONE + tokens[at], *tokens[at + 1 :]])

    def ids(self, name: str, text: str) -> list[str]:
        """Return an order's ids as they are now, without items that are gone."""
        known = self.lists.get(names.split(name)[2], {})
        now = [word if names.is_new(word) else known.get(word, word) for word in names.ids_of(text)]
        return [word for word in now if word is not None]


def _paired(old: list[Any], new: Any) -> dict[str, str | None]:
    if not isinstance(new, list):
        return {str(at): None for at in range(len(old))}
    if are_same(old, new):
        return {str(at): str(at) for at in range(len(old))}
    item, two = [encode_canonical(item) for item in old], [encode_canonical(item) for item in new]
    pairs = dict(_neighbours(item, two))
    seen, taken = Counter(item), set(pairs.values())
    many = Counter(two)
    left = {key: at for at, key in enumerate(two) if at not in taken and many[key] == 1}  # it was moved
    pairs |= {at: left[key] for at, key in enumerate(item) if at not in pairs and key in left and seen[key] == 1}
    return {str(at): str(pairs[at]) if at in pairs else None for at in range(len(old))}


def _neighbours(before: Sequence[bytes], after: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Pair equal items, and changed ones where as many stand between the same neighbours: no other pair is certain."""
    head, tail = shared_ends(before, after)
    yield from ((at, at) for at in range(head))
    yield from ((len(before) - at, len(after) - at) for at in range(1, tail + 1))
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    whole = [("replace", 0, len(old), 0, len(new))]
    for verb, a, b, c, d in whole if max(len(old), len(new)) > LINES else SequenceMatcher(None, old, new).get_opcodes():
        if verb == "equal" or (verb == "replace" and b - a == d - c):
            yield from zip(range(head + a, head + b), range(head + c, head + d), strict=True)


def _everything(name: str, text: str, now: Mapping[str, str]) -> str:
    """Return a typed text; of an order, one in which the items of both versions are, so that all have their inputs."""
    if names.split(name)[1] != names.ORDER:
        return text
    mine = [word for word in names.ids_of(text) if names.is_new(word)]
    return names.order_of([*names.ids_of(now.get(name, "")), *mine])


def _opposed(stretch: MergedStretch) -> bool:
    """Tell whether two changes of the same stretch differ in what they keep of it, or in its order."""
    mine, theirs = ([item for item in side if item in stretch.was] for side in (stretch.mine, stretch.theirs))
    return mine != theirs


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
