"""Differences between values, exact to the type: 1, 1.0 and true are three values, and so are 0.0 and -0.0.

`diff` gives a JSON Patch (RFC 6902) of add, remove and replace, `apply` runs any patch, `changes` gives the rows
of a table for people. Lists are compared after their common head and tail, position by position; linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .errors import ValueRefused
from .values import canonical, pointer

Op = dict[str, Any]
_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")
_MISSING = object()


def same(a: Any, b: Any) -> bool:
    """Whether two values are one value: equal, and of the same types throughout."""
    return canonical(a) == canonical(b)


def diff(a: Any, b: Any) -> list[Op]:
    """A JSON Patch that turns `a` into `b`."""
    return list(_diff((), a, b))


def touched(operations: Iterable[Op]) -> set[str]:
    """The top-level members that a patch reaches into."""
    places = [each[word] for each in operations for word in ("path", "from") if word in each]
    return {tokens(place)[0] for place in places if tokens(place)}


def _diff(path: tuple[str | int, ...], a: Any, b: Any) -> Iterator[Op]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() - b.keys()):
            yield {"op": "remove", "path": pointer(*path, key)}
        for key in sorted(b):
            if key not in a:
                yield {"op": "add", "path": pointer(*path, key), "value": b[key]}
            else:
                yield from _diff((*path, key), a[key], b[key])
    elif isinstance(a, list) and isinstance(b, list):
        yield from _diff_lists(path, a, b)
    elif not same(a, b):
        yield {"op": "replace", "path": pointer(*path), "value": b}


def _diff_lists(path: tuple[str | int, ...], a: list[Any], b: list[Any]) -> Iterator[Op]:
    head, tail = _shared(a, b)
    old, new = len(a) - head - tail, len(b) - head - tail
    for i in range(head, head + min(old, new)):
        yield from _diff((*path, i), a[i], b[i])
    for i in range(head + old - 1, head + new - 1, -1):
        yield {"op": "remove", "path": pointer(*path, i)}
    for i in range(head + old, head + new):
        yield {"op": "add", "path": pointer(*path, i), "value": b[i]}


def _shared(a: list[Any], b: list[Any]) -> tuple[int, int]:
    """How many items the two lists share at their head, and at their tail."""
    left, right = [canonical(item) for item in a], [canonical(item) for item in b]
    most = min(len(a), len(b))
    head = next((i for i in range(most) if left[i] != right[i]), most)
    return head, next((i for i in range(most - head) if left[-1 - i] != right[-1 - i]), most - head)


def changes(a: Any, b: Any) -> list[dict[str, Any]]:
    """What differs, as rows {"pointer", "kind": "added" | "removed" | "changed", "before", "after"}.

    A pointer names a place in `b`, for what was removed in `a`. `before` is absent where something was added,
    `after` where it was removed.
    """
    return list(_changes((), a, b))


def _changes(path: tuple[str | int, ...], a: Any, b: Any) -> Iterator[dict[str, Any]]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            yield from _changes((*path, key), a.get(key, _MISSING), b.get(key, _MISSING))
    elif isinstance(a, list) and isinstance(b, list):
        head, tail = _shared(a, b)
        old, new = a[head : len(a) - tail], b[head : len(b) - tail]
        for i in range(max(len(old), len(new))):
            before = old[i] if i < len(old) else _MISSING
            yield from _changes((*path, head + i), before, new[i] if i < len(new) else _MISSING)
    elif a is _MISSING:
        yield {"pointer": pointer(*path), "kind": "added", "after": b}
    elif b is _MISSING:
        yield {"pointer": pointer(*path), "kind": "removed", "before": a}
    elif not same(a, b):
        yield {"pointer": pointer(*path), "kind": "changed", "before": a, "after": b}


def tokens(text: str) -> list[str]:
    """The path of a JSON Pointer. Raises ValueRefused."""
    if text and not text.startswith("/"):
        raise ValueRefused(text, "is no JSON Pointer")
    return [token.replace("~1", "/").replace("~0", "~") for token in text.split("/")[1:]]


def find(value: Any, at: str) -> Any:
    """What a JSON Pointer names in `value`. Raises ValueRefused where there is nothing."""
    for token in tokens(at):
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and _INDEX.fullmatch(token) and int(token) < len(value):
            value = value[int(token)]
        else:
            raise ValueRefused(at, "names nothing here")
    return value


def apply(patch: list[Op], value: Any) -> Any:
    """The value after the patch; `value` is left alone. Raises ValueRefused with the pointer that does not fit."""
    for op in patch:
        if not isinstance(op, dict) or not isinstance(op.get("path"), str):
            raise ValueRefused("", "has an operation without a path")
        value = _apply_one(op, value)
    return value


def _apply_one(op: Op, value: Any) -> Any:
    verb, at = op.get("op"), op["path"]
    if verb in ("add", "replace", "test") and "value" not in op:
        raise ValueRefused(at, f"{verb} lacks a value")
    if verb == "test":
        if not same(find(value, at), op["value"]):
            raise ValueRefused(at, "is not what the patch expects")
        return value
    if verb in ("add", "replace", "remove"):
        return _edit(value, tokens(at), at, verb, op.get("value"))
    if verb in ("move", "copy"):
        source = op.get("from")
        if not isinstance(source, str) or (verb == "move" and at.startswith(source + "/")):
            raise ValueRefused(at, f"{verb} has no fitting source")
        moved = find(value, source)
        if verb == "move":
            value = _edit(value, tokens(source), source, "remove", None)
        return _edit(value, tokens(at), at, "add", moved)
    raise ValueRefused(at, f"{verb!r} is no operation")


def _edit(value: Any, path: list[str], at: str, verb: str, new: Any) -> Any:
    """A copy of `value` along the path, changed at its end."""
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


def _edit_object(made: dict[str, Any], step: str, rest: list[str], at: str, verb: str, new: Any) -> Any:
    if (rest or verb != "add") and step not in made:
        raise ValueRefused(at, "names nothing here")
    if rest:
        made[step] = _edit(made[step], rest, at, verb, new)
    elif verb == "remove":
        del made[step]
    else:
        made[step] = new
    return made


def _edit_list(made: list[Any], step: str, rest: list[str], at: str, verb: str, new: Any) -> Any:
    adds = verb == "add" and not rest
    if step == "-" and adds:
        return [*made, new]
    if not _INDEX.fullmatch(step) or int(step) >= len(made) + adds:
        raise ValueRefused(at, "names nothing here")
    index = int(step)
    change: dict[str, Callable[[], None]] = {
        "add": lambda: made.insert(index, new),
        "remove": lambda: made.__delitem__(index),
        "replace": lambda: made.__setitem__(index, new),
    }
    if rest:
        made[index] = _edit(made[index], rest, at, verb, new)
    else:
        change[verb]()
    return made
