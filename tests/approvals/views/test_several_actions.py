"""A gate with several actions: a choice beside each, one about all of them, and nothing that was typed is lost."""

from __future__ import annotations

import re
from pathlib import Path

from approvals.models import Gate
from tests.approvals.cards.verdicts.conftest import known_agents, ledger
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, make_three, reject, respond, say
from tests.factories import ann, bob, decide, make_gate, make_policy, make_team
from tests.factories.driven_runs import open_gate
from tests.harness.signed_in_clients import form_of, post, signed_in

__all__ = ["known_agents", "ledger"]
AMOUNT_B = "args.b/amount"


def each(a: str, b: str, c: str, **more: str) -> dict[str, str]:
    """A form that decides each action by itself; `reason_c` is the field reason.c."""
    fields = {name.replace("_", "."): text for name, text in more.items()}
    return {"verdict": "each", "verdict.a": a, "verdict.b": b, "verdict.c": c, **fields}


def fresh(gate: Gate) -> Gate:
    return Gate.objects.get(pk=gate.pk)


def page_of(gate: Gate, user: object) -> str:
    return signed_in(user).get(f"/gates/{gate.pk}/").content.decode()  # type: ignore[arg-type]


def test_each_action_has_a_choice_with_what_it_takes_and_one_gate_has_none(ledger: Path) -> None:
    run = make_three(ledger)
    page = page_of(open_gate(run), ann(run.team))
    found = {name: re.findall(rf'name="verdict\.{name}" value="(\w+)"', page) for name in "abc"}
    plain = ["approve", "edit", "reject"]
    assert found == {"a": plain, "b": plain, "c": [*plain, "respond"]}
    team = make_team()
    assert 'name="verdict.' not in page_of(make_gate(team=team), ann(team))


def test_a_form_that_approves_edits_and_rejects_makes_one_outcome(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    form = form_of(gate) | each("approve", "edit", "reject", reason_c="Not now.") | {AMOUNT_B: "20"}
    assert post(ann(run.team), gate, form).status_code == 303
    outcome = fresh(gate).outcome
    assert (outcome.kind, outcome.by_action) == ("mixed", {"a": "approve", "b": "edit", "c": "reject"})
    page = page_of(fresh(gate), ann(run.team))
    assert "Approved 1, edited 1, rejected 1 by Ann Okafor" in page
    assert "Not now." in page
    assert 'data-verdict="reject"' in page


def test_what_is_missing_is_said_beside_each_and_everything_typed_is_kept(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    form = (
        form_of(gate) | each("approve", "", "respond", reason_c="half a thought") | {AMOUNT_B: "20", "comment": "Mine"}
    )
    answer = post(ann(run.team), gate, form)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Choose a verdict for this action." in page
    assert "Write what the agent gets in its place." in page
    assert 'value="20"' in page
    assert "half a thought" in page
    assert "Mine" in page
    assert re.search(r'name="verdict\.c" value="respond"[^>]* checked', page)
    assert fresh(gate).status == "open"


def test_the_notice_of_a_refusal_leads_to_the_action_that_is_undecided_and_to_the_missing_reason(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    page = post(ann(run.team), gate, form_of(gate) | each("approve", "", "reject")).content.decode()
    notice = page[page.index('id="refusal"') :]
    places = re.findall(r'href="#([^"]+)"', notice[: notice.index("</ul>")])
    assert places == ["action-b", "reason-3"]
    assert all(f'id="{place}"' in page for place in places)


def test_a_rejection_without_a_reason_names_its_field(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    page = post(ann(run.team), gate, form_of(gate) | each("approve", "approve", "reject")).content.decode()
    assert 'id="reason-3-error"' in page
    assert re.search(r'name="reason\.c"[^>]*aria-invalid="true"', page)


def test_an_approval_of_a_changed_field_is_no_approval(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    form = form_of(gate) | each("approve", "approve", "approve") | {AMOUNT_B: "20"}
    assert "You changed a field but chose Approve." in post(ann(run.team), gate, form).content.decode()


def test_all_of_them_rejected_one_by_one_sends_the_run_back(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    form = form_of(gate) | each("reject", "reject", "reject", reason_a="No.") | {"then": "back", "back_to": "look"}
    assert post(ann(run.team), gate, form).status_code == 303
    assert (fresh(gate).outcome.kind, fresh(gate).outcome.back_to) == ("rejected", "look")


def test_without_scripts_the_consequences_are_a_page_with_everything_as_it_was_filled_in(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    form = form_of(gate) | each("approve", "edit", "reject", reason_c="Not now.") | {AMOUNT_B: "20"}
    answer = signed_in(ann(run.team)).post(f"/gates/{gate.pk}/impacts/", form)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "Skipped" in page
    assert "Approve with edit: do one, do two, log; reject 1" in page
    assert 'value="20"' in page
    assert "Not now." in page
    assert fresh(gate).status == "open"


def test_the_part_that_is_fetched_while_one_chooses_names_what_is_passed_by(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    form = form_of(gate) | each("approve", "approve", "respond", response_c="Rang them.")
    part = signed_in(ann(run.team)).post(f"/gates/{gate.pk}/impacts/", form, headers={"HX-Request": "true"})
    assert "<html" not in part.content.decode()
    assert re.search(
        r"Skipped</span></dt>\s*<dd>\s*<b>.*Do three.*</b>;\s+<bdi>answered instead", part.content.decode()
    )


def test_the_next_reviewer_reads_who_refused_what_and_agrees_to_it(ledger: Path) -> None:
    team = make_team()
    make_policy(team, name="three", quorum=2)
    run = make_three(ledger, team=team)
    gate = open_gate(run)
    say(run, by=ann(team), each={"a": APPROVE, "b": APPROVE, "c": reject("Not to these people.")})
    page = page_of(gate, bob(team))
    assert re.search(r"Rejected by .{0,20}Ann Okafor", page)
    assert "Not to these people." in page
    assert re.search(r'name="verdict\.c" value="reject"[^>]* checked', page)
    assert post(bob(team), gate, form_of(gate)).status_code == 303
    assert fresh(gate).outcome.by_action["c"] == "reject"


def test_the_slower_one_sees_what_was_decided_and_what_they_had_chosen(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    form = form_of(gate) | each("approve", "edit", "reject", reason_c="My own reason.") | {AMOUNT_B: "33"}
    say(run, by=bob(run.team), each={"a": reject("Too dear."), "b": APPROVE, "c": respond("I rang them.")})
    answer = post(ann(run.team), gate, form)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "Bob Lindqvist already decided this" in page
    assert "Approved 1, rejected 1, answered 1 by Bob Lindqvist" in page
    assert "Too dear." in page
    assert "My own reason." in page
    assert "33" in page


def test_what_is_asked_changed_meanwhile_keeps_the_choices_for_the_next_try(ledger: Path) -> None:
    team = make_team()
    make_policy(team, name="three", quorum=2)
    run = make_three(ledger, team=team)
    gate = open_gate(run)
    form = form_of(gate) | each("approve", "edit", "reject", reason_c="My own reason.") | {AMOUNT_B: "33"}
    say(run, by=bob(team), each={"a": reject("Too dear."), "b": APPROVE, "c": APPROVE})
    answer = post(ann(team), gate, form)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "edited this gate after you opened it" in page
    assert "My own reason." in page
    assert 'value="33"' in page
    assert re.search(r'name="verdict\.b" value="edit"[^>]* checked', page)


def test_the_inbox_says_what_became_of_each(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    reader = ann(run.team)
    say(run, by=bob(run.team), each={"a": APPROVE, "b": APPROVE, "c": reject("No.")})
    assert "Approved 2, rejected 1 by Bob Lindqvist" in signed_in(reader).get("/?queue=decided").content.decode()
    assert fresh(gate).status == "decided"


def test_a_plain_approval_of_all_still_is_one(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    assert post(ann(run.team), gate, form_of(gate)).status_code == 303
    assert fresh(gate).outcome.kind == "approved"
    decided = fresh(gate)
    assert decided.outcome.grants.count() == 4


def test_nobody_decides_a_single_action_one_by_one() -> None:
    team = make_team()
    gate = make_gate(team=team)
    decide(gate, ann(team), "", verdicts={"refund": {"verdict": "reject", "reason": "No."}}, then="stop")
    assert fresh(gate).outcome.kind == "rejected"
