"""Several gates decided together: each by itself, with a result of its own, and never twice."""

from __future__ import annotations

import re
import secrets
from typing import Any

import pytest

from approvals.assignments import claims
from approvals.decisions.bulk import orders
from approvals.decisions.bulk.carrying_out import carry_out
from approvals.decisions.bulk.orders import BulkChoice, BulkSubmission
from approvals.decisions.undo_window import take_back
from approvals.errors import Invalid
from approvals.gates import closing
from approvals.models import BulkOrder, Decision, Gate
from approvals.views import inbox
from approvals.views.lists.bulk import choices_in
from checkpoints import actors, crash_points
from checkpoints.models import Event
from checkpoints.values.canonical_json import decode_canonical
from tests.approvals.assignments.test_away import lend
from tests.approvals.bulk.bulk_forms import REASON, alike, form, make_stuck_plan, preview, send
from tests.approvals.decisions.undoing.windows import WINDOW
from tests.factories import (
    ann,
    bob,
    decide,
    edit_amount,
    eve,
    make_card,
    make_gate,
    make_policy,
    make_question,
    make_team,
    make_user,
)
from tests.harness.signed_in_clients import signed_in

STATUS = re.compile(r'class="status" data-status="(\w+)"')


def statuses(gates: list[Gate]) -> list[str]:
    found = dict(Gate.objects.filter(pk__in=[gate.pk for gate in gates]).values_list("pk", "status"))
    return [found[gate.pk] for gate in gates]


def test_each_of_the_selection_is_listed_with_what_a_yes_does_and_decided_by_one_order() -> None:
    gates, client = alike(3, policy=make_policy(team := make_team())), signed_in(ann(team))
    page = preview(client, gates)
    assert [f"Refund {n}" in page for n in (1, 2, 3)] == [True] * 3
    assert page.count("Refunds €120.00 and replies, each once") == 3
    assert statuses(gates) == ["open"] * 3
    results = send(client, form(page))
    assert "You approved 3 gates" in results
    assert (STATUS.findall(results), statuses(gates)) == (["approved"] * 3, ["decided"] * 3)
    decisions = Decision.objects.filter(gate__in=gates)
    assert {(each.words, each.second_look) for each in decisions} == {(REASON, True)}
    order = BulkOrder.objects.latest("pk")
    told = Event.objects.filter(kind="gate.decided", subject__in=[gate.subject for gate in gates])
    assert [decode_canonical(bytes(each.data))["bulk"] for each in told] == [order.pk] * 3


def test_two_of_four_are_refused_by_the_policy_and_say_why() -> None:
    policy = make_policy(team := make_team())
    gates, risky = alike(2, policy=policy), alike(2, policy=policy, risk="high")
    client = signed_in(ann(team))
    page = preview(client, [*gates, *risky])
    assert page.count("The risk is high; the policy allows at most low for decisions together.") == 2
    filled = form(page)
    assert len(filled["choice"]) == 2
    # A forged form that names them anyway gets the same answer for each, and nothing is decided.
    forged = [f"{gate.pk}:{bytes(gate.standing().digest).hex()}:" for gate in risky]
    results = send(client, {**filled, "choice": [*filled["choice"], *forged]})
    assert "You approved 2 gates" in results
    assert (results.count("The risk is high"), statuses([*gates, *risky])) == (2, ["decided"] * 2 + ["open"] * 2)
    refused = Event.objects.filter(kind="decision.refused", subject__in=[gate.subject for gate in risky])
    assert [decode_canonical(bytes(each.data))["kind"] for each in refused] == ["not_in_bulk"] * 2


def test_the_policy_says_up_to_which_risk() -> None:
    team = make_team()
    client = signed_in(ann(team))
    for most, together in (("none", 0), ("low", 1), ("medium", 2)):
        policy = make_policy(team, name=most)
        type(policy).objects.filter(pk=policy.pk).update(bulk_risk=most)
        gates = [alike(1, policy=policy, risk=risk)[0] for risk in ("low", "medium", "high")]
        assert preview(client, gates).count('name="choice"') == together


def test_what_has_to_be_answered_or_is_of_another_kind_stays_open() -> None:
    policy = make_policy(team := make_team())
    [first] = alike(1, policy=policy)
    other = make_gate(policy=make_policy(team, name="wires"), card=make_card(title="A wire", risk="low"))
    question = make_gate(team=team, kind="recovery", card=make_question())
    risky = make_gate(policy=make_policy(team, name="high"), card=make_card(title="A large wire", risk="high"))
    page = preview(signed_in(ann(team)), [risky, first, other, question])
    assert page.count('name="choice"') == 1
    assert "The risk is high" in page  # and it does not keep the others from their kind
    assert "It is of another kind than the first" in page
    assert "The gate asks a question. Open it to answer." in page


def test_the_result_of_a_gate_says_that_it_can_be_undone_and_where_it_was() -> None:
    """After an undo the page still said "Approved by you"."""
    gates, person = alike(2, policy=make_policy(team := make_team(), undo_window=WINDOW)), ann(team)
    results = send(client := signed_in(person), form(preview(client, gates)))
    assert results.count("Approved, and can still be undone") == 2
    take_back(gates[0], by=person)
    results = client.get(f"/inbox/bulk/{BulkOrder.objects.latest('pk').pk}/").content.decode()
    assert STATUS.findall(results) == ["withdrawn", "approved"]
    assert results.count("Taken back, or counts no more") == 1
    assert "others must too" not in results


def test_the_result_of_a_gate_that_ended_otherwise_says_how() -> None:
    """A gate that others had rejected, or that was withdrawn, was still listed as "Approved"."""
    gates, client = alike(3, policy=make_policy(team := make_team(), quorum=2)), signed_in(ann(team))
    send(client, form(preview(client, gates)))
    decide(gates[0], bob(team), "reject")
    closing.withdraw(gates[1], by=actors.SYSTEM, reason="The run ended.")
    decide(gates[2], bob(team))
    results = client.get(f"/inbox/bulk/{BulkOrder.objects.latest('pk').pk}/").content.decode()
    assert STATUS.findall(results) == ["withdrawn", "withdrawn", "approved"]
    for how in ("Rejected", "Withdrawn"):
        assert f"You approved it, and it ended otherwise: {how}" in results


def test_a_gate_that_somebody_is_on_or_has_rejected_is_not_listed_as_one_that_will_be_decided() -> None:
    """It was, and then refused."""
    gates, other = alike(3, policy=make_policy(team := make_team(), undo_window=WINDOW)), bob(team)
    claims.claim(gates[0], by=other)
    decide(gates[1], other, "reject")
    page = preview(signed_in(ann(team)), gates)
    assert page.count('name="choice"') == 1
    assert "Bob Lindqvist has this gate and is working on it." in page
    assert "Bob Lindqvist rejected this, so your decision would change nothing." in page
    assert preview(signed_in(ann(team)), gates[1:], "reject").count('name="choice"') == 2


def test_an_approval_that_fills_no_place_is_not_offered_in_the_list() -> None:
    """The list said that the refund runs, though the next stage has to approve it."""
    team, legal = make_team(), make_team("Legal")
    stages = [{"roles": [{"quorum": 1, "groups": [each.pk], "people": []}]} for each in (team, legal)]
    [gate] = alike(1, policy=make_policy(team, stages=stages))
    decide(gate, bob(team))
    page = preview(signed_in(ann(team)), [gate])
    assert "Your approval would complete nothing now. One of Legal" in page
    assert 'name="choice"' not in page


def test_what_changed_since_the_list_is_refused_and_the_rest_is_decided() -> None:
    team = make_team()
    reviewer = ann(team)
    gates, client = alike(3, policy=make_policy(team, quorum=2)), signed_in(reviewer)
    filled = form(preview(client, gates))
    decide(gates[1], bob(team), "edit", arguments=edit_amount(gates[1], "80.00"))
    results = send(client, {**filled, "choice": [f"{each}\0" for each in filled["choice"]]})  # a NUL is no error
    assert "You approved 2 gates" in results
    assert "edited this gate after you opened it" in results
    assert not Decision.objects.filter(gate=gates[1], user=reviewer).exists()
    assert "Approved by you, others must too" in results


def test_somebody_elses_gates_in_the_form_are_told_nothing_of() -> None:
    team, other = make_team(), make_team("Finance")
    mine = alike(1, policy=make_policy(team))
    theirs = make_gate(team=other, card=make_card(title="A payroll secret", risk="low"))
    client = signed_in(ann(team))
    page = preview(client, [*mine, theirs])
    assert "A payroll secret" not in page
    assert "One more number of the selection names no gate that you see." in page
    filled = form(page)
    choice = f"{theirs.pk}:{bytes(theirs.standing().digest).hex()}:"
    results = send(client, {**filled, "choice": [*filled["choice"], choice]})
    assert "A payroll secret" not in results
    assert "You see no gate of this number." in results
    assert statuses([*mine, theirs]) == ["decided", "open"]
    assert not Event.objects.filter(kind="decision.refused", subject=theirs.subject).exists()


def test_the_same_form_again_is_the_same_order_and_another_content_is_refused() -> None:
    team = make_team()
    reviewer = ann(team)
    gates, client = alike(2, policy=make_policy(team)), signed_in(reviewer)
    filled = form(preview(client, gates))
    assert [STATUS.findall(send(client, filled)) for _ in range(2)] == [["approved"] * 2] * 2
    assert Decision.objects.filter(gate__in=gates).count() == 2
    assert BulkOrder.objects.filter(user=reviewer).count() == 1
    again = client.post("/inbox/bulk/decisions/", {**filled, "comment": "Something else."})
    assert again.status_code == 422
    assert "This form was sent before with other content" in again.content.decode()


def test_a_reason_and_a_look_are_asked() -> None:
    gates, client = alike(2, policy=make_policy(team := make_team())), signed_in(ann(team))
    filled = form(preview(client, gates))
    missing = (({"comment": " "}, "Write why you decide these together."), ({"second_look": ""}, "tick that you did"))
    for said, words in missing:
        answer = client.post("/inbox/bulk/decisions/", {**filled, **said})
        assert answer.status_code == 422
        assert words in answer.content.decode()
        assert filled["key"] in answer.content.decode()
    assert statuses(gates) == ["open"] * 2


def test_gates_without_a_step_are_not_sent_back() -> None:
    policy = make_policy(team := make_team())
    gates, stuck = alike(2, policy=policy), alike(1, policy=policy, plan=make_stuck_plan())
    client = signed_in(ann(team))
    page = preview(client, [*gates, *stuck], "reject")
    assert page.count("Nothing runs. The run stops as rejected") == 3
    assert page.count("The run goes back to “Propose” with your reason") == 2
    assert page.count("its agent names no step to send it back to") == 1
    results = send(client, form(page, verdict="reject", then="back", second_look=""))
    assert "You rejected 2 gates" in results
    assert statuses([*gates, *stuck]) == ["decided", "decided", "open"]
    page = preview(client, stuck, "reject")
    assert 'value="back" disabled' in page
    send(client, form(page, verdict="reject", then="stop", second_look=""))
    assert [Gate.objects.get(pk=each.pk).outcome.kind for each in (*gates, *stuck)] == ["rejected"] * 3


def test_whoever_decides_under_no_policy_of_their_own_decides_together_too() -> None:
    """The list offered them the gates, and the order was refused (403)."""
    gates = alike(2, policy=make_policy(team := make_team()))
    lend(ann(team), other := make_user("Bo Elsewhere"))
    client = signed_in(other)
    assert client.get("/").content.count(b'name="gate"') == 2
    assert "You approved 2 gates" in send(client, form(preview(client, gates)))
    assert statuses(gates) == ["decided"] * 2


def test_the_others_of_the_kind_on_the_next_pages_are_added_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = make_policy(team := make_team())
    monkeypatch.setattr(inbox, "SHOWN", 2)
    gates, risky = alike(5, policy=policy), alike(2, policy=policy, risk="high")
    other = make_gate(policy=make_policy(team, name="wires"), card=make_card(title="A wire", risk="low"))
    client = signed_in(ann(team))
    assert 'name="more"' in client.get("/?queue=mine").content.decode()
    said = {"gate": [gates[0].pk], "verdict": "approve", "more": "yes", "here": "queue=mine&sort=oldest&after=7"}
    page = client.post("/inbox/bulk/", said).content.decode()
    assert page.count('name="choice"') == 5
    for gate in (*risky, other):
        assert f'id="bulk-{gate.pk}"' not in page
    assert client.post("/inbox/bulk/", {**said, "gate": [risky[0].pk]}).content.decode().count('name="choice"') == 0


def test_another_persons_order_is_not_there() -> None:
    team = make_team()
    client = signed_in(ann(team))
    send(client, form(preview(client, alike(1, policy=make_policy(team)))))
    order = BulkOrder.objects.latest("pk")
    for other in (bob(team), eve()):
        assert signed_in(other).get(f"/inbox/bulk/{order.pk}/").status_code == 404
        assert signed_in(other).post("/inbox/bulk/decisions/", {"order": order.pk}).status_code == 404


def test_an_order_that_crashes_in_the_middle_leaves_what_it_did_and_the_rest_is_decided_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    team = make_team()
    reviewer = ann(team)
    gates = alike(5, policy=make_policy(team))
    choices = [BulkChoice(gate.pk, bytes(gate.standing().digest)) for gate in gates]
    asked = BulkSubmission(key=secrets.token_hex(8), verdict="approve", gates=choices, comment=REASON, second_look=True)
    order = orders.take(asked, by=reviewer)
    monkeypatch.setenv("HOLDPOINT_CRASH", f"{crash_points.OF_BULK}:raise:2")
    with pytest.raises(crash_points.Crashed):
        carry_out(order, by=reviewer)
    monkeypatch.delenv("HOLDPOINT_CRASH")
    found = orders.progress(BulkOrder.objects.get(pk=order.pk), reader=reviewer)
    assert (found.decided, found.waiting, found.stopped) == (2, 3, False)
    BulkOrder.objects.filter(pk=order.pk).update(moved_at="2020-01-01T00:00Z")
    client = signed_in(reviewer)
    assert "A bulk decision has not come to its end." in client.get("/").content.decode()
    assert "3 gates are left." in client.get(f"/inbox/bulk/{order.pk}/").content.decode()
    assert "You approved 5 gates" in send(client, {"order": order.pk})
    assert Decision.objects.filter(gate__in=gates).count() == 5
    assert "has not come to its end" not in client.get("/").content.decode()


def test_a_form_that_was_cut_short_is_sent_again_with_another_reason_for_the_rest() -> None:
    """It kept its key, which another content had used, so that it was refused however often it was sent."""
    team = make_team()
    reviewer = ann(team)
    gates, client = alike(3, policy=make_policy(team)), signed_in(reviewer)
    filled = form(preview(client, gates))
    said: dict[str, Any] = {"verdict": "approve", "comment": REASON, "second_look": True}
    orders.take(BulkSubmission(key=filled["key"], gates=choices_in(filled["choice"]), **said), by=reviewer)
    decide(gates[0], reviewer)
    refused = client.post("/inbox/bulk/decisions/", {**filled, "comment": "Another reason."})
    assert refused.status_code == 422
    page = refused.content.decode()
    assert "What that decided counts; send again for the rest." in page
    assert page.count('name="choice"') == 2
    assert "You approved 2 gates" in send(client, form(page, comment="Another reason."))
    assert [made.words for made in Decision.objects.filter(gate__in=gates[1:])] == ["Another reason."] * 2


def test_an_order_names_at_most_200_gates_each_once() -> None:
    reviewer = ann(make_policy().team)
    many = [BulkChoice(number, b"") for number in range(201)]
    for gates in (many, [BulkChoice(1, b"")] * 2, []):
        with pytest.raises(Invalid):
            orders.take(BulkSubmission(key="k", verdict="reject", then="stop", gates=gates, comment="No."), by=reviewer)
