"""Applies a form's buttons, which work without JavaScript: add, remove, restore, move, open, turn a page. Pure.

A button posts `change` with the name of a place and what to do there: `args.refund/lines/2:remove`. The form comes back
with everything that was typed, and the marks that give the items' order.
"""

from __future__ import annotations

from collections.abc import Mapping

from checkpoints.values import json_pointer

from . import names


def applied(posted: Mapping[str, str], change: str) -> dict[str, str]:
    """Return the posted form after the change; unchanged for an unknown or impossible change."""
    name, _, verb = change.rpartition(":")
    prefix, _, path = names.split(name)
    form = dict(posted)
    if verb in ("remove", "restore", "up", "down"):
        return _moved(form, prefix, path, verb)
    if verb == "add":
        return _added(form, prefix, path)
    if verb == "open":
        return {**form, f"{prefix}{names.OPEN}{path}": "1"}
    if verb.startswith("page."):
        return {**form, f"{prefix}{names.PAGE}{path}": verb.removeprefix("page.")}
    return form


def _moved(form: dict[str, str], prefix: str, path: str, verb: str) -> dict[str, str]:
    whole, _, item = path.rpartition("/")
    mark = f"{prefix}{names.ORDER}{whole}"
    if mark not in form or not item:
        return form
    ids = names.ids_of(form[mark])
    if verb == "restore":
        ids = _put_back(ids, item)
    elif item in ids and verb == "remove":
        ids.remove(item)
        form = _without(form, prefix, path) if names.is_new(item) else form
    elif item in ids:
        at = ids.index(item)
        to = at - 1 if verb == "up" else at + 1
        if 0 <= to < len(ids):
            ids[at], ids[to] = ids[to], ids[at]
    return {**form, mark: names.order_of(ids)}


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
    mark = f"{prefix}{names.ORDER}{path}"
    if mark not in form:
        return form
    ids = names.ids_of(form[mark])
    made = names.fresh(ids)
    form = _without(form, prefix, f"{path}/{made}")
    page = {f"{prefix}{names.PAGE}{path}": "999999"}  # the last page, which shows the new item
    return {**form, mark: names.order_of([*ids, made]), **page}


def _without(form: dict[str, str], prefix: str, path: str) -> dict[str, str]:
    """Return the form without what was typed at a removed place."""
    parts = {name: names.split(name) for name in form}
    return {
        name: text
        for name, text in form.items()
        if not (parts[name][0] == prefix and names.within(path, parts[name][2]))
    }
