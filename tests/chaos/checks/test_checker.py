"""The checker finds each kind of violation that is planted into a good history, and nothing in the good one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .checker import CHECKS, violations
from .good_history import KEY, Evidence, good
from .planted import PLANTED, a_child_does_it_twice
from .rest_checks import not_at_rest

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


def test_a_run_that_waits_for_what_will_come_is_at_rest() -> None:
    seen = good()
    seen.row("runs", 12).update({"status": "waiting", "timed": True})
    seen.row("runs", 9).update({"status": "waiting", "awaited": 1})
    seen.dump["gates"].append(seen.row("gates", 80) | {"id": 92, "run": 8, "status": "open"})
    seen.row("runs", 8)["status"] = "waiting"
    assert not_at_rest(seen.dump) == []
    seen.row("runs", 12)["status"] = "completed"
    assert len(not_at_rest(seen.dump)) == 1


def test_an_outcome_that_is_saved_where_the_run_is_by_then_is_applied() -> None:
    seen = good()
    seen.row("gates", 70)["checkpoint"] = "c1"
    row = next(row for row in seen.dump["checkpoints"] if row["id"] == "c75")
    row["kind"] = "answered"
    assert seen.found() == set()


def test_a_child_that_is_still_to_be_undone_is_to_end() -> None:
    seen = good()
    seen.dump["children"][1]["carried_out"] = False
    seen.row("runs", 9).update({"status": "waiting", "awaited": 1})
    assert not_at_rest(seen.dump) == []


def test_a_run_that_hears_a_signal_is_at_rest() -> None:
    seen = good()
    seen.dump["signals"].pop()
    seen.row("waits", 62)["signal"] = None
    seen.row("runs", 9).update({"status": "waiting", "next_step": "hear", "head": "t2"})
    assert not_at_rest(seen.dump) == []


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


def test_a_gate_asked_again_after_a_rewind_has_the_answer_that_was_saved() -> None:
    """Where the run was rewound before the first outcome was saved, the checker gave the second one's to the first."""
    seen = good()
    again = {"id": 75, "run": 7, "checkpoint": "c1"}
    seen.dump["gates"].append(seen.row("gates", 70) | again)
    seen.row("gates", 70)["checkpoint"] = "c0"
    next(row for row in seen.dump["checkpoints"] if row["id"] == "c75")["kind"] = "answered"
    told = {"run": 7, "by_person": True, "xid": 2000, "team": 1}
    seen.dump["events"] += [
        {"id": 13, "kind": "run.rewound", "subject": "run:7", **told},
        {"id": 14, "kind": "gate.closed", "subject": "gate:75", **told},
    ]
    assert {each.says for each in violations(*seen) if each.kind == "lost"} == set()
