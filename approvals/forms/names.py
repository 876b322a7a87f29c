"""The names of inputs: a prefix, then the path of the value. Pure.

A path is a JSON Pointer in plain ASCII: characters that HTML or a browser would alter, invisible characters and
look-alikes are percent-encoded. Marks stand between the prefix and the path:
`args.refund!order/lines`. No action's id holds a `!` or a `/`, and no escaped token begins with `~n` or `~g`, so none
of these can be confused.

A form's buttons work without JavaScript: add, remove, restore, move, open, turn a page. A button posts `change` with
the name of a place and what to do there: `args.refund/lines/2:remove`. The form comes back with everything that was
typed, and the marks that give the items' order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

from checkpoints.values import json_pointer

NEW = "~new"  # begins the id of an item that the reader added
GONE = "~gone"  # begins the number that an item had which others took out
ORDER, BRANCH, KEY, ZONE, PAGE, OPEN, FILE = "!order", "!branch", "!key", "!zone", "!page", "!open", "!file"
_ALTERED = re.compile(r"[^!-~]|%")  # characters that are percent-encoded in a path
_MARKED = re.compile(r"(?P<prefix>[^/!]*)(?P<mark>![a-z]+)?(?P<path>(/.*)?)", re.DOTALL)


def encoded(token: str) -> str:
    """Encode one name of an object, or one index, as a path's token."""
    return _ALTERED.sub(lambda match: quote(match[0], safe=""), json_pointer.make_pointer(token)[1:])


def decoded(token: str) -> str:
    """Return the name that a path's token encodes."""
    return json_pointer.split_pointer("/" + unquote(token).replace("/", "~1"))[0]


def split(name: str) -> tuple[str, str, str]:
    """Split an input's name into (prefix, mark, path)."""
    found = _MARKED.fullmatch(name)
    return (found["prefix"], found["mark"] or "", found["path"]) if found else (name, "", "")


def is_file(name: str) -> bool:
    """Tell whether `name` is that of a typed form's file input."""
    return split(name)[1] == FILE


def within(path: str, other: str) -> bool:
    """Tell whether `other` is `path`, or lies in it."""
    return other == path or other.startswith(path + "/")


def order_of(ids: list[str]) -> str:
    """Write ids as an order's text: `/0/2/~new1`."""
    return "".join("/" + number for number in ids)


def ids_of(order: str) -> list[str]:
    """List the ids of an order's text, each once."""
    return list(dict.fromkeys(order.split("/")[1:]))


def display_marks(posted: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the marks that change only what is drawn: pages, and opened containers."""
    return {name: text for name, text in posted.items() if name.startswith((prefix + PAGE, prefix + OPEN))}


def fresh(ids: list[str]) -> str:
    """Return an id that none of these is."""
    taken = [int(number.removeprefix(NEW)) for number in ids if is_new(number)]
    return f"{NEW}{max(taken, default=0) + 1}"


def is_new(token: str) -> bool:
    """Tell whether this is the id of an item that the reader added."""
    number = token.removeprefix(NEW)
    return token.startswith(NEW) and number.isascii() and number.isdigit() and len(number) < 7


def applied(posted: Mapping[str, str], change: str) -> dict[str, str]:
    """Return the posted form after the change; unchanged for an unknown or impossible change."""
    name, _, verb = change.rpartition(":")
    prefix, _, path = split(name)
    form = dict(posted)
    if verb in ("remove", "restore", "up", "down"):
        return _moved(form, prefix, path, verb)
    if verb == "add":
        return _added(form, prefix, path)
    if verb == "open":
        return {**form, f"{prefix}{OPEN}{path}": "1"}
    if verb.startswith("page."):
        return {**form, f"{prefix}{PAGE}{path}": verb.removeprefix("page.")}
    return form


def _moved(form: dict[str, str], prefix: str, path: str, verb: str) -> dict[str, str]:
    whole, _, item = path.rpartition("/")
    mark = f"{prefix}{ORDER}{whole}"
    if mark not in form or not item:
        return form
    ids = ids_of(form[mark])
    if verb == "restore":
        ids = _put_back(ids, item)
    elif item in ids and verb == "remove":
        ids.remove(item)
        form = _without(form, prefix, path) if is_new(item) else form
    elif item in ids:
        at = ids.index(item)
        to = at - 1 if verb == "up" else at + 1
        if 0 <= to < len(ids):
            ids[at], ids[to] = ids[to], ids[at]
    return {**form, mark: order_of(ids)}


def _put_back(ids: list[str], item: str) -> list[str]:
    """Insert `item` after the last of the ids that originally came before it."""
    if item in ids:
        return ids
    if not json_pointer.INDEX.fullmatch(item):
        return [*ids, item]
    before = [at for at, word in enumerate(ids) if json_pointer.INDEX.fullmatch(word) and int(word) < int(item)]
    at = before[-1] + 1 if before else 0
    return [*ids[:at], item, *ids[at:]]


def _added(form: dict[str, str], prefix: str, path: str) -> dict[str, str]:
    mark = f"{prefix}{ORDER}{path}"
    if mark not in form:
        return form
    ids = ids_of(form[mark])
    made = fresh(ids)
    form = _without(form, prefix, f"{path}/{made}")
    page = {f"{prefix}{PAGE}{path}": "999999"}  # the last page, which shows the new item
    return {**form, mark: order_of([*ids, made]), **page}


def _without(form: dict[str, str], prefix: str, path: str) -> dict[str, str]:
    """Return the form without what was typed at a removed place."""
    parts = {name: split(name) for name in form}
    return {
        name: text for name, text in form.items() if not (parts[name][0] == prefix and within(path, parts[name][2]))
    }
