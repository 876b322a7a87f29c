"""A snoozed gate leaves its reader's queue and comes back by itself; after a decision the next of the list follows."""

from __future__ import annotations

import datetime as dt
import re
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone

from approvals.gates.lists import snoozing
from approvals.gates.lists.snoozing import NotPutOff
from approvals.models import Gate, Snooze
from approvals.views.lists.asked import COOKIE, InboxFilters, followed, remember
from tests.factories import ann, bob, decide, make_card, make_gate, make_policy, make_team, waiting
from tests.harness.signed_in_clients import form_of, post, signed_in

TOKYO = ZoneInfo("Asia/Tokyo")


def test_it_hides_the_gate_from_one_person_alone_until_then() -> None:
    team = make_team()
    gate, second = (make_gate(team=team, card=make_card(title=title)) for title in ("Later", "Now"))
    reader, other = ann(team), bob(team)
    client = signed_in(reader)
    page = client.get(client.post(f"/gates/{gate.pk}/snoozes/", {"for": "hour"})["Location"]).content.decode()
    assert "Snoozed until" in page
    assert "It comes back by itself." in page
    assert (waiting(reader), waiting(other)) == ([second.pk], [gate.pk, second.pk])
    assert 'href="/?queue=snoozed"' in page
    assert "Later" in client.get("/?queue=snoozed").content.decode()
    part = client.get("/inbox/list/?queue=mine").content.decode()
    assert '<hx-partial hx-target="#queues"' in part
    assert re.findall(r'<span class="count">(\d+)</span>', part)[-4:] == ["1", "2", "2", "1"]
    Snooze.objects.update(until=timezone.now() - dt.timedelta(seconds=1))
    assert waiting(reader) == [gate.pk, second.pk]
    assert 'href="/?queue=snoozed"' not in client.get("/").content.decode()
    for choice in ("hour", "tomorrow"):
        there = client.post(f"/gates/{gate.pk}/snoozes/", {"for": choice})["Location"]
    assert Snooze.objects.filter(user=reader).count() == 1
    assert gate.title in client.get(there).content.decode()
    client.post(f"/gates/{gate.pk}/snoozes/", {"end": "yes"})
    assert waiting(reader) == [gate.pk, second.pk]
    there = client.post(f"/gates/{gate.pk}/snoozes/", {"for": "hour"})["Location"]
    reader.groups.clear()
    assert gate.title not in client.get(there).content.decode(), "of what one may not see any more"


def test_it_comes_back_before_the_deadline_and_says_so() -> None:
    policy = make_policy(team := make_team(), deadline=dt.timedelta(hours=2))
    gate, client = make_gate(policy=policy), signed_in(ann(team))
    page = client.get(client.post(f"/gates/{gate.pk}/snoozes/", {"for": "week"})["Location"]).content.decode()
    assert "It comes back 15 minutes before its deadline." in page
    assert gate.deadline is not None
    assert Snooze.objects.get(gate=gate).until == gate.deadline - snoozing.SPARE


def test_a_time_is_of_the_readers_zone_and_what_is_due_soon_closed_or_past_is_not_put_off() -> None:
    soon = make_gate(policy=make_policy(team := make_team(), deadline=dt.timedelta(minutes=10)))
    client = signed_in(ann(team))
    answer = client.post(f"/gates/{soon.pk}/snoozes/", {"for": "hour"})
    assert answer.status_code == 422
    assert "It is due within 15 minutes" in answer.content.decode()
    later = make_gate(policy=make_policy(team, name="later"))
    client.cookies["hp-zone"] = "Asia/Tokyo"
    tomorrow = (timezone.now() + dt.timedelta(days=1)).date()
    client.post(f"/gates/{later.pk}/snoozes/", {"until": f"{tomorrow}T09:00"})
    [kept] = Snooze.objects.filter(gate=later)
    assert kept.until == dt.datetime.combine(tomorrow, dt.time(9), TOKYO)
    kept.delete()
    for until in ("", "nonsense", "2020-01-01T09:00", "2999-01-01T09:00", "2026-13-45T99:00"):
        assert client.post(f"/gates/{later.pk}/snoozes/", {"until": until}).status_code == 422
    decide(later, bob(team))
    later.refresh_from_db()
    with pytest.raises(NotPutOff):
        snoozing.put_off(later, by=ann(team).pk, until=timezone.now() + dt.timedelta(hours=1))
    assert not Snooze.objects.filter(gate__in=[soon, later]).exists()


@pytest.mark.parametrize(("choice", "now", "until"), [
    ("hour", "2026-03-02T22:30", "2026-03-02T23:30"), ("tomorrow", "2026-03-02T22:30", "2026-03-03T09:00"),
    ("week", "2026-03-02T08:00", "2026-03-09T09:00"), ("week", "2026-03-08T23:59", "2026-03-09T09:00"),
])  # fmt: skip
def test_morning_and_monday_are_those_of_the_readers_zone(choice: str, now: str, until: str) -> None:
    here = dt.datetime.fromisoformat(now).replace(tzinfo=TOKYO)
    assert snoozing.until_of(choice, now=here) == dt.datetime.fromisoformat(until).replace(tzinfo=TOKYO)


def test_it_follows_in_the_order_and_with_the_filters_of_the_list_and_then_the_rest() -> None:
    policy = make_policy(team := make_team())
    gates = {
        paid: make_gate(policy=policy, card=make_card(title=f"Pay {paid}", amount=paid, risk=risk))
        for paid, risk in (("€5.00", "low"), ("€90.00", "low"), ("€20.00", "low"), ("€70.00", "high"))
    }
    client = signed_in(ann(team))
    client.get("/?queue=mine&sort=amount&risk=low")
    passed, places, here = [], [], gates["€90.00"].pk
    for _ in range(4):
        passed.append(here)
        form = {**form_of(Gate.objects.get(pk=here)), "follows": "yes", "follow": "yes"}
        places.append([key for key in "jk" if f'data-hotkey="{key}"' in client.get(f"/gates/{here}/").content.decode()])
        there = client.post(f"/gates/{here}/decisions/", form)["Location"]
        here = int(there.split("/")[2])
    assert passed == [gates[paid].pk for paid in ("€90.00", "€20.00", "€5.00", "€70.00")]
    assert places[:3] == [["j"], ["j"], []], "the neighbours in that list"


def test_the_list_of_whoever_was_at_the_browser_before_is_nobody_elses_and_junk_is_ones_own_queue() -> None:
    """Ann's search stood in the field of Bob, who had signed in after her, and chose which gate came next for him."""
    team = make_team()
    gates = [make_gate(team=team, card=make_card(title=title)) for title in ("Pay Marit", "Pay Olav", "Pay Nils")]
    before = signed_in(ann(team))
    before.get("/?queue=mine&q=Nils")
    client = signed_in(reader := bob(team))
    client.cookies[COOKIE] = before.cookies[COOKIE].value
    answer = client.post(f"/gates/{gates[0].pk}/snoozes/", {"for": "hour"})
    assert "Nils" not in answer["Location"]
    form = {**form_of(gates[0]), "follows": "yes", "follow": "yes"}
    assert client.post(f"/gates/{gates[0].pk}/decisions/", form)["Location"].startswith(f"/gates/{gates[1].pk}/")
    client.cookies[COOKIE] = f"sort=%00nothing&queue=<b>&after=1&risk=extreme&q=%00&reader={reader.pk}"
    form = {**form_of(gates[1]), "follows": "yes", "follow": "yes"}
    assert client.post(f"/gates/{gates[1].pk}/decisions/", form)["Location"].startswith(f"/gates/{gates[2].pk}/")


def test_a_redirect_is_told_to_who_asks_and_followed_by_who_does_not() -> None:
    asked = Client().get("/", headers={"X-Tell-Redirect": "yes"})
    assert (asked.status_code, asked.content) == (204, b"")
    assert "Location" not in asked.headers
    followed = Client().get("/")
    assert (followed.status_code, followed.headers["Location"]) == (302, asked.headers["X-Redirect-To"])


def test_a_page_that_is_refused_keeps_the_tick_taken_away() -> None:
    """It came back ticked, and the next try led away."""
    policy = make_policy(make_team())
    gate, _ = [make_gate(policy=policy) for _ in range(2)]
    answer = post(ann(policy.team), gate, form_of(gate, "reject", then="stop", follows="yes"))
    assert answer.status_code == 422
    assert 'name="follow" value="yes">' in answer.content.decode()
    answer = post(ann(policy.team), gate, form_of(gate, "reject", then="stop", follows="yes", follow="yes"))
    assert 'name="follow" value="yes" checked>' in answer.content.decode()


def test_a_long_search_is_followed_with_its_order() -> None:
    """The cookie was read up to its thousandth character, which cut off what came after the words."""
    asked = InboxFilters.of({"q": "é" * 200, "sort": "amount"})
    request = RequestFactory().get("/")
    request.user = User(pk=7)
    remember(request, response := HttpResponse(), asked)
    request.COOKIES[COOKIE] = response.cookies[COOKIE].value
    assert followed(request) == asked.wanted
