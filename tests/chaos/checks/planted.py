"""Violations of each kind, planted into a good history."""

from __future__ import annotations

from collections.abc import Callable

from .good_history import KEY, MAILED, Evidence


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


def a_late_outcome_is_not_applied(seen: Evidence) -> None:
    seen.row("gates", 70)["checkpoint"] = "c1"


def a_late_outcome_is_applied_twice(seen: Evidence) -> None:
    row = {"run": 7, "parent": "c8", "kind": "answered", "step": "review"}
    seen.dump["checkpoints"] += [row | {"seq": 10, "id": "c80"}, row | {"seq": 11, "id": "c81"}]


def one_start_is_two_runs(seen: Evidence) -> None:
    seen.history[1] |= {"type": "ok", "id": 8}


def a_run_stays_queued(seen: Evidence) -> None:
    seen.row("runs", 8)["status"] = "queued"


def a_run_waits_for_nothing(seen: Evidence) -> None:
    seen.row("runs", 8)["status"] = "waiting"


def an_old_wait_excuses_no_run(seen: Evidence) -> None:
    seen.dump["signals"].pop()
    seen.row("waits", 62)["signal"] = None  # at hear, from t2
    seen.row("runs", 9).update({"status": "waiting", "next_step": "hear", "head": "t4"})


def a_wait_of_another_step_excuses_no_run(seen: Evidence) -> None:
    seen.dump["signals"].pop()
    seen.row("waits", 62)["signal"] = None
    seen.row("runs", 9).update({"status": "waiting", "next_step": "book", "head": "t2"})


def a_child_of_two_excuses_no_parent(seen: Evidence) -> None:
    seen.row("runs", 12).update({"status": "waiting", "timed": True})
    seen.row("runs", 9).update({"status": "waiting", "awaited": 2})


def a_child_excuses_no_parent_that_waits_for_none(seen: Evidence) -> None:
    seen.row("runs", 12).update({"status": "waiting", "timed": True})
    seen.row("runs", 9).update({"status": "waiting"})


def a_gate_excuses_no_run_whose_children_have_ended(seen: Evidence) -> None:
    seen.dump["gates"].append(seen.row("gates", 80) | {"id": 92, "run": 9, "status": "open"})
    seen.row("runs", 9).update({"status": "waiting", "awaited": 1})


def a_timer_wakes_nobody(seen: Evidence) -> None:
    seen.row("runs", 9).update({"status": "waiting", "timed": True, "overdue": True})


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
        a_late_outcome_is_not_applied,
        a_signal_is_gone, a_signal_has_another_value, a_word_is_booked_that_nobody_sent, a_run_does_not_hear_its_signal,
        a_page_misses_an_event,
    ),
    "twice": (
        one_click_is_two_decisions, two_decisions_count, a_refused_decision_is_recorded, an_outcome_is_applied_twice,
        a_late_outcome_is_applied_twice,
        one_start_is_two_runs, one_signal_is_kept_twice, a_signal_is_read_twice, a_signal_is_booked_twice,
        a_page_hears_an_event_twice, a_page_hears_events_out_of_order,
    ),
    "early": (a_parent_ends_before_its_child, a_timer_ends_early),
    "left": (
        a_child_left_behind_has_delivered, a_child_is_left_and_not_ordered_to_undo, an_order_to_a_child_is_not_begun,
    ),
    "stuck": (a_run_stays_queued, a_run_waits_for_nothing, a_run_ends_with_an_open_gate, a_run_ends_in_doubt,
              a_child_outlives_its_parent, an_old_wait_excuses_no_run, a_wait_of_another_step_excuses_no_run,
              a_child_of_two_excuses_no_parent, a_child_excuses_no_parent_that_waits_for_none,
              a_gate_excuses_no_run_whose_children_have_ended, a_timer_wakes_nobody),
    "audit": (a_run_is_frozen,),
}  # fmt: skip
