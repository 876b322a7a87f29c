"""One outcome for several verdicts: what is approved runs, what is refused is passed by, and the agent is told."""

from __future__ import annotations

from pathlib import Path

from tests.factories.driven_runs import advance_to_rest, open_gate, state, trail

from .verdict_forms import APPROVE, edit, lines, make_three, reject, respond, say


def test_approved_edited_and_refused_actions_make_one_outcome(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    say(run, each={"a": APPROVE, "b": edit(run, "b", amount=20), "c": reject("Not to these people.")})
    gate.refresh_from_db()
    outcome = gate.outcome
    assert (gate.status, outcome.kind) == ("decided", "mixed")
    assert outcome.by_action == {"a": "approve", "b": "edit", "c": "reject"}
    assert sorted(outcome.grants.values_list("action", "effect")) == [("a", "do_one"), ("a", "log"), ("b", "do_two")]

    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == ["one 1", "two 20", "log True"]
    assert trail(run)[-4:] == [("step", "do_one"), ("step", "do_two"), ("skipped", "do_three"), ("step", "log")]


def test_the_agent_is_told_what_was_edited_refused_and_answered_for_and_where(ledger: Path) -> None:
    run = make_three(ledger)
    say(run, each={"a": reject("Too dear."), "b": edit(run, "b", amount=20), "c": respond("I rang them up.")})
    advance_to_rest(run)
    now = state(run)
    assert [(each["action"], each["pointer"], each["text"]) for each in now["feedback"]] == [
        ("a", "/one", "Too dear."),
        ("b", "/two/amount", "Changed from 2 to 20."),
        ("c", "/three", "I rang them up."),
    ]
    assert {name: each["verdict"] for name, each in now["decision"]["verdicts"].items()} == {
        "a": "reject", "b": "edit", "c": "respond",
    }  # fmt: skip
    assert now["decision"]["verdicts"]["a"]["reason"] == "Too dear."


def test_an_answer_in_an_effects_place_is_written_where_its_result_would_be(ledger: Path) -> None:
    run = make_three(ledger)
    say(run, each={"a": APPROVE, "b": APPROVE, "c": respond("I rang them up.")})
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == ["one 1", "two 2", "log True"]
    assert state(run)["said"] == "I rang them up."


def test_a_refused_action_keeps_nothing_that_others_had_edited_in_it(ledger: Path) -> None:
    run = make_three(ledger)
    say(run, each={"a": edit(run, "a", amount=7), "b": APPROVE, "c": reject()})
    assert state(run)["one"]["amount"] == 1  # not applied yet
    advance_to_rest(run)
    assert state(run)["one"]["amount"] == 7

    again = make_three(ledger)
    say(again, each={"a": reject(), "b": APPROVE, "c": APPROVE})
    advance_to_rest(again)
    assert state(again)["one"]["amount"] == 1


def test_rejecting_all_of_them_is_the_gates_rejection(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    each = {"a": reject("No."), "b": reject(""), "c": reject("Nor this.")}
    say(run, each=each, then="back", comment="Start over.")
    gate.refresh_from_db()
    assert (gate.outcome.kind, gate.outcome.then) == ("rejected", "back")
    assert gate.outcome.words == "Start over.\n\n“a”: No.\n\n“c”: Nor this."
    advance_to_rest(run)
    assert lines(ledger) == []
    assert trail(run)[-1][0] == "step"  # it asks again
    assert open_gate(run).pk != gate.pk


def test_refusing_every_action_that_runs_still_lets_what_belongs_to_none_run(ledger: Path) -> None:
    run = make_three(ledger)
    say(run, each={"a": reject(), "b": reject(), "c": respond("Rang them.")})
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == ["log False"]
