"""Words on each action: what a quorum agrees on, who was faster, and what no gate takes."""

from __future__ import annotations

import datetime as dt
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from approvals.cards.action import Action
from approvals.cards.card import completed
from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.errors import AlreadyDecided, CardRefused, Rejected, StaleGate
from approvals.gates import closing
from approvals.gates.closing import pass_deadline
from approvals.models import Decision, Gate, Outcome
from checkpoints import crash_points
from checkpoints.models import Event
from checkpoints.runs.plans import spec_of
from tests.factories import ann, bob, make_policy, make_team, mira
from tests.factories.driven_runs import advance_to_rest, decide, open_gate, state
from tests.harness.racing_threads import race

from .verdict_forms import APPROVE, edit, lines, make_calls, make_three, reject, respond, say

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
    decide(run, by=bob(team))
    gate.refresh_from_db()
    assert gate.outcome.kind == "mixed"
    assert bytes(gate.outcome.to_run or b"") == gate.outcome.approved().digest()
    assert {vote.proposal.number for vote in gate.outcome.decisions.all()} == {2}
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == ["one 1", "two 2", "log True"]


def test_to_say_the_same_of_each_is_to_agree_with_what_stands(ledger: Path) -> None:
    team = two_of_two()
    run = make_three(ledger, team=team)
    say(run, by=ann(team), each=REJECTS_C)
    gate = open_gate(run)
    said = say(run, by=bob(team), each={"a": APPROVE, "b": APPROVE, "c": {"verdict": "reject"}})
    gate.refresh_from_db()
    assert (gate.status, gate.proposals.count()) == ("decided", 2)
    assert said.by_action == {"a": "approve", "b": "approve", "c": "reject"}


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


def test_an_edit_of_what_others_refused_has_it_run(ledger: Path) -> None:
    team = two_of_two()
    run = make_three(ledger, team=team)
    say(run, by=ann(team), each=REJECTS_C)
    changed = edit(run, "c", amount=33)["arguments"]
    decide(run, "edit", by=bob(team), arguments={"c": changed})
    decide(run, by=ann(team))
    assert advance_to_rest(run).status == "completed"
    assert "three 33" in lines(ledger)


def test_a_refusal_drops_what_somebody_else_had_edited_in_it(ledger: Path) -> None:
    team = two_of_two()
    run = make_three(ledger, team=team)
    say(run, by=ann(team), each={"a": edit(run, "a", amount=50), "b": edit(run, "b", amount=60), "c": APPROVE})
    say(run, by=bob(team), each={"a": reject("No."), "b": APPROVE, "c": APPROVE})
    decide(run, by=ann(team))
    assert advance_to_rest(run).status == "completed"
    assert (state(run)["one"]["amount"], state(run)["two"]["amount"]) == (1, 60)


def test_of_two_people_who_decide_differently_at_once_one_is_told_who_was_faster(ledger: Path) -> None:
    for _ in range(3):
        team = make_team()  # of its own: what was rejected twice in a team is asked again only after a pause
        first, second = ann(team), bob(team)
        run = make_three(ledger, team=team)
        gate = open_gate(run)
        seen = bytes(gate.standing().digest)
        said = [
            partial(deciding.decide, gate, Submission(seen=seen, key="ann", verdicts=REJECTS_C), by=first),
            partial(
                deciding.decide,
                Gate.objects.get(pk=gate.pk),
                Submission(seen=seen, key="bob", verdict="approve"),
                by=second,
            ),
        ]
        results = race(said)
        assert sorted(type(each).__name__ for each in results) == ["AlreadyDecided", "Decision"]
        outcome = Outcome.objects.get(gate=gate)
        won = next(each for each in results if isinstance(each, Decision))
        assert outcome.kind == ("mixed" if won.user_id == first.pk else "approved")
        assert outcome.grants.filter(action="c").exists() == (outcome.kind == "approved")


def test_in_a_quorum_the_slower_of_two_mixed_words_is_stale_and_says_what_changed(ledger: Path) -> None:
    team = two_of_two()
    run = make_three(ledger, team=team)
    seen = bytes(open_gate(run).standing().digest)
    say(run, by=ann(team), each=REJECTS_C)
    with pytest.raises(StaleGate) as stale:
        deciding.decide(
            open_gate(run),
            Submission(seen=seen, key="late", verdicts={**REJECTS_C, "a": reject("No.")}),
            by=bob(team),
        )
    [row] = stale.value.changes
    assert (row["of"], row["before"], row["after"]["verdict"]) == ("verdict:c", None, "reject")


def test_the_same_key_gives_the_same_word_and_another_word_is_refused(ledger: Path) -> None:
    run = make_three(ledger)
    gate, by = open_gate(run), ann(run.team)
    seen = bytes(gate.standing().digest)

    def said(**words: Any) -> Decision:
        return deciding.decide(gate, Submission(seen=seen, key="once", **words), by=by)

    assert said(verdicts=REJECTS_C).pk == said(verdicts=REJECTS_C).pk
    with pytest.raises(Rejected, match="sent before with other content"):
        said(verdicts={**REJECTS_C, "a": reject("No.")})


@pytest.mark.parametrize(
    ("each", "said", "place"),
    [
        ({"a": APPROVE, "b": APPROVE}, {}, ("c", "verdict", "")),
        ({**REJECTS_C, "d": APPROVE}, {}, ("d", "", "")),
        ({**REJECTS_C, "c": {"verdict": "reject", "reason": " "}}, {}, ("c", "reason", "")),
        ({**REJECTS_C, "a": respond("By hand.")}, {}, ("a", "verdict", "")),
        ({**REJECTS_C, "a": {"verdict": "allow"}}, {}, ("a", "verdict", "")),
        ({**REJECTS_C, "c": {"verdict": "respond"}}, {}, ("c", "response", "")),
        ({**REJECTS_C, "c": respond("x" * 31)}, {}, ("c", "response", "")),
        ({**REJECTS_C, "c": respond({"not": "a text"})}, {}, ("c", "response", "")),
        ({**REJECTS_C, "a": {"verdict": "approve", "arguments": {}}}, {}, ("a", "", "")),
        ({**REJECTS_C, "a": {"verdict": "approve", "reason": "so"}}, {}, ("a", "reason", "")),
        ({**REJECTS_C, "a": {"verdict": "reject", "reason": 5}}, {}, ("a", "reason", "")),
        ({**REJECTS_C, "a": {"verdict": "edit"}}, {}, ("a", "", "")),
        ({**REJECTS_C, "a": {"verdict": "edit", "arguments": {"id": "one", "tool": "one", "amount": -1}}}, {},
         ("a", "", "/amount")),
        (REJECTS_C, {"then": "back"}, ("", "", "/then")),
        (REJECTS_C, {"arguments": {"a": {}}}, ("a", "", "")),
    ],
)  # fmt: skip
def test_what_no_gate_takes_is_refused_at_its_place(
    each: dict[str, Any], said: dict[str, Any], place: tuple[str, str, str], ledger: Path
) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    with pytest.raises(Rejected) as refused:
        say(run, each=each, **said)
    assert place in [(one["action"], one["part"], one["pointer"]) for one in refused.value.errors]
    assert Gate.objects.get(pk=gate.pk).status == "open"
    assert Event.objects.filter(subject=gate.subject, kind="decision.refused").count() == 1


def test_one_verdict_for_all_and_one_for_each_are_not_said_together(ledger: Path) -> None:
    run = make_three(ledger)
    with pytest.raises(Rejected, match="one for each of them"):
        decide(run, "approve", verdicts=REJECTS_C)


def test_an_edit_that_changes_nothing_is_named_by_its_action(ledger: Path) -> None:
    run = make_three(ledger)
    with pytest.raises(Rejected, match="approve it, or change a value") as refused:
        say(run, each={**REJECTS_C, "b": edit(run, "b")})
    assert refused.value.errors[0]["action"] == "b"


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (Action(id="a", effect="do_one", pointer="/one", verdicts=["reject"]), "takes none of 'approve'"),
        (Action(id="a", effect="do_one", verdicts=["approve", "edit"]), "lets nobody edit"),
        (Action(id="a", effect="do_one", verdicts=["approve", "allow"]), "no verdict 'allow'"),
    ],
)
def test_senseless_verdicts_are_refused_when_the_gate_opens(action: Action, words: str, ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    plan = spec_of(run.plan)
    card = gate.asked.__class__(title="Three", actions=[action])
    with pytest.raises(CardRefused, match=words):
        completed(card, step=plan.step("review"), plan=plan, state=gate.saved.state)


def test_several_actions_on_an_effect_that_does_not_say_which_are_refused(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    plan = spec_of(run.plan)
    both = [Action(id=name, effect="do_one", pointer="/one") for name in ("a", "b")]
    card = gate.asked.__class__(title="Twice", actions=both)
    with pytest.raises(CardRefused, match="say which one it is about to perform"):
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


def test_a_deadline_that_approves_does_not_approve_what_one_of_two_decided(ledger: Path) -> None:
    team = make_team()
    make_policy(team, name="three", quorum=2, on_expiry="approve", deadline=dt.timedelta(days=1))
    run = make_three(ledger, team=team)
    say(run, by=mira(team), each=REJECTS_C)
    gate = open_gate(run)

    pass_deadline(gate)
    outcome = closing.expire(gate)
    assert outcome is not None
    assert (outcome.kind, outcome.grants.count()) == ("expired", 0)


def test_the_loser_is_told_by_name(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    seen = bytes(gate.standing().digest)
    say(run, by=ann(run.team), each=REJECTS_C)
    with pytest.raises(AlreadyDecided, match="Ann Okafor already decided this: Decided action by action"):
        deciding.decide(gate, Submission(seen=seen, key="late", verdicts=REJECTS_C), by=bob(run.team))
