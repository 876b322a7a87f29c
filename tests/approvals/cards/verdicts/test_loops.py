"""Words on each action: each runs under its own grant or not at all, what a quorum agrees on, what no gate takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.models import Effect
from agents.moves import fork as forks
from agents.moves import rewind
from approvals.cards.action import Action
from approvals.cards.card import completed
from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.errors import AlreadyDecided, CardRefused, Invalid, Rejected
from approvals.models import Decision, Gate
from checkpoints import crash_points, store
from checkpoints.models import Checkpoint, Event, Run
from checkpoints.runs.plans import spec_of
from checkpoints.values.canonical_json import encode_canonical
from tests.agents.pages.test_run_page import text_of
from tests.approvals.cards.verdicts.verdict_forms import (
    APPROVE,
    edit,
    lines,
    make_calls,
    make_three,
    reject,
    respond,
    say,
)
from tests.factories import ann, bob, make_policy, make_team, make_user
from tests.factories.driven_runs import advance_to_rest, answer, decide, open_gate, state, trail
from tests.harness.signed_in_clients import form_of, signed_in

MIXED = {"x1": APPROVE, "x2": reject("Not this tool."), "x3": APPROVE}


def seq_of(run: Run, step: str, kind: str = "step") -> int:
    return Checkpoint.objects.filter(run=run, step=step, kind=kind).order_by("-seq")[0].seq


def test_the_refused_one_of_three_is_passed_by_in_whatever_order_and_the_others_run_once(ledger: Path) -> None:
    run = make_calls(ledger)
    say(run, each=MIXED)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == ["call x1 1", "call x3 3"]
    used = Effect.objects.filter(run=run).order_by("pk").values_list("action", "grant__action")
    assert list(used) == [("x1", "x1"), ("x3", "x3")]
    assert [kind for kind, step in trail(run) if step == "call_tool"] == ["step", "skipped", "step"]
    other = make_calls(ledger, order=["x2", "x2", "x1"])
    say(other, each=MIXED)
    advance_to_rest(other)
    assert lines(ledger)[2:] == ["call x1 1"]


def test_answers_and_edits_reach_the_right_call(ledger: Path) -> None:
    run = make_calls(ledger)
    each = {"x1": respond({"of": "x1", "said": "by hand"}), "x2": edit(run, "x2", amount=50), "x3": APPROVE}
    say(run, each=each)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == ["call x2 50", "call x3 3"]
    assert [(one["of"], one["said"]) for one in state(run)["results"]] == [
        ("x1", "by hand"), ("x2", "done"), ("x3", "done"),
    ]  # fmt: skip


def test_an_action_that_ran_or_is_none_of_the_gate_does_not_run_under_the_grant_of_another(ledger: Path) -> None:
    run = make_calls(ledger, order=["x1", "x1", "x3"])
    say(run, each=MIXED)
    advance_to_rest(run)
    assert lines(ledger) == ["call x1 1"]
    assert trail(run)[-1] == ("reopen", "call_tool")
    assert open_gate(run).step == "review"
    other = make_calls(ledger, order=["other"])
    decide(other)
    advance_to_rest(other)
    assert lines(ledger) == ["call x1 1"]
    assert trail(other)[-1] == ("reopen", "call_tool")


def test_after_a_rewind_what_was_done_is_taken_and_not_done_again(ledger: Path) -> None:
    run = make_calls(ledger)
    decide(run)
    advance_to_rest(run)
    assert lines(ledger) == ["call x1 1", "call x2 2", "call x3 3"]
    rewind.rewind(run, to=seq_of(run, "think"), by=make_user("Bob Lindqvist", run.team))
    advance_to_rest(run)
    say(run, each={"x1": APPROVE, "x2": APPROVE, "x3": reject("Once was enough.")})
    advance_to_rest(run)
    assert run.status == "completed"
    assert lines(ledger) == ["call x1 1", "call x2 2", "call x3 3", "undo x3"]


def test_a_question_about_one_call_leaves_the_others_their_permissions(ledger: Path) -> None:
    run = make_calls(ledger, mode="fails x2")
    say(run, each={"x1": reject("Not this."), "x2": APPROVE, "x3": APPROVE})
    advance_to_rest(run)
    gate = open_gate(run)
    assert gate.kind == "recovery"
    assert [action.id for action in gate.asked.actions] == ["x2"]
    answer(run, "retry")
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == ["failed x2", "call x2 2", "call x3 3"]


def test_a_fork_from_after_the_gate_asks_about_every_call_anew(ledger: Path) -> None:
    run = make_calls(ledger)
    say(run, each=MIXED)
    advance_to_rest(run)
    fork = forks.fork(run, at=seq_of(run, "review", "gate"), by=make_user("Bob Lindqvist", run.team))
    advance_to_rest(fork)
    answer(fork, "take")  # what the origin has done
    advance_to_rest(fork)
    gate = open_gate(fork)
    assert gate.kind == "review"
    assert [action.settled for action in gate.asked.actions] == [None, None, None]
    assert lines(ledger) == ["call x1 1", "call x3 3"]


def test_a_result_that_was_taken_over_uses_up_the_permission_for_its_action(ledger: Path) -> None:
    run = make_calls(ledger)
    say(run, each=MIXED)
    advance_to_rest(run)
    again = [{"op": "replace", "path": "/order", "value": ["x1", "x1"]}]
    rewind.edit(run, at=seq_of(run, "think"), patch=again, by=make_user("Bob Lindqvist", run.team))
    advance_to_rest(run)
    decide(run)
    advance_to_rest(run)
    assert [line for line in lines(ledger) if line.startswith("call x1")] == ["call x1 1"]
    assert trail(run)[-1] == ("reopen", "call_tool")


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


def test_a_whole_state_lands_in_the_run_byte_for_byte_and_is_what_the_effects_do(ledger: Path) -> None:
    team = make_team()
    make_policy(team, name="three", whole_state=True)
    run = make_three(ledger, team=team)
    gate, saved = open_gate(run), state(run)

    def posted(wanted: dict[str, Any]) -> Any:
        body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "edit", "state": wanted}
        return signed_in(ann(team)).post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json")

    refused = posted(saved | {"said": "x" * 31})
    assert refused.status_code == 422
    assert [each["parameter"] for each in refused.json()["errors"]] == ["/state/said"]
    # New values in two actions, in what no action shows, and a field less.
    changed = {name: {**saved[name], "amount": amount} for name, amount in (("one", 11), ("two", 22))}
    wanted = {**saved, **changed, "said": "été \u200b"}
    del wanted["did_two"]
    assert posted(wanted).status_code == 201
    advance_to_rest(run)
    landed = store.load_checkpoint(Checkpoint.objects.get(run=run, kind="gate").id).state
    assert landed["decision"]["kind"] == "edited"
    told = {name: landed[name] for name in ("decision", "feedback")}  # the gate's own words to the agent
    assert encode_canonical(landed) == encode_canonical(wanted | told)
    assert (run.status, lines(ledger)[:2]) == ("completed", ["one 11", "two 22"])


def test_what_is_answered_for_or_rejected_is_said_as_that(ledger: Path) -> None:
    """Two that are passed by were told under the word of the first."""
    run = make_three(ledger)
    form = form_of(open_gate(run), "each", **{"verdict.a": "approve", "verdict.b": "reject", "verdict.c": "respond"})
    address, hx = f"/gates/{open_gate(run).pk}/impacts/", {"HX-Request": "true"}
    told = text_of(signed_in(ann(run.team)).post(address, form, headers=hx).content.decode())
    assert "Skipped Do two ; rejected" in told
    assert "Skipped Do three ; answered instead" in told


CHANGE = [{"op": "replace", "path": "/two/amount", "value": 9}]


def reopened(run: Run, *, at: str, kind: str = "step") -> Run:
    """Somebody changes what `do_two` would do, after the step `at`: its approval does not hold any more."""
    seq = Checkpoint.objects.filter(run=run, step=at, kind=kind).order_by("-seq")[0].seq
    rewind.edit(run, at=seq, patch=CHANGE, by=make_user("Bob Lindqvist", run.team))
    advance_to_rest(run)
    assert trail(run)[-1] == ("reopen", "do_two")
    return run


def test_what_was_refused_and_passed_by_stays_refused(ledger: Path) -> None:
    run = make_three(ledger)
    say(run, each={"a": reject("Too dear."), "b": APPROVE, "c": reject("Later.")})
    advance_to_rest(run)
    reopened(run, at="do_one", kind="skipped")
    a, b, c = open_gate(run).asked.actions
    assert (a.settled and a.settled.reason, a.verdicts) == ("Too dear.", ("reject",))
    assert (b.settled, b.verdicts) == (None, ("approve", "edit", "reject"))
    assert c.settled is not None
    with pytest.raises(Invalid, match="does not take approve"):
        say(run, each={"a": APPROVE, "b": APPROVE, "c": {"verdict": "reject"}})
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert [line for line in lines(ledger) if line.startswith(("one", "three"))] == []
    assert "two 9" in lines(ledger)


def test_what_is_done_cannot_be_refused_there(ledger: Path) -> None:
    run = make_three(ledger)
    say(run, each={"a": APPROVE, "b": APPROVE, "c": reject("Later.")})
    advance_to_rest(run)
    reopened(run, at="do_one")
    assert open_gate(run).asked.actions[0].verdicts == ("approve", "edit")
    with pytest.raises(Invalid, match="does not take reject"):
        say(run, each={"a": reject(), "b": APPROVE, "c": {"verdict": "reject"}})
    say(run, each={"a": APPROVE, "b": reject("Not at nine."), "c": {"verdict": "reject"}})
    assert advance_to_rest(run).status == "completed"
    assert [line for line in lines(ledger) if line.startswith("one")] == ["one 1"]
    assert "two 9" not in lines(ledger)


REJECTS_C: dict[str, Any] = {"a": APPROVE, "b": APPROVE, "c": reject("Not to these people.")}


def two_of_two() -> Any:
    team = make_team()
    make_policy(team, name="three", quorum=2)
    return team


def test_the_next_reviewer_sees_what_was_refused_and_a_quorum_agrees_on_one_digest(ledger: Path) -> None:
    team = two_of_two()
    run = make_three(ledger, team=team)
    say(run, by=ann(team), each=REJECTS_C)
    gate = open_gate(run)
    assert gate.status == "open"
    settled = gate.standing().card.actions[2].settled
    assert settled is not None
    assert (settled.verdict, settled.by, settled.reason) == ("reject", "Ann Okafor", "Not to these people.")
    said = say(run, by=bob(team), each={"a": APPROVE, "b": APPROVE, "c": {"verdict": "reject"}})  # the same of each
    assert said.by_action == {"a": "approve", "b": "approve", "c": "reject"}
    gate.refresh_from_db()
    assert gate.outcome.kind == "mixed"
    assert bytes(gate.outcome.to_run or b"") == gate.outcome.approved().digest()
    assert {vote.proposal.number for vote in gate.outcome.decisions.all()} == {2}
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == ["one 1", "two 2", "log True"]


def test_whoever_has_it_run_after_all_asks_the_first_one_again(ledger: Path) -> None:
    team = two_of_two()
    run = make_three(ledger, team=team)
    first = say(run, by=ann(team), each=REJECTS_C)
    say(run, by=bob(team), each={"a": reject("Nor this."), "b": APPROVE, "c": APPROVE})
    gate = open_gate(run)
    first.refresh_from_db()
    assert (gate.status, gate.proposal, first.counts) == ("open", 3, False)
    decide(run, by=ann(team))
    gate.refresh_from_db()
    assert gate.outcome.by_action == {"a": "reject", "b": "approve", "c": "approve"}


def test_a_refusal_drops_what_somebody_else_had_edited_in_it(ledger: Path) -> None:
    team = two_of_two()
    run = make_three(ledger, team=team)
    say(run, by=ann(team), each={"a": edit(run, "a", amount=50), "b": edit(run, "b", amount=60), "c": APPROVE})
    say(run, by=bob(team), each={"a": reject("No."), "b": APPROVE, "c": APPROVE})
    decide(run, by=ann(team))
    assert advance_to_rest(run).status == "completed"
    assert (state(run)["one"]["amount"], state(run)["two"]["amount"]) == (1, 60)


def test_the_same_key_gives_the_same_word_and_the_loser_is_told_by_name(ledger: Path) -> None:
    run = make_three(ledger)
    gate, by = open_gate(run), ann(run.team)
    seen = bytes(gate.standing().digest)

    def said(**words: Any) -> Decision:
        return deciding.decide(gate, Submission(seen=seen, key="once", **words), by=by)

    assert said(verdicts=REJECTS_C).pk == said(verdicts=REJECTS_C).pk
    with pytest.raises(Rejected, match="sent before with other content"):
        said(verdicts={**REJECTS_C, "a": reject("No.")})
    with pytest.raises(AlreadyDecided, match="Ann Okafor already decided this: Decided action by action"):
        deciding.decide(gate, Submission(seen=seen, key="late", verdicts=REJECTS_C), by=bob(run.team))


FAULTS: list[tuple[dict[str, Any], dict[str, Any], tuple[str, str, str]]] = [
    ({"a": APPROVE, "b": APPROVE}, {}, ("c", "verdict", "")),
    ({**REJECTS_C, "d": APPROVE}, {}, ("d", "", "")),
    ({**REJECTS_C, "c": {"verdict": "reject", "reason": " "}}, {}, ("c", "reason", "")),
    ({**REJECTS_C, "a": respond("By hand.")}, {}, ("a", "verdict", "")),
    ({**REJECTS_C, "c": respond("x" * 31)}, {}, ("c", "response", "")),
    ({**REJECTS_C, "a": {"verdict": "approve", "arguments": {}}}, {}, ("a", "", "")),
    ({**REJECTS_C, "a": {"verdict": "reject", "reason": 5}}, {}, ("a", "reason", "")),
    ({**REJECTS_C, "a": {"verdict": "edit", "arguments": {"id": "one", "tool": "one", "amount": -1}}}, {},
     ("a", "", "/amount")),
    (REJECTS_C, {"then": "back"}, ("", "", "/then")),
    (REJECTS_C, {"arguments": {"a": {}}}, ("a", "", "")),
]  # fmt: skip


def test_what_no_gate_takes_is_refused_at_its_place(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    for each, said, place in FAULTS:
        with pytest.raises(Rejected) as refused:
            say(run, each=each, **said)
        assert place in [(one["action"], one["part"], one["pointer"]) for one in refused.value.errors], place
    assert Gate.objects.get(pk=gate.pk).status == "open"
    assert Event.objects.filter(subject=gate.subject, kind="decision.refused").count() == len(FAULTS)
    with pytest.raises(Rejected, match="one for each of them"):
        decide(run, "approve", verdicts=REJECTS_C)
    with pytest.raises(Rejected, match="approve it, or change a value") as refused:
        say(run, each={**REJECTS_C, "b": edit(run, "b")})
    assert refused.value.errors[0]["action"] == "b"


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        ([Action(id="a", effect="do_one", pointer="/one", verdicts=["reject"])], "takes none of 'approve'"),
        ([Action(id="a", effect="do_one", verdicts=["approve", "edit"])], "lets nobody edit"),
        ([Action(id="a", effect="do_one", verdicts=["approve", "allow"])], "no verdict 'allow'"),
        ([Action(id=each, effect="do_one", pointer="/one") for each in "ab"], "say which one it is about to perform"),
    ],
)
def test_senseless_verdicts_are_refused_when_the_gate_opens(actions: list[Action], words: str, ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    plan = spec_of(run.plan)
    card = gate.asked.__class__(title="Three", actions=actions)
    with pytest.raises(CardRefused, match=words):
        completed(card, step=plan.step("review"), plan=plan, state=gate.saved.state)


def test_a_worker_that_fails_while_it_passes_an_action_by_passes_it_by_once(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_calls(ledger)
    say(run, each={"x1": APPROVE, "x2": reject("No."), "x3": APPROVE})
    crash_points._hits.clear()
    monkeypatch.setenv("HOLDPOINT_CRASH", "before_save@call_tool:fail:2")
    assert advance_to_rest(run).status == "completed"
    assert crash_points._hits["before_save@call_tool"] >= 3
    assert lines(ledger) == ["call x1 1", "call x3 3"]
