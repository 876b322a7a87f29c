"""Checks of what an open page heard; as those of .checker, which calls them."""

from __future__ import annotations

from collections.abc import Iterator

from ..history import Line
from .violation import Dump, Violation, World

QUIET = {"checkpoint.saved", "checkpoint.noted", "checkpoint.note_removed", "gate.remarked"}  # not for every page
Place = tuple[int, int]


def pages_miss_nothing(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """Between its first fact and its last a page heard each event once, in order, but where it was to start over."""
    heard = [(_place(frame["cursor"]), frame["kind"]) for frame in world["heard"]]
    facts: set[Place] = set()
    spared: list[tuple[Place, Place]] = []
    at: Place | None = None
    for place, kind in heard:
        if kind == "reset":
            spared.append((at or (0, 0), place))
        elif place in facts:
            yield Violation("twice", f"a page heard {kind} {place} twice")
        elif at is not None and place <= at:
            yield Violation("twice", f"a page heard {kind} {place} after {at}")
        else:
            facts.add(place)
        at = max(at or place, place)
    for event in dump["events"]:
        place = (event["xid"], event["id"])
        within = heard and heard[0][0] < place <= heard[-1][0]
        if not within or event["kind"] in QUIET or not event["team"] or place in facts:
            continue
        if not any(since < place <= until for since, until in spared):
            yield Violation("lost", f"a page never heard {event['kind']} {place}")


CHECKS = (pages_miss_nothing,)


def _place(cursor: str) -> Place:
    xid, _, id = cursor.partition(".")
    return int(xid), int(id)
