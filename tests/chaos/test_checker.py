"""The checker finds each kind of violation that is planted into a good history, and nothing in the good one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from .checker import CHECKS, violations

KEY, MAILED = "a" * 64, "b" * 64
FIRST, SECOND, BOOKED = "d" * 64, "e" * 64, "f" * 64


class Evidence(NamedTuple):
    """What the checker reads."""

    history: list[dict[str, Any]]
    world: dict[str, Any]
    dump: dict[str, list[dict[str, Any]]]

    def found(self, audit: str = "") -> set[str]:
        """The kinds of violations."""
        return {each.kind for each in violations(*self, audit=audit)}

    def row(self, table: str, id: int) -> dict[str, Any]:
        """The row of that number."""
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
    run = {"reason": "", "next_step": "", "frozen": False, "starter": 3, "timed": False, "agent": "refunds",
           "external": False, "forked": False, "parent": None, "head": None}  # fmt: skip
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
            {"run": 10, "given": "aa", "landings": ["t1"], **link},
            {"run": 11, "given": "bb", "landings": ["t0"], **link | {"ordered": "undo", "carried_out": True}},
            {"run": 12, "given": "cc", "landings": ["t1"], **link},
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
                **outcome | {"lets_run": 0},
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


def entered_twice(seen: Evidence) -> None:
    seen.world["entries"] *= 2


def sent_more_often_than_intended(seen: Evidence) -> None:
    seen.world["requests"][KEY] = 2


def mailed_twice(seen: Evidence) -> None:
    seen.world["mails"][MAILED[:32]] = 2


def one_grant_for_two(seen: Evidence) -> None:
    seen.row("effects", 91)["grant"] = 72


def without_a_grant(seen: Evidence) -> None:
    seen.row("effects", 90)["grant"] = None


def under_a_rejection(seen: Evidence) -> None:
    seen.row("grants", 72)["outcome"] = 81


def without_a_decision(seen: Evidence) -> None:
    seen.row("outcomes", 71)["decisions"] = []


def approved_by_its_starter(seen: Evidence) -> None:
    seen.row("runs", 7)["starter"] = 1


def by_too_few_people(seen: Evidence) -> None:
    seen.row("gates", 70)["quorum"] = 2


def with_another_amount(seen: Evidence) -> None:
    seen.world["entries"][0]["amount"] = "21.00"


def under_a_key_of_no_effect(seen: Evidence) -> None:
    seen.row("effects", 90)["key"] = "c" * 64


def a_stale_decision_is_taken(seen: Evidence) -> None:
    seen.history[11] |= {"type": "ok", "id": 700}


def done_and_not_there(seen: Evidence) -> None:
    seen.world["entries"].clear()


def undone_and_there(seen: Evidence) -> None:
    seen.row("effects", 90)["status"] = "undone"


def failed_and_there(seen: Evidence) -> None:
    seen.row("effects", 91)["status"] = "failed"


def a_decision_is_gone(seen: Evidence) -> None:
    seen.dump["decisions"].pop()


def a_decision_is_another(seen: Evidence) -> None:
    seen.row("decisions", 800)["verdict"] = "approve"


def a_decision_closed_nothing(seen: Evidence) -> None:
    seen.row("outcomes", 81)["decisions"] = [799]


def a_vote_does_not_count(seen: Evidence) -> None:
    seen.row("gates", 70)["quorum"] = 2
    seen.row("decisions", 700)["counts"] = False


def a_run_is_gone(seen: Evidence) -> None:
    seen.history[3]["id"] = 99


def an_outcome_is_not_applied(seen: Evidence) -> None:
    seen.dump["checkpoints"].pop(1)


def one_click_is_two_decisions(seen: Evidence) -> None:
    seen.history[9]["id"] = 801


def two_decisions_count(seen: Evidence) -> None:
    seen.dump["decisions"].append({"id": 701, "gate": 70, "user": 2, "verdict": "edit", "counts": True})


def a_refused_decision_is_recorded(seen: Evidence) -> None:
    seen.history[5]["type"] = "fail"


def an_outcome_is_applied_twice(seen: Evidence) -> None:
    seen.dump["checkpoints"].append({"run": 7, "seq": 9, "id": "c79", "parent": "c7", "kind": "gate", "step": "review"})


def one_start_is_two_runs(seen: Evidence) -> None:
    seen.history[1] |= {"type": "ok", "id": 8}


def a_run_stays_queued(seen: Evidence) -> None:
    seen.row("runs", 8)["status"] = "queued"


def a_run_waits_for_nothing(seen: Evidence) -> None:
    seen.row("runs", 8)["status"] = "waiting"


def a_run_ends_with_an_open_gate(seen: Evidence) -> None:
    seen.dump["gates"].append(seen.row("gates", 80) | {"id": 82, "status": "open"})


def a_run_ends_in_doubt(seen: Evidence) -> None:
    seen.row("effects", 91)["status"] = "unknown"


def a_run_is_frozen(seen: Evidence) -> None:
    seen.row("runs", 8)["frozen"] = True


def a_child_does_it_twice(seen: Evidence) -> None:
    seen.dump["children"][2] |= {"given": "aa"}
    seen.dump["effects"].append(seen.row("effects", 92) | {"id": 95, "run": 12, "key": "c" * 64})


def a_parent_ends_before_its_child(seen: Evidence) -> None:
    seen.row("events", 9)["id"] = 12


def a_child_outlives_its_parent(seen: Evidence) -> None:
    seen.row("runs", 12).update({"status": "waiting", "timed": True})


def a_child_left_behind_has_delivered(seen: Evidence) -> None:
    seen.row("effects", 93)["status"] = "done"


def a_child_is_left_and_not_ordered_to_undo(seen: Evidence) -> None:
    seen.dump["children"][0] |= {"landings": ["t0"]}


def an_order_to_a_child_is_not_begun(seen: Evidence) -> None:
    seen.row("runs", 11).update({"status": "waiting", "timed": True})
    seen.dump["children"][1]["carried_out"] = False


def a_signal_is_gone(seen: Evidence) -> None:
    seen.dump["signals"].pop()


def a_signal_has_another_value(seen: Evidence) -> None:
    seen.row("signals", 51)["value"] = {"word": "three"}


def one_signal_is_kept_twice(seen: Evidence) -> None:
    seen.dump["signals"].append(seen.row("signals", 50) | {"id": 52})
    next(line for line in seen.history if line["op"] == 9 and line["type"] == "ok")["id"] = 52


def a_signal_is_read_twice(seen: Evidence) -> None:
    seen.row("waits", 62)["signal"] = 50


def a_signal_is_booked_twice(seen: Evidence) -> None:
    seen.world["entries"][3]["words"] = "one one"


def a_word_is_booked_that_nobody_sent(seen: Evidence) -> None:
    seen.world["entries"][3]["words"] = "one three"


def a_run_does_not_hear_its_signal(seen: Evidence) -> None:
    seen.row("waits", 62)["signal"] = None
    seen.row("runs", 9).update({"status": "waiting", "next_step": "hear", "head": "t2"})


def a_timer_ends_early(seen: Evidence) -> None:
    seen.row("waits", 60)["due"] = 100.5


def a_page_misses_an_event(seen: Evidence) -> None:
    del seen.world["heard"][2]


def a_page_hears_an_event_twice(seen: Evidence) -> None:
    seen.world["heard"].insert(3, seen.world["heard"][2])


def a_page_hears_events_out_of_order(seen: Evidence) -> None:
    heard = seen.world["heard"]
    heard[2], heard[3] = heard[3], heard[2]


PLANTED: dict[str, tuple[Callable[[Evidence], None], ...]] = {
    "doubled": (
        entered_twice, sent_more_often_than_intended, mailed_twice, one_grant_for_two, a_child_does_it_twice,
    ),
    "unapproved": (
        without_a_grant, under_a_rejection, without_a_decision, approved_by_its_starter, with_another_amount,
        by_too_few_people, under_a_key_of_no_effect, a_stale_decision_is_taken,
    ),
    "lost": (
        done_and_not_there, undone_and_there, failed_and_there, a_decision_is_gone, a_decision_is_another,
        a_decision_closed_nothing, a_vote_does_not_count, a_run_is_gone, an_outcome_is_not_applied,
        a_signal_is_gone, a_signal_has_another_value, a_word_is_booked_that_nobody_sent, a_run_does_not_hear_its_signal,
        a_page_misses_an_event,
    ),
    "twice": (
        one_click_is_two_decisions, two_decisions_count, a_refused_decision_is_recorded, an_outcome_is_applied_twice,
        one_start_is_two_runs, one_signal_is_kept_twice, a_signal_is_read_twice, a_signal_is_booked_twice,
        a_page_hears_an_event_twice, a_page_hears_events_out_of_order,
    ),
    "early": (a_parent_ends_before_its_child, a_timer_ends_early),
    "left": (
        a_child_left_behind_has_delivered, a_child_is_left_and_not_ordered_to_undo, an_order_to_a_child_is_not_begun,
    ),
    "stuck": (a_run_stays_queued, a_run_waits_for_nothing, a_run_ends_with_an_open_gate, a_run_ends_in_doubt,
              a_child_outlives_its_parent),
    "audit": (a_run_is_frozen,),
}  # fmt: skip
CASES = [(kind, plant) for kind, plants in PLANTED.items() for plant in plants]


def test_nothing_is_found_in_a_good_history() -> None:
    assert violations(*good()) == []


def test_a_page_that_was_told_to_start_over_has_missed_nothing() -> None:
    seen = good()
    seen.world["heard"][2:4] = [{"cursor": "1000.4", "kind": "reset"}]
    assert seen.found() == set()


def test_a_timer_that_somebody_ended_is_not_early() -> None:
    seen = good()
    seen.row("waits", 60).update({"due": 900.0, "ended_by": "user:3"})
    assert seen.found() == set()


def test_a_child_that_a_person_moved_after_its_end_does_as_that_person_said() -> None:
    seen = good()
    a_child_does_it_twice(seen)
    seen.dump["effects"][-1]["key"] = KEY  # the key of an entry that is there
    seen.dump["events"].append(
        {"id": 12, "kind": "run.rewound", "run": 12, "subject": "run:12", "by_person": True, "xid": 2000, "team": 1}
    )
    assert {each.says for each in violations(*seen)} == set()


def test_a_person_who_cancels_a_run_in_doubt_leaves_that_open() -> None:
    seen = good()
    seen.row("effects", 93)["status"] = "unknown"
    seen.dump["children"][1] |= {"ordered": "cancel", "landings": ["t1"]}
    assert seen.found() == {"stuck"}
    seen.dump["events"][-1]["by_person"] = True
    assert seen.found() == set()


def test_a_person_who_decides_otherwise_has_lost_no_vote() -> None:
    seen = good()
    seen.row("gates", 80)["quorum"] = 2
    seen.dump["decisions"].insert(0, {"id": 799, "gate": 80, "user": 1, "verdict": "approve", "counts": False})
    sent = {"op": 9, "f": "decide", "by": "ann", "user": 1, "key": "d9"}
    seen.history.append({"type": "invoke", "gate": 80, "verdict": "approve", "habit": "approve", **sent})
    seen.history.append({"type": "ok", "id": 799, **sent})
    assert seen.found() == set()


@pytest.mark.parametrize(("kind", "plant"), CASES, ids=[plant.__name__ for _, plant in CASES])
def test_what_is_planted_is_found(kind: str, plant: Callable[[Evidence], None]) -> None:
    seen = good()
    plant(seen)
    assert kind in seen.found()


def test_what_the_verification_says_is_a_violation() -> None:
    assert good().found(audit="checkpoint 7/5 does not match its digest") == {"audit"}


def test_each_check_finds_something_that_is_planted() -> None:
    idle = {check.__name__ for check in CHECKS}
    for _, plant in CASES:
        seen = good()
        plant(seen)
        idle -= {check.__name__ for check in CHECKS if list(check(*seen))}
    assert idle == set()
