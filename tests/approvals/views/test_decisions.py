"""Deciding by the form: what is taken, what is refused, and that nothing typed is lost."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
from django.test import Client

from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.models import Decision, Gate
from approvals.presentation.decision_form import actions, posted
from tests.factories import ann, bob, decide, edit_amount, eve, make_gate, make_policy, make_team, make_user
from tests.harness.signed_in_clients import form_of, post, signed_in


def fresh(gate: Gate) -> Gate:
    return Gate.objects.get(pk=gate.pk)


def test_an_approval_leads_back_to_the_gate_which_says_what_runs_now() -> None:
    team = make_team()
    gate, reviewer = make_gate(team=team), ann(team)
    answer = post(reviewer, gate, form_of(gate))
    assert (answer.status_code, answer["Location"]) == (303, f"/gates/{gate.pk}/")
    page = signed_in(reviewer).get(answer["Location"]).content.decode()
    assert "Approved by Ann Okafor" in page
    assert "Next: “Pay” and “Reply”." in page


def test_an_edit_binds_what_was_typed() -> None:
    team = make_team()
    gate = make_gate(team=team)
    assert post(ann(team), gate, form_of(gate, "edit", **{"args.refund/amount": "99.50"})).status_code == 303
    action = fresh(gate).standing().card.action("refund")
    assert action is not None
    assert action.arguments["amount"] == "99.50"
    assert fresh(gate).outcome.kind == "edited"


def test_browsers_line_breaks_are_no_edit() -> None:
    team = make_team()
    gate = make_gate(team=team)
    form = form_of(gate, **{"args.refund/reply": "Dear Marit, here you are.", "args.refund/amount": "120.00"})
    assert post(ann(team), gate, form).status_code == 303
    assert fresh(gate).outcome.kind == "approved"


def test_approving_with_a_changed_field_is_refused_and_the_field_keeps_what_was_typed() -> None:
    team = make_team()
    gate = make_gate(team=team)
    answer = post(ann(team), gate, form_of(gate, **{"args.refund/amount": "1.00"}))
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "You changed a field but chose Approve." in page
    assert 'value="1.00"' in page
    assert fresh(gate).status == "open"


def test_a_refused_edit_leads_from_its_notice_to_each_place_and_says_no_words_for_what_is_no_amount() -> None:
    """The notice said "correct what is marked" far above it; and "abc" stood over the old amount in words."""
    team = make_team()
    gate = make_gate(team=team)
    page = post(ann(team), gate, form_of(gate, "edit", **{"args.refund/amount": "abc"})).content.decode()
    notice = page[page.index('id="refusal"') :]
    notice = notice[: notice.index("</ul>")]
    linked = re.search(r'href="#(f-args-refund-amount-[^"]+)"', notice)
    assert linked, notice
    assert f'id="{linked[1]}"' in page
    assert "autofocus" in notice
    assert re.search(r'<dd class="pin-words"[^>]*></dd>', page)
    assert re.search(
        r'<dd class="pin-words"[^>]*>one hundred', signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    )


def test_every_error_of_an_edit_is_shown_at_its_field_with_what_was_typed() -> None:
    team = make_team()
    gate = make_gate(team=team)
    form = form_of(gate, "edit", **{"args.refund/amount": "much", "args.refund/currency": "USD"}) | {
        "comment": "my words"
    }
    answer = post(ann(team), gate, form)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in page
    assert "Write a number with a point" in page
    assert 'value="much"' in page
    assert 'value="USD"' in page
    assert "my words" in page
    assert not Decision.objects.filter(gate=gate).exists()


def test_a_rejection_sends_the_run_back_with_the_feedback() -> None:
    team = make_team()
    gate = make_gate(team=team)
    form = form_of(gate, "reject", then="back", back_to="propose", feedback="Frames only.", comment="not this one")
    assert post(ann(team), gate, form).status_code == 303
    outcome = fresh(gate).outcome
    assert (outcome.kind, outcome.then, outcome.back_to) == ("rejected", "back", "propose")
    assert bytes(outcome.feedback).decode() == "Frames only."


def test_a_value_put_in_its_place_is_an_edit() -> None:
    team = make_team()
    gate = make_gate(team=team)
    value = '{"amount": "0.00", "currency": "EUR", "reply": "", "note": null}'
    answer = post(ann(team), gate, form_of(gate, "reject", then="override", **{"override.refund": value}))
    assert answer.status_code == 303
    assert fresh(gate).outcome.kind == "edited"


@pytest.mark.parametrize("value", ['{"amount": 1, "amount": 2}', "{", '{"amount": NaN}', '{"a": "\\ud800"}'])
def test_junk_put_in_a_values_place_is_refused_and_kept(value: str) -> None:
    team = make_team()
    gate = make_gate(team=team)
    answer = post(ann(team), gate, form_of(gate, "reject", then="override", **{"override.refund": value}))
    assert answer.status_code == 422
    assert fresh(gate).status == "open"
    page = answer.content.decode()
    assert re.search(r'id="override-1-error">\s*<svg.*Write JSON', page), "beside the field, and not only above"
    assert 'aria-describedby="override-1-error"' in page


def test_whoever_was_slower_is_told_who_was_faster_and_keeps_the_edit() -> None:
    team = make_team()
    gate = make_gate(team=team)
    form = form_of(gate, "edit", **{"args.refund/amount": "55.55"}) | {"comment": "my comment"}
    decide(gate, bob(team))
    answer = post(ann(team), gate, form)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "Bob Lindqvist already decided this" in page
    assert "55.55" in page
    assert "my comment" in page
    assert 'id="decision"' not in page


def test_a_decision_on_what_has_changed_is_refused_with_the_difference_and_the_edit_is_kept() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    form = form_of(gate, "edit", **{"args.refund/amount": "55.55"})
    decide(gate, bob(team), "edit", arguments=edit_amount(gate, "7.00"))
    answer = post(ann(team), gate, form)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "Bob Lindqvist edited this gate after you opened it" in page
    assert "<del>120.00</del>" in page
    assert 'value="55.55"' in page
    assert 'name="proposal" value="2"' in page


def test_a_forged_digest_decides_nothing() -> None:
    team = make_team()
    gate = make_gate(team=team)
    for seen in ("", "zz", "00" * 32):
        assert post(ann(team), gate, form_of(gate) | {"seen": seen}).status_code == 409
    assert fresh(gate).status == "open"


def test_a_form_sent_twice_decides_once() -> None:
    team = make_team()
    gate, reviewer = make_gate(team=team), ann(team)
    form = form_of(gate)
    assert [post(reviewer, gate, form).status_code for _ in range(2)] == [303, 303]
    assert Decision.objects.filter(gate=gate).count() == 1


def test_an_outsiders_decision_meets_no_gate_and_a_readers_is_refused() -> None:
    team = make_team(may=("checkpoints.view_run",))
    gate = make_gate(team=team)
    assert post(eve(), gate, form_of(gate)).status_code == 404
    assert post(ann(team), gate, form_of(gate)).status_code == 403
    assert fresh(gate).status == "open"


def test_whoever_started_the_run_may_not_approve_it() -> None:
    team = make_team()
    starter = ann(team)
    gate = make_gate(team=team, started_by=starter)
    answer = post(starter, gate, form_of(gate))
    assert answer.status_code == 403
    assert "You started this run" in answer.content.decode()


def test_a_session_that_ended_leads_to_sign_in_and_back_to_the_gate() -> None:
    gate = make_gate()
    answer = Client().post(f"/gates/{gate.pk}/decisions/", form_of(gate))
    assert answer["Location"] == f"/accounts/login/?next=/gates/{gate.pk}/"


def test_a_form_from_another_site_is_refused() -> None:
    team = make_team()
    gate, reviewer = make_gate(team=team), ann(team)
    client = signed_in(reviewer)
    client.handler.enforce_csrf_checks = True
    answer = client.post(f"/gates/{gate.pk}/decisions/", form_of(gate))
    assert answer.status_code == 403
    assert "This form has expired" in answer.content.decode()
    assert fresh(gate).status == "open"


def test_looking_at_a_decisions_address_decides_nothing() -> None:
    team = make_team()
    gate = make_gate(team=team)
    assert signed_in(ann(team)).get(f"/gates/{gate.pk}/decisions/?verdict=approve").status_code == 405


def test_a_recovery_gate_takes_an_answer_with_its_value() -> None:
    team = make_team()
    gate, reviewer = make_gate(team=team, kind="recovery"), ann(team)
    page = signed_in(reviewer).get(f"/gates/{gate.pk}/").content.decode()
    assert "It happened" in page
    assert 'name="value.happened"' in page
    bad = post(reviewer, gate, form_of(gate, "answer", answer="happened", **{"value.happened": "[1]"}))
    assert bad.status_code == 422
    assert "checked" in bad.content.decode()
    assert post(reviewer, gate, form_of(gate, "answer")).status_code == 422
    good = form_of(gate, "answer", answer="happened", **{"value.happened": '{"reference": "x"}'})
    assert post(reviewer, gate, good).status_code == 303
    assert fresh(gate).outcome.kind == "answered"


def test_the_first_of_two_is_told_for_whom_it_waits_and_may_change_their_mind() -> None:
    team = make_team()
    gate, reviewer = make_gate(policy=make_policy(team, quorum=2)), ann(team)
    assert post(reviewer, gate, form_of(gate)).status_code == 303
    page = signed_in(reviewer).get(f"/gates/{gate.pk}/").content.decode()
    assert "Approved by you." in page
    assert "Waiting for 1 more approval" in page
    assert "Change your mind" in page
    assert post(make_user("Bob", team), gate, form_of(gate)).status_code == 303
    assert fresh(gate).status == "decided"


def test_a_value_that_only_python_takes_for_the_same_is_another_value() -> None:
    """A typed `true` where 1 stood was dropped: Approve went through beside it, and Edit said that nothing changed."""
    card = Card(title="t", actions=[Action(id="a", pointer="/x", arguments={"n": 1, "share": 1.0})])
    typed = {"args.a": '{"n": true, "share": 1}'}
    assert posted.read({"verdict": "approve", **typed}, card).typed.errors
    assert posted.read({"verdict": "edit", **typed}, card).decision["arguments"] == {"a": {"n": True, "share": 1}}
    override = {"verdict": "reject", "then": "override", "override.a": typed["args.a"]}
    assert not posted.read(override, card).typed.errors


def test_a_second_answer_that_only_python_takes_for_the_same_is_another_answer() -> None:
    """`true` was counted as agreement with 1: two people closed the gate on a value that one of them never gave."""
    team = make_team()
    gate = make_gate(policy=make_policy(team, name="default", quorum=2), kind="recovery")
    decide(gate, ann(team), "answer", answer={"choice": "happened", "value": {"paid": 1}})
    decide(gate, bob(team), "answer", answer={"choice": "happened", "value": {"paid": True}})
    assert (fresh(gate).status, fresh(gate).proposal) == ("open", 3)


def test_ten_megabytes_in_a_field_are_refused_with_the_limit_and_nothing_is_decided() -> None:
    team = make_team()
    gate, reviewer = make_gate(team=team), ann(team)
    form = form_of(gate, "edit", **{"args.refund/reason": "x" * 10_000_000})
    answer = signed_in(reviewer).post(
        f"/gates/{gate.pk}/decisions/", urlencode(form), content_type="application/x-www-form-urlencoded"
    )
    assert answer.status_code == 413
    assert "A form may carry 2.5\u00a0MB" in answer.content.decode()
    assert fresh(gate).status == "open"


def test_more_fields_than_a_form_may_have_are_refused_with_the_limit_and_fewer_are_read() -> None:
    team = make_team()
    gate, reviewer = make_gate(team=team), ann(team)
    many = {f"args.refund/more/{n}": "x" for n in range(20_001)}
    answer = post(reviewer, gate, form_of(gate) | many)
    assert answer.status_code == 413
    assert "A form may have 20,000 fields" in answer.content.decode()
    assert fresh(gate).status == "open"
    fewer = dict(list(many.items())[:1_500])
    assert post(reviewer, gate, form_of(gate) | fewer).status_code == 303
    assert fresh(gate).status == "decided"


def test_all_actions_of_a_gate_share_the_inputs_that_are_drawn_at_once() -> None:
    day = {"type": "object", "properties": {f"d{n}": {"type": "string", "format": "date"} for n in range(10)}}
    schema = {"type": "object", "properties": {"days": {"type": "array", "items": day}}}
    arguments = {"days": [{f"d{n}": "2026-01-01" for n in range(10)} for _ in range(30)]}
    card = Card(
        title="Several",
        actions=[Action(id=name, tool="x", arguments=arguments, schema=schema, edits=True) for name in "abcd"],
    )
    drawn = [len(sheet.fields) for sheet in actions.sheets(card)]
    assert sum(drawn) <= 300 + 4 * 40
    assert all(count >= 60 for count in drawn)
