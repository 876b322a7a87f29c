"""Differences between values, exact to the type: 1, 1.0 and true are three values, and so are 0.0 and -0.0.

`diff` gives a JSON Patch (RFC 6902) of add, remove and replace, `apply` runs any patch, `list_changes` gives the rows
of a table for people. Lists are compared after their common head and tail, item by item: what moved, what came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from checkpoints.errors import ValueRefused

from .artifacts import MARK
from .canonical_json import encode_canonical
from .json_pointer import INDEX, find_value, has_value, make_pointer, split_pointer
from .list_alignment import AlignedItem, align_items, shared_ends

Op = dict[str, Any]
COPIED = 1_000_000  # values that the copies of one patch may make: each copy may double those before it
_MISSING = object()


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
