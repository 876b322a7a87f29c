"""Differences between values, exact to the type: 1, 1.0 and true are three values, and so are 0.0 and -0.0.

`diff` gives a JSON Patch (RFC 6902) of add, remove and replace, `apply` runs any patch, `list_changes` gives the rows
of a table for people. Lists are compared after their common head and tail, item by item: what was kept, moved, changed,
added or removed. Equal items are found by their canonical bytes. Of the rest, an item of the old list and one of the
new count as one changed item if they share the most members, in order; past `PAIRED` items simply in order, so that the
cost is linear in the length of long lists.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from checkpoints.errors import ValueRefused

from .artifacts import MARK
from .canonical_json import encode_canonical
from .json_pointer import INDEX, find_value, has_value, make_pointer, split_pointer

Op = dict[str, Any]
COPIED = 1_000_000  # values that the copies of one patch may make: each copy may double those before it
_MISSING = object()
PAIRED = 40  # items on either side whose similarity is measured


def are_same(a: Any, b: Any) -> bool:
    """Tell whether two values are the same: equal, and of the same types throughout."""
    return encode_canonical(a) == encode_canonical(b)


def diff(a: Any, b: Any) -> list[Op]:
    """Make a JSON Patch that turns `a` into `b`."""
    return list(_diff((), a, b))


def touched_members(operations: Iterable[Op]) -> set[str]:
    """Return the top-level members that a patch reaches into."""
    places = [operation[word] for operation in operations for word in ("path", "from") if word in operation]
    return {split_pointer(place)[0] for place in places if split_pointer(place)}


def _diff(path: tuple[str | int, ...], a: Any, b: Any) -> Iterator[Op]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() - b.keys()):
            yield {"op": "remove", "path": make_pointer(*path, key)}
        for key in sorted(b):
            if key not in a:
                yield {"op": "add", "path": make_pointer(*path, key), "value": b[key]}
            else:
                yield from _diff((*path, key), a[key], b[key])
    elif isinstance(a, list) and isinstance(b, list):
        yield from _diff_lists(path, a, b)
    elif not are_same(a, b):
        yield {"op": "replace", "path": make_pointer(*path), "value": b}


def _diff_lists(path: tuple[str | int, ...], a: list[Any], b: list[Any]) -> Iterator[Op]:
    head, old, new, found = _middle(a, b)
    kept = {pair.new: pair.old for pair in found if pair.old is not None and pair.new is not None and not pair.moved}
    stays = set(kept.values())
    for i in range(len(old) - 1, -1, -1):
        if i not in stays:
            yield {"op": "remove", "path": make_pointer(*path, head + i)}
    for i in range(len(new)):
        if i not in kept:
            yield {"op": "add", "path": make_pointer(*path, head + i), "value": new[i]}
    for j, i in kept.items():
        if i is not None and j is not None:
            yield from _diff((*path, head + j), old[i], new[j])


def _middle(a: list[Any], b: list[Any]) -> tuple[int, list[Any], list[Any], list[AlignedItem]]:
    """Return (number of items shared at the head, middle of the old list, middle of the new, pairs of the middles)."""
    left, right = [encode_canonical(item) for item in a], [encode_canonical(item) for item in b]
    head, tail = shared_ends(left, right)
    ends = slice(head, len(a) - tail), slice(head, len(b) - tail)
    old, new = a[ends[0]], b[ends[1]]
    return head, old, new, align_items(old, new, (left[ends[0]], right[ends[1]]))


def list_changes(a: Any, b: Any) -> list[dict[str, Any]]:
    """List what differs, as rows {"pointer", "kind": "added" | "removed" | "changed" | "moved", "before", "after"}.

    A pointer names a place in `b`, or in `a` for what was removed. `before` is absent for what was added, `after` for
    what was removed. A moved list item has its old place in `from` and its value only in `after`; if it was changed
    too, rows for that follow. A reference to a file is one value.
    """
    return list(_changes((), a, b))


def _changes(path: tuple[str | int, ...], a: Any, b: Any) -> Iterator[dict[str, Any]]:
    if isinstance(a, dict) and isinstance(b, dict) and MARK not in a and MARK not in b:
        for key in sorted(a.keys() | b.keys()):
            yield from _changes((*path, key), a.get(key, _MISSING), b.get(key, _MISSING))
    elif isinstance(a, list) and isinstance(b, list):
        yield from _list_changes(path, a, b)
    elif a is _MISSING:
        yield {"pointer": make_pointer(*path), "kind": "added", "after": b}
    elif b is _MISSING:
        yield {"pointer": make_pointer(*path), "kind": "removed", "before": a}
    elif not are_same(a, b):
        yield {"pointer": make_pointer(*path), "kind": "changed", "before": a, "after": b}


def _list_changes(path: tuple[str | int, ...], a: list[Any], b: list[Any]) -> Iterator[dict[str, Any]]:
    head, old, new, found = _middle(a, b)
    for pair in found:
        if pair.new is None and pair.old is not None:
            yield from _changes((*path, head + pair.old), old[pair.old], _MISSING)
        elif pair.new is not None:
            at = (*path, head + pair.new)
            if pair.moved and pair.old is not None:
                place = make_pointer(*path, head + pair.old)
                yield {"pointer": make_pointer(*at), "kind": "moved", "from": place, "after": new[pair.new]}
            if not pair.same:
                yield from _changes(at, _MISSING if pair.old is None else old[pair.old], new[pair.new])


def apply(patch: list[Op], value: Any) -> Any:
    """Return the value after the patch; `value` is not changed.

    Raises ValueRefused with the pointer that does not fit.
    """
    left = COPIED
    for op in patch:
        if not isinstance(op, dict) or not isinstance(op.get("path"), str):
            raise ValueRefused("", "has an operation without a path")
        if op.get("op") == "copy" and isinstance(op.get("from"), str):
            left -= _size(find_value(value, op["from"]), left + 1)
            if left < 0:
                raise ValueRefused(op["path"], f"copies more than {COPIED:,} values; write out what is to be there")
        value = _apply_one(op, value)
    return value


def _size(value: Any, most: int) -> int:
    """Count the values in a value, itself included, up to `most`."""
    count, ahead = 0, [value]
    while ahead and count < most:
        item = ahead.pop()
        count += 1
        if isinstance(item, (dict, list)):
            ahead.extend(item.values() if isinstance(item, dict) else item)
    return count


def _apply_one(op: Op, value: Any) -> Any:
    verb, at = op.get("op"), op["path"]
    if verb in ("add", "replace", "test") and "value" not in op:
        raise ValueRefused(at, f"{verb} lacks a value")
    if verb == "test":
        if not are_same(find_value(value, at), op["value"]):
            raise ValueRefused(at, "is not what the patch expects")
        return value
    if verb in ("add", "replace", "remove"):
        return _edit(value, split_pointer(at), at, verb, op.get("value"))
    if verb in ("move", "copy"):
        source = op.get("from")
        if not isinstance(source, str) or (verb == "move" and at.startswith(source + "/")):
            raise ValueRefused(at, f"{verb} has no fitting source")
        moved = find_value(value, source)
        if verb == "move":
            value = _edit(value, split_pointer(source), source, "remove", None)
        return _edit(value, split_pointer(at), at, "add", moved)
    raise ValueRefused(at, f"{verb!r} is no operation")


def _edit(value: Any, path: list[str], at: str, verb: str, new: Any) -> Any:
    """Return a copy of `value` along the path, changed at its end."""
    if not path:
        if verb == "remove":
            raise ValueRefused(at, "the whole cannot be removed")
        return new
    token, rest = path[0], path[1:]
    if isinstance(value, dict):
        return _edit_object(dict(value), token, rest, at, verb, new)
    if isinstance(value, list):
        return _edit_list(list(value), token, rest, at, verb, new)
    raise ValueRefused(at, "names nothing here")


def _edit_object(target: dict[str, Any], step: str, rest: list[str], at: str, verb: str, new: Any) -> Any:
    if (rest or verb != "add") and step not in target:
        raise ValueRefused(at, "names nothing here")
    if rest:
        target[step] = _edit(target[step], rest, at, verb, new)
    elif verb == "remove":
        del target[step]
    else:
        target[step] = new
    return target


def _edit_list(target: list[Any], step: str, rest: list[str], at: str, verb: str, new: Any) -> Any:
    adds = verb == "add" and not rest
    if step == "-" and adds:
        return [*target, new]
    if not INDEX.fullmatch(step) or int(step) >= len(target) + adds:
        raise ValueRefused(at, "names nothing here")
    index = int(step)
    change: dict[str, Callable[[], None]] = {
        "add": lambda: target.insert(index, new),
        "remove": lambda: target.__delitem__(index),
        "replace": lambda: target.__setitem__(index, new),
    }
    if rest:
        target[index] = _edit(target[index], rest, at, verb, new)
    else:
        change[verb]()
    return target


def put(value: Any, at: str, new: Any) -> Any:
    """Set the place at the pointer to `new`: an existing place, or a new name in an object. Raises ValueRefused."""
    verb = "replace" if has_value(value, at) else "add"
    return apply([{"op": verb, "path": at, "value": new}], value)


@dataclass(frozen=True, slots=True)
class AlignedItem:
    """One item. `old` and `new` are its places; None if it is not in that list."""

    old: int | None
    new: int | None
    same: bool = False
    moved: bool = False  # its order among the remaining items has changed


def shared_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """Count the items that the two lists share at their head, and at their tail."""
    most = min(len(old), len(new))
    head = next((i for i in range(most) if old[i] != new[i]), most)
    return head, next((i for i in range(most - head) if old[-1 - i] != new[-1 - i]), most - head)


def align_items(
    old: Sequence[Any], new: Sequence[Any], keys: tuple[Sequence[bytes], Sequence[bytes]]
) -> list[AlignedItem]:
    """Pair the items of both lists, by place in the new one, then what was removed. `keys` are canonical bytes."""
    equal = _equal(*keys)
    taken = set(equal.values())
    rest = [at for at in range(len(old)) if at not in taken]
    more = [at for at in range(len(new)) if at not in equal]
    changed = dict(_alike([(at, old[at]) for at in rest], [(at, new[at]) for at in more]))
    whole = {**equal, **changed}
    still = set(find_rising_run([whole[at] for at in sorted(whole)]))
    found = [
        AlignedItem(whole[at], at, same=at in equal, moved=whole[at] not in still)
        if at in whole
        else AlignedItem(None, at)
        for at in range(len(new))
    ]
    kept = set(whole.values())
    return found + [AlignedItem(at, None) for at in range(len(old)) if at not in kept]


def find_rising_run(numbers: Sequence[int]) -> list[int]:
    """Find a longest run of rising numbers among numbers that are all different."""
    tails: list[int] = []
    ends: list[int] = []  # where the best run of each length ends
    before: list[int] = []
    for at, number in enumerate(numbers):
        length = bisect_left(tails, number)
        tails[length : length + 1] = [number]
        ends[length : length + 1] = [at]
        before.append(ends[length - 1] if length else -1)
    found, at = [], ends[-1] if ends else -1
    while at >= 0:
        found.append(numbers[at])
        at = before[at]
    return found[::-1]


def _equal(old: Sequence[bytes], new: Sequence[bytes]) -> dict[int, int]:
    """Map new place -> old place of equal items, each taken once."""
    places: dict[bytes, list[int]] = {}
    for at in range(len(old) - 1, -1, -1):
        places.setdefault(old[at], []).append(at)
    return {at: places[key].pop() for at, key in enumerate(new) if places.get(key)}


def _alike(old: Sequence[tuple[int, Any]], new: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, int]]:
    """Yield (new place, old place) of items that were changed, in order."""
    if len(old) > PAIRED or len(new) > PAIRED:
        yield from ((n, o) for (o, _), (n, _) in zip(old, new, strict=False))
        return
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            paired = best[i + 1][j + 1] + likeness(old[i][1], new[j][1])
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    i = j = 0
    while i < len(old) and j < len(new):
        if best[i][j] == best[i + 1][j + 1] + likeness(old[i][1], new[j][1]):
            yield new[j][0], old[i][0]
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1


def likeness(item: Any, other: Any) -> float:
    """Measure how much two items share; always above 0, so that a pair beats a removal and an addition."""
    if isinstance(item, dict) and isinstance(other, dict):
        return 0.01 + sum(1 for name, value in item.items() if name in other and other[name] == value)
    return 0.01 if type(item) is type(other) else 0.005
