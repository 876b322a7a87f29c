"""What is planted into a good history: violations of each kind, and what looks like one and is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .good_history import KEY, MAILED, Evidence

Plant = Callable[[Evidence], object]


def give(table: str, number: Any, **columns: Any) -> Plant:
    return lambda seen: seen.row(table, number).update(columns)


def said(line: int, **words: Any) -> Plant:
    return lambda seen: seen.history[line].update(words)


def add(table: str, id: Any, like: Any, **columns: Any) -> Plant:
    return lambda seen: seen.dump[table].append(seen.row(table, like) | {"id": id} | columns)


def gone(table: str, at: int = -1) -> Plant:
    return lambda seen: seen.dump[table].pop(at)


def booked(words: str) -> Plant:
    return lambda seen: seen.world["entries"][3].update(words=words)


def both(*plants: Plant) -> Plant:
    return lambda seen: [plant(seen) for plant in plants]


def hears(seen: Evidence, at: str = "t2", step: str = "hear") -> None:
    """Let the trip wait for its second signal, at this checkpoint before this step."""
    give("waits", 62, signal=None)(seen)
    give("runs", 9, status="waiting", next_step=step, head=at)(seen)


def late(like: int, id: str) -> Plant:
    """Save an answer where the run is by then."""
    row = {"run": like, "parent": f"c{like}", "kind": "answered", "step": "review", "seq": 10, "id": id}
    return lambda seen: seen.dump["checkpoints"].append(row)


def kept_twice(seen: Evidence) -> None:
    add("signals", 52, like=50)(seen)
    next(line for line in seen.history if line["op"] == 9 and line["type"] == "ok")["id"] = 52


def heard_out_of_order(seen: Evidence) -> None:
    heard = seen.world["heard"]
    heard[2], heard[3] = heard[3], heard[2]


waits_for_time = give("runs", 12, status="waiting", timed=True)
twice_by_a_child = both(give("children", 32, given="aa"), add("effects", 95, like=92, run=12, key="c" * 64))

VIOLATIONS: dict[str, dict[str, Plant]] = {
    "doubled": {
        "entered twice": lambda seen: seen.world["entries"].extend(seen.world["entries"]),
        "sent more often than intended": lambda seen: seen.world["requests"].update({KEY: 2}),
        "mailed twice": lambda seen: seen.world["mails"].update({MAILED[:32]: 2}),
        "one grant for two": give("effects", 91, grant=72),
        "a child does it twice": twice_by_a_child,
    },
    "unapproved": {
        "without a grant": give("effects", 90, grant=None),
        "under a rejection": give("grants", 72, outcome=81),
        "without a decision": give("outcomes", 71, decisions=[]),
        "approved by its starter": give("runs", 7, starter=1),
        "with another amount": lambda seen: seen.world["entries"][0].update(amount="21.00"),
        "by too few people": give("gates", 70, quorum=2),
        "under a key of no effect": give("effects", 90, key="c" * 64),
        "a stale decision is taken": said(11, type="ok", id=700),
    },
    "lost": {
        "done and not there": lambda seen: seen.world["entries"].clear(),
        "undone and there": give("effects", 90, status="undone"),
        "failed and there": give("effects", 91, status="failed"),
        "a decision is gone": gone("decisions"),
        "a decision is another": give("decisions", 800, verdict="approve"),
        "a decision closed nothing": give("outcomes", 81, decisions=[799]),
        "a vote does not count": both(give("gates", 70, quorum=2), give("decisions", 700, counts=False)),
        "a run is gone": said(3, id=99),
        "an outcome is not applied": gone("checkpoints", 1),
        "a late outcome is not applied": give("gates", 70, checkpoint="c1"),
        "a signal is gone": gone("signals"),
        "a signal has another value": give("signals", 51, value={"word": "three"}),
        "a word is booked that nobody sent": booked("one three"),
        "a run does not hear its signal": hears,
        "a page misses an event": lambda seen: seen.world["heard"].pop(2),
    },
    "twice": {
        "one click is two decisions": said(9, id=801),
        "two decisions count": add("decisions", 701, like=700, user=2, verdict="edit"),
        "a refused decision is recorded": said(5, type="fail"),
        "an outcome is applied twice": add("checkpoints", 79, like="c75"),
        "a late outcome is applied twice": both(late(8, "c80"), late(8, "c81")),
        "one start is two runs": said(1, type="ok", id=8),
        "one signal is kept twice": kept_twice,
        "a signal is read twice": give("waits", 62, signal=50),
        "a signal is booked twice": booked("one one"),
        "a page hears an event twice": lambda seen: seen.world["heard"].insert(3, seen.world["heard"][2]),
        "a page hears events out of order": heard_out_of_order,
    },
    "early": {
        "a parent ends before its child": give("events", 9, id=12),
        "a timer ends early": give("waits", 60, due=100.5),
    },
    "left": {
        "a child left behind has delivered": give("effects", 93, status="done"),
        "a child is left and not ordered to undo": give("children", 30, landings=["t0"]),
        "an order to a child is not begun": both(
            give("runs", 11, status="waiting", timed=True), give("children", 31, carried_out=False)
        ),
    },
    "stuck": {
        "a run stays queued": give("runs", 8, status="queued"),
        "a run waits for nothing": give("runs", 8, status="waiting"),
        "a run ends with an open gate": add("gates", 82, like=80, status="open"),
        "a run ends in doubt": give("effects", 91, status="unknown"),
        "a child outlives its parent": waits_for_time,
        "an old wait excuses no run": both(gone("signals"), lambda seen: hears(seen, at="t4")),
        "a wait of another step excuses no run": both(gone("signals"), lambda seen: hears(seen, step="book")),
        "a child of two excuses no parent": both(waits_for_time, give("runs", 9, status="waiting", awaited=2)),
        "a child excuses no parent that waits for none": both(waits_for_time, give("runs", 9, status="waiting")),
        "a gate excuses no run whose children have ended": both(
            add("gates", 92, like=80, run=9, status="open"), give("runs", 9, status="waiting", awaited=1)
        ),
        "a timer wakes nobody": give("runs", 9, status="waiting", timed=True, overdue=True),
    },
    "audit": {"a run is frozen": give("runs", 8, frozen=True)},
}

TOLD = {"xid": 2000, "team": 1, "by_person": True}
SENT = {"op": 9, "f": "decide", "by": "ann", "user": 1, "key": "d9"}
FAULTLESS: dict[str, Plant] = {
    "nothing": both(),
    "a page was told to start over": lambda seen: seen.world.update(
        heard=[*seen.world["heard"][:2], {"cursor": "1000.4", "kind": "reset"}, *seen.world["heard"][4:]]
    ),
    "somebody ended a timer": give("waits", 60, due=900.0, ended_by="user:3"),
    "a person moved a child after its end": both(
        twice_by_a_child,
        give("effects", 95, key=KEY),  # of an entry that is there
        add("events", 12, like=9, kind="run.rewound", **TOLD),
    ),
    "an outcome is saved where the run is by then": both(
        give("gates", 70, checkpoint="c1"), give("checkpoints", "c75", kind="answered")
    ),
    "a person cancelled a run in doubt": both(
        give("effects", 93, status="unknown"),
        give("children", 31, ordered="cancel", landings=["t1"]),
        give("events", 11, by_person=True),
    ),
    "a person decided otherwise": both(
        give("gates", 80, quorum=2),
        lambda seen: seen.dump["decisions"].insert(0, seen.row("decisions", 800) | {"id": 799, "verdict": "approve"}),
        give("decisions", 799, counts=False),
        lambda seen: seen.history.extend(
            [SENT | {"type": "invoke", "gate": 80, "verdict": "approve"}, SENT | {"type": "ok", "id": 799}]
        ),
    ),
    # The outcome that is saved was given to the first of them.
    "a gate was asked again after a rewind": both(
        add("gates", 75, like=70, checkpoint="c1"),
        give("gates", 70, checkpoint="c0"),
        give("checkpoints", "c75", kind="answered"),
        add("events", 13, like=1, kind="run.rewound", subject="run:7", **TOLD),
        add("events", 14, like=1, subject="gate:75", **TOLD),
    ),
}
RESTING: dict[str, Plant] = {
    "a child sleeps": both(waits_for_time, give("runs", 9, status="waiting", awaited=1)),
    "a run asks": both(give("runs", 8, status="waiting"), give("gates", 80, status="open")),
    "a child is still to be undone": both(
        give("children", 31, carried_out=False), give("runs", 9, status="waiting", awaited=1)
    ),
    "a run hears a signal": both(gone("signals"), hears),
}
