"""A snoozed gate leaves its reader's queue, comes back by itself, and never misses its deadline unseen."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from approvals.gates.lists import snoozing
from approvals.gates.lists.snoozing import NotPutOff
from approvals.models import Snooze
from tests.factories import ann, bob, decide, make_card, make_gate, make_policy, make_team, waiting
from tests.harness.signed_in_clients import signed_in

TOKYO = ZoneInfo("Asia/Tokyo")


def test_it_hides_the_gate_from_one_person_alone_until_then() -> None:
    team = make_team()
    gate, reader, other = make_gate(team=team, card=make_card(title="Later")), ann(team), bob(team)
    client = signed_in(reader)
    page = client.get(client.post(f"/gates/{gate.pk}/snoozes/", {"for": "hour"})["Location"]).content.decode()
    assert "Snoozed until" in page
    assert "It comes back by itself." in page
    assert (waiting(reader), waiting(other)) == ([], [gate.pk])
    assert 'href="/?queue=snoozed"' in page
    assert "Later" in client.get("/?queue=snoozed").content.decode()
    Snooze.objects.update(until=timezone.now() - dt.timedelta(seconds=1))
    assert waiting(reader) == [gate.pk]
    assert 'href="/?queue=snoozed"' not in client.get("/").content.decode()


def test_it_is_undone_at_once_and_a_second_one_replaces_the_first() -> None:
    team = make_team()
    gate, reader = make_gate(team=team), ann(team)
    client = signed_in(reader)
    for choice in ("hour", "tomorrow"):
        client.post(f"/gates/{gate.pk}/snoozes/", {"for": choice})
    assert Snooze.objects.filter(user=reader).count() == 1
    client.post(f"/gates/{gate.pk}/snoozes/", {"end": "yes"})
    assert waiting(reader) == [gate.pk]


def test_it_comes_back_before_the_deadline_and_says_so() -> None:
    team = make_team()
    policy = make_policy(team, deadline=dt.timedelta(hours=2))
    gate, client = make_gate(policy=policy), signed_in(ann(team))
    page = client.get(client.post(f"/gates/{gate.pk}/snoozes/", {"for": "week"})["Location"]).content.decode()
    assert "It comes back 15 minutes before its deadline." in page
    assert gate.deadline is not None
    assert Snooze.objects.get(gate=gate).until == gate.deadline - snoozing.SPARE


def test_what_is_due_soon_or_closed_or_in_the_past_is_not_put_off() -> None:
    team = make_team()
    soon = make_gate(policy=make_policy(team, deadline=dt.timedelta(minutes=10)))
    client = signed_in(ann(team))
    answer = client.post(f"/gates/{soon.pk}/snoozes/", {"for": "hour"})
    assert answer.status_code == 422
    assert "It is due within 15 minutes" in answer.content.decode()
    later = make_gate(policy=make_policy(team, name="later"))
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


def test_a_time_is_read_in_the_readers_zone() -> None:
    team = make_team()
    gate, client = make_gate(team=team), signed_in(ann(team))
    client.cookies["hp-zone"] = "Asia/Tokyo"
    tomorrow = (timezone.now() + dt.timedelta(days=1)).date()
    client.post(f"/gates/{gate.pk}/snoozes/", {"until": f"{tomorrow}T09:00"})
    assert Snooze.objects.get(gate=gate).until == dt.datetime.combine(tomorrow, dt.time(9), TOKYO)


def test_the_counts_of_all_queues_come_with_the_list() -> None:
    team = make_team()
    gate, client = make_gate(team=team), signed_in(ann(team))
    make_gate(team=team)
    client.post(f"/gates/{gate.pk}/snoozes/", {"for": "hour"})
    part = client.get("/inbox/list/?queue=mine").content.decode()
    assert '<hx-partial hx-target="#queues"' in part
    counts = [line.strip() for line in part.splitlines() if '<span class="count">' in line]
    assert counts[-4:] == ['<span class="count">1</span>', '<span class="count">2</span>',
                           '<span class="count">2</span>', '<span class="count">1</span>']  # fmt: skip


def test_the_notice_names_no_gate_that_the_reader_may_not_see_any_more() -> None:
    team = make_team()
    reader, gate = ann(team), make_gate(team=team)
    client = signed_in(reader)
    there = client.post(f"/gates/{gate.pk}/snoozes/", {"for": "hour"})["Location"]
    assert gate.title in client.get(there).content.decode()
    reader.groups.clear()
    assert gate.title not in client.get(there).content.decode()
