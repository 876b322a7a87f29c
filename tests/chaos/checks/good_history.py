"""A good history, with nothing wrong in it, for the checker's tests."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from .checker import violations

KEY, MAILED = "a" * 64, "b" * 64
FIRST, SECOND, BOOKED = "d" * 64, "e" * 64, "f" * 64


class Evidence(NamedTuple):
    history: list[dict[str, Any]]
    world: dict[str, Any]
    dump: dict[str, list[dict[str, Any]]]

    def found(self, audit: str = "") -> set[str]:
        return {each.kind for each in violations(*self, audit=audit)}

    def row(self, table: str, id: Any) -> dict[str, Any]:
        return next(row for row in self.dump[table] if row["id"] == id)


def good() -> Evidence:
    """Bob started two runs. Ann approved one, which paid and replied; she rejected the other, and clicked twice.

    A third, a trip, started two runs and left a third behind, slept, heard two signals of bob's, and booked.
    """
    sent = {"by": "ann", "user": 1, "f": "decide"}
    history = [
        {"op": 1, "type": "invoke", "f": "start", "by": "bob", "user": 3, "key": "s1"},
        {"op": 1, "type": "unknown", "f": "start", "id": None},
        {"op": 2, "type": "invoke", "f": "start", "by": "bob", "user": 3, "key": "s1"},
        {"op": 2, "type": "ok", "f": "start", "id": 7},
        {"op": 3, "type": "invoke", "gate": 70, "verdict": "approve", "habit": "approve", "key": "d1", **sent},
        {"op": 3, "type": "ok", "f": "decide", "id": 700},
        {"op": 4, "type": "invoke", "gate": 80, "verdict": "reject", "habit": "twice", "key": "d2", **sent},
        {"op": 5, "type": "invoke", "gate": 80, "verdict": "reject", "habit": "twice", "key": "d2", **sent},
        {"op": 4, "type": "ok", "f": "decide", "id": 800},
        {"op": 5, "type": "ok", "f": "decide", "id": 800},
        {"op": 6, "type": "invoke", "gate": 70, "verdict": "approve", "habit": "stale", "key": "d3", **sent},
        {"op": 6, "type": "fail", "f": "decide", "id": None},
        {"op": 7, "type": "invoke", "f": "fault", "fault": "kill worker"},
        {"op": 7, "type": "ok", "f": "fault", "fault": "kill worker"},
    ]
    for op, (word, number) in enumerate((("one", 50), ("one", 50), ("two", 51)), 8):
        said = {"op": op, "f": "signal", "run": 9, "named": f"k-{word}", "word": word}
        history += [{**said, "type": "invoke", "by": "bob", "key": f"s{op}"}, {**said, "type": "ok", "id": number}]
    entry = {"key": KEY, "kind": "refund", "id": "re_1", "amount": "12.00", "currency": "EUR", "stands": True}
    delivery = {"kind": "orders", "amount": "1", "stands": True}
    entries = [
        entry,
        {"key": FIRST, "id": "o_1", **delivery},
        {"key": SECOND, "id": "o_2", **delivery, "stands": False},
        {"key": BOOKED, "id": "o_3", **delivery, "words": "one two"},
    ]
    world: dict[str, Any] = {"entries": entries, "mails": {MAILED[:32]: 1}, "requests": {}, "heard": []}
    run = {"reason": "", "next_step": "", "frozen": False, "starter": 3, "timed": False, "overdue": False, "awaited": 0,
           "agent": "refunds", "external": False, "forked": False, "parent": None, "head": None}  # fmt: skip
    child = run | {"agent": "courier", "parent": 9}
    gate = {"step": "review", "kind": "review", "status": "decided", "title": "?", "quorum": 1, "separation": True}
    effect = {"action": "", "undoes": None, "taken_from": None, "status": "done", "attempts": 1, "irreversible": False,
              "error": "", "empty": False}  # fmt: skip
    outcome = {"then": "", "answer": None, "lets_run": True}
    arguments = {"refund": {"amount": "12.00"}, "reply": {"to": "marit@example.org"}}
    wait = {"run": 9, "base": "t1", "head": "t1", "ended_by": "", "due": None, "number": 1, "signal": None}
    link = {"parent": 9, "step": "fan_out", "number": 1, "ordered": "", "carried_out": False}
    dump: dict[str, list[dict[str, Any]]] = {
        "runs": [
            {"id": 7, "status": "completed", **run},
            {"id": 8, "status": "cancelled", **run},
            {"id": 9, "status": "completed", **run | {"agent": "trip", "head": "t4"}},
            {"id": 10, "status": "completed", **child},
            {"id": 11, "status": "cancelled", **child},
            {"id": 12, "status": "completed", **child},
        ],
        "children": [
            {"id": 30, "run": 10, "given": "aa", "landings": ["t1"], **link},
            {"id": 31, "run": 11, "given": "bb", "landings": ["t0"], **link | {"ordered": "undo", "carried_out": True}},
            {"id": 32, "run": 12, "given": "cc", "landings": ["t1"], **link},
        ],
        "signals": [
            {"id": 50, "run": 9, "name": "go", "key": "k-one", "value": {"word": "one"}},
            {"id": 51, "run": 9, "name": "go", "key": "k-two", "value": {"word": "two"}},
        ],
        "waits": [
            {"id": 60, **wait, "step": "nap", "kind": "timer", "name": "nap", "due": 100.0},
            {"id": 61, **wait, "step": "hear", "kind": "signal", "name": "go", "signal": 50, "head": "t2"},
            {"id": 62, **wait, "step": "hear", "kind": "signal", "name": "go", "signal": 51, "head": "t2", "number": 2},
        ],
        "gates": [{"id": 70, "run": 7, "checkpoint": "c7", **gate}, {"id": 80, "run": 8, "checkpoint": "c8", **gate}],
        "decisions": [
            {"id": 700, "gate": 70, "user": 1, "verdict": "approve", "counts": True},
            {"id": 800, "gate": 80, "user": 1, "verdict": "reject", "counts": True},
        ],
        "outcomes": [
            {"id": 71, "gate": 70, "kind": "approved", "arguments": arguments, "decisions": [700], **outcome},
            {
                "id": 81,
                "gate": 80,
                "kind": "rejected",
                "arguments": {},
                "decisions": [800],
                **outcome,
                "lets_run": False,
            },
        ],
        "grants": [
            {"id": 72, "outcome": 71, "action": "refund", "effect": "pay"},
            {"id": 73, "outcome": 71, "action": "reply", "effect": "reply"},
        ],
        "effects": [
            {"id": 90, "run": 7, "step": "pay", "key": KEY, "grant": 72, **effect},
            {"id": 91, "run": 7, "step": "reply", "key": MAILED, "grant": 73, **effect},
            {"id": 92, "run": 10, "step": "deliver", "key": FIRST, "grant": None, **effect},
            {"id": 93, "run": 11, "step": "deliver", "key": SECOND, "grant": None, **effect | {"status": "undone"}},
            {"id": 94, "run": 9, "step": "book", "key": BOOKED, "grant": None, **effect},
        ],
        "checkpoints": [
            {"run": 7, "seq": 5, "id": "c75", "parent": "c7", "kind": "gate", "step": "review"},
            {"run": 8, "seq": 5, "id": "c85", "parent": "c8", "kind": "gate", "step": "review"},
            {"run": 9, "seq": 1, "id": "t0", "parent": None, "kind": "input", "step": "", "at": 80.0},
            {"run": 9, "seq": 2, "id": "t1", "parent": None, "kind": "step", "step": "fan_out", "at": 90.0},
            {"run": 9, "seq": 3, "id": "t2", "parent": "t1", "kind": "step", "step": "nap", "at": 100.1},
            {"run": 9, "seq": 4, "id": "t4", "parent": "t2", "kind": "step", "step": "hear", "at": 101.0},
        ],
        "events": [
            {"id": 1, "kind": "gate.closed", "subject": "gate:70", "run": 7},
            {"id": 2, "kind": "gate.closed", "subject": "gate:80", "run": 8},
            {"id": 3, "kind": "effect.intended", "subject": "effect:90", "run": 7},
            {"id": 4, "kind": "effect.intended", "subject": "effect:91", "run": 7},
            *({"id": n, "kind": "effect.intended", "subject": f"effect:{87 + n}", "run": 9} for n in (5, 6, 7)),
            {"id": 8, "kind": "run.completed", "subject": "run:10", "run": 10, "by_person": False},
            {"id": 9, "kind": "run.completed", "subject": "run:12", "run": 12, "by_person": False},
            {"id": 10, "kind": "run.completed", "subject": "run:9", "run": 9, "by_person": False},
            {"id": 11, "kind": "run.cancelled", "subject": "run:11", "run": 11, "by_person": False},
        ],
    }
    for event in dump["events"]:
        event |= {"xid": 1000, "team": 1}
        world["heard"].append({"cursor": f"{event['xid']}.{event['id']}", "kind": event["kind"]})
    return copy.deepcopy(Evidence(history, world, dump))
