"""A vote does what was shown with it: one that has become the last needed is refused, and shown anew."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

from django.contrib.auth.models import User

from approvals.consequences.errors import ConsequencesChanged
from approvals.models import Decision, Gate, Outcome
from checkpoints.models import Event
from tests.agents.api.sent_requests import ask
from tests.agents.api.test_deciding import post as post_json
from tests.agents.api.test_doors import refusal
from tests.agents.pages.test_run_page import text_of
from tests.factories import ann, bob, decide, edit_amount, make_gate, make_policy, make_question, make_team, make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import form_of, post, shown_of, signed_in


def of_two(**more: Any) -> tuple[Gate, User, User]:
    team = make_team()
    return make_gate(policy=make_policy(team, quorum=2), **more), ann(team), bob(team)


def test_a_vote_that_became_the_last_one_is_refused_and_shown_anew_with_what_was_typed() -> None:
    """The panel said that one more had to agree; the press paid and mailed at once."""
    gate, first, second = of_two()
    form = form_of(gate, comment="Looks right to me.")
    decide(gate, first)
    refused = post(second, gate, form)
    assert refused.status_code == 409
    page = refused.content.decode()
    assert "Yours is now the last approval needed" in page
    assert "Looks right to me." in page
    assert "Yours is the last approval needed: it takes effect immediately" in page
    gate.refresh_from_db()
    assert (gate.status, gate.decisions.count()) == ("open", 1)
    [event] = Event.objects.filter(subject=gate.subject, kind="decision.refused")
    assert json.loads(bytes(event.data)) | {"kind": "impact_changed", "last": True} == json.loads(bytes(event.data))
    again = form_of(gate, comment="Looks right to me.", key=form["key"])
    assert post(second, gate, again).status_code == 303
    assert Outcome.objects.get(gate=gate).kind == "approved"


def test_of_two_votes_at_the_same_time_one_is_told_that_it_has_become_the_last() -> None:
    team = make_team()
    people = [make_user(f"Reviewer {number}", team) for number in range(2)]
    for _ in range(6):
        gate = make_gate(policy=make_policy(team, quorum=2, name=f"two-{_}"))
        shown = shown_of(gate)["shown.approve"]
        results = race([partial(decide, gate, person, shown=shown) for person in people])
        assert sorted(type(each).__name__ for each in results) == ["ConsequencesChanged", "Decision"]
        gate.refresh_from_db()
        assert (gate.status, gate.decisions.count()) == ("open", 1)


def test_a_vote_after_which_others_still_have_to_agree_is_never_too_much() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=3))
    shown = shown_of(gate)["shown.approve"]
    decide(gate, ann(team), shown=shown)
    decide(gate, bob(team), shown=shown)
    third = make_user("Third", team)
    [refused] = race([partial(decide, gate, third, shown=shown)])
    assert isinstance(refused, ConsequencesChanged)
    assert refused.last


def test_a_vote_that_does_less_than_was_shown_counts() -> None:
    """It was shown as the last one; whoever had agreed may not decide any more when it comes."""
    gate, first, second = of_two()
    decide(gate, first)
    last = shown_of(gate)["shown.approve"]
    first.groups.clear()
    assert decide(gate, second, shown=last).counts
    gate.refresh_from_db()
    assert gate.status == "open"


def test_an_edit_is_the_first_vote_on_what_it_makes_so_it_waits_whatever_was_shown() -> None:
    gate, first, second = of_two()
    form = form_of(gate, "edit", **{"args.refund/amount": "80.00"})
    decide(gate, first)
    assert post(second, gate, form).status_code == 303
    gate.refresh_from_db()
    assert (gate.status, gate.proposal) == ("open", 2)
    decide(gate, first, "edit", arguments=edit_amount(gate, "70.00"))
    gate.refresh_from_db()
    assert (gate.status, gate.proposal) == ("open", 3)


def test_an_answer_that_became_the_last_one_is_refused_too() -> None:
    gate, first, second = of_two(card=make_question(), kind="recovery")
    shown = shown_of(gate)["shown.answer.again"]
    decide(gate, first, "answer", answer={"choice": "again"})
    [refused] = race([partial(decide, gate, second, "answer", answer={"choice": "again"}, shown=shown)])
    assert isinstance(refused, ConsequencesChanged)
    assert isinstance(decide(gate, second, "answer", answer={"choice": "not_happened"}, shown=shown), Decision)


def test_a_page_that_says_nothing_of_what_it_showed_lets_nothing_happen() -> None:
    team = make_team()
    gate = make_gate(team=team)
    form = {name: text for name, text in form_of(gate).items() if not name.startswith("shown.")}
    assert post(ann(team), gate, form).status_code == 409
    gate.refresh_from_db()
    assert gate.status == "open"


def test_the_same_form_sent_twice_counts_once_though_the_page_shows_something_else_by_then() -> None:
    gate, first, _ = of_two()
    form = form_of(gate)
    assert post(first, gate, form).status_code == 303
    assert post(first, gate, form | shown_of(gate)).status_code == 303
    assert gate.decisions.count() == 1


def test_over_the_api_a_decision_carries_what_was_foretold() -> None:
    gate, first, second = of_two()
    told = ask(second, f"/api/gates/{gate.pk}/impacts")["items"][0]
    assert (told["choice"], told["left"]) == ("approve", 1)
    assert post_json(first, gate, verdict="approve").status_code == 201
    answer = post_json(second, gate, verdict="approve", shown=told["shown"])
    problem = refusal(answer, 409)
    assert (problem["code"], problem["impact"]["asks"]) == ("impact_changed", "")
    assert "last approval needed" in problem["detail"]
    now = ask(second, f"/api/gates/{gate.pk}/impacts")["items"][0]
    assert now["left"] == 0
    assert post_json(second, gate, verdict="approve", shown=now["shown"]).json()["gate"]["status"] == "decided"


def test_over_the_api_without_it_a_vote_does_whatever_it_does_and_a_token_is_held_to_the_same() -> None:
    gate, first, second = of_two()
    shown = ask(second, f"/api/gates/{gate.pk}/impacts")["items"][0]["shown"]
    decide(gate, first)
    _, sent = make_token(second)
    seen = bytes(gate.standing().digest).hex()
    address, body = f"/api/gates/{gate.pk}/decisions", {"seen": seen, "verdict": "approve"}
    client = bearing(sent)
    assert client.post(address, {**body, "shown": shown}, content_type="application/json").status_code == 409
    assert client.post(address, {**body, "shown": "zz"}, content_type="application/json").status_code == 422
    assert client.post(address, body, content_type="application/json").status_code == 201
    gate.refresh_from_db()
    assert gate.status == "decided"


def test_the_panel_that_is_fetched_again_follows_a_vote_and_keeps_what_is_typed() -> None:
    gate, first, second = of_two()
    form = form_of(gate, "edit", **{"args.refund/amount": "80.00"})
    client, headers = signed_in(second), {"HX-Request": "true"}
    before = client.post(f"/gates/{gate.pk}/impacts/", form, headers=headers).content.decode()
    decide(gate, first)
    after = client.post(f"/gates/{gate.pk}/impacts/", form, headers=headers).content.decode()
    assert "Yours is approval 1 of 2" in before
    assert "Yours is the last approval needed" not in before
    assert "Yours is the last approval needed" in after
    assert "Your edit cancels the approval of Ann Okafor, who must approve again" in after
    assert 'hx-target="#commit-approve"' in after
    decide(gate, second)
    assert client.post(f"/gates/{gate.pk}/impacts/", form, headers=headers).content == b""


def told(html: str) -> str:
    """The words of a page, without the marks that set foreign ones apart."""
    return text_of(re.sub("</?bdi>", "", html))


def test_an_answer_is_named_to_whoever_still_has_the_question_open() -> None:
    """It was called an edit and shown as JSON, and nobody was told which answer to agree to."""
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2, name="default"), kind="recovery")
    first, second = ann(team), bob(team)
    before = form_of(gate, "answer", answer="not_happened")
    assert post(first, gate, before).status_code == 303
    reader = signed_in(second)
    news = told(reader.get(f"/gates/{gate.pk}/status/?seen=1").content.decode())
    assert "Ann Okafor answered “It did not” while you had it open." in news
    assert "null" not in news
    refused = post(second, gate, before)
    assert refused.status_code == 409
    assert "Ann Okafor answered “It did not” after you opened it. Agree to that answer, or give another one." in told(
        refused.content.decode()
    )
    page = reader.get(f"/gates/{gate.pk}/").content.decode()
    assert "Ann Okafor answered this" in told(page)
    assert "Answered “It did not”" in told(page)
    assert re.search(r'value="not_happened"[^>]*data-sends="Send “It did not” \(2 of 2\)"', page)
    assert re.search(r'value="happened"[^>]*data-sends="Send “[^”]+” \(1 of 2\)"', page)
    gate.refresh_from_db()
    assert post(second, gate, form_of(gate, "answer", answer="not_happened")).status_code == 303
    gate.refresh_from_db()
    assert gate.status == "decided"
