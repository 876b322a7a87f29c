"""The inbox: the gates that wait for the reader, the most urgent first."""

from __future__ import annotations

import datetime as dt
import re
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from approvals.models import Gate
from approvals.presentation import inbox
from approvals.views import inbox as views
from tests.factories import ann, bob, change_gate, decide, eve, make_card, make_gate, make_policy, make_team
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

RISK = re.compile(r'<h2 id="g-(\w+)">([^<]+)<')


def inbox_of(user: object, queue: str = "mine") -> str:
    return signed_in(user).get(f"/inbox/list/?queue={queue}").content.decode()  # type: ignore[arg-type]


def test_gates_are_grouped_by_when_they_are_due() -> None:
    team = make_team()
    for name, deadline in (("soon", dt.timedelta(minutes=30)), ("never", None), ("week", dt.timedelta(days=5))):
        make_gate(policy=make_policy(team, name=name, deadline=deadline), card=make_card(title=f"Gate {name}"))
    page = inbox_of(ann(team))
    assert [key for key, _ in RISK.findall(page)] == ["hour", "later"]
    assert page.index("Gate soon") < page.index("Gate week") < page.index("Gate never")
    assert "3 open, 1 of them due within the hour." in page


@pytest.mark.parametrize(
    ("zone", "now", "deadline", "group"),
    [
        ("America/New_York", "2026-03-03T02:00", "2026-03-03T13:00", "later"),  # Monday night; Tuesday at eight
        ("America/New_York", "2026-03-03T02:00", "2026-03-03T04:30", "today"),
        ("Pacific/Auckland", "2026-03-02T19:00", "2026-03-03T02:00", "today"),  # Tuesday at eight; Tuesday at three
        ("Pacific/Auckland", "2026-03-02T19:00", "2026-03-02T19:30", "hour"),
        ("UTC", "2026-03-03T02:00", "2026-03-03T13:00", "today"),
    ],
)
def test_today_is_the_readers_own_day(zone: str, now: str, deadline: str, group: str) -> None:
    """It was the day in London, beside times in the reader's zone."""
    at, due = (dt.datetime.fromisoformat(f"{each}+00:00") for each in (now, deadline))
    with timezone.override(ZoneInfo(zone)):
        assert inbox.due(Gate(deadline=due), at) == group
        after, until = inbox.due_within(group, at)
        assert after is None or after < due
        assert until is None or due <= until


def test_only_gates_that_wait_for_the_readers_word_are_in_it() -> None:
    team, other = make_team(), make_team("Finance")
    reviewer = ann(team)
    make_gate(team=team, card=make_card(title="Mine to decide"))
    make_gate(team=other, card=make_card(title="Not my team"))
    make_gate(team=team, started_by=reviewer, card=make_card(title="I started it"))
    said = make_gate(policy=make_policy(team, quorum=2), card=make_card(title="I have agreed"))
    decide(said, reviewer)
    page = inbox_of(reviewer)
    assert "Mine to decide" in page
    for title in ("Not my team", "I started it", "I have agreed"):
        assert title not in page
    everything = inbox_of(reviewer, "all")
    assert "I have agreed" in everything
    assert "Approved by you" in everything
    assert "Not my team" not in everything


def test_a_gate_decided_just_now_is_shown_struck_through_with_who_decided_and_then_leaves() -> None:
    team = make_team()
    gate = make_gate(team=team, card=make_card(title="Refund shipping"))
    decide(gate, bob(team))
    page = inbox_of(ann(team))
    assert 'data-status="approved"' in page
    assert "Approved by Bob Lindqvist" in page
    assert "data-leaves-in=" in page
    Gate.objects.filter(pk=gate.pk).update(closed_at=gate.opened_at - dt.timedelta(minutes=1))
    assert "Refund shipping" not in inbox_of(ann(team))
    assert "Approved by Bob Lindqvist" in inbox_of(ann(team), "decided")


def test_an_empty_inbox_says_so() -> None:
    page = inbox_of(eve())
    assert "You are all caught up" in page
    assert "gate-row" not in page


def test_an_unknown_queue_is_ones_own() -> None:
    page = signed_in(eve()).get("/?queue=<script>&after=999999999999999999999").content.decode()
    assert "<h1>Mine</h1>" in page


def test_a_new_gate_is_marked_as_just_arrived() -> None:
    team = make_team()
    gate = make_gate(team=team)
    assert "Just arrived" in inbox_of(ann(team))
    Gate.objects.filter(pk=gate.pk).update(opened_at=gate.opened_at - dt.timedelta(minutes=5))
    assert "Just arrived" not in inbox_of(ann(team))


def test_a_row_that_is_cached_still_shows_each_reader_what_is_theirs_and_what_changed() -> None:
    team = make_team()
    reader, other = ann(team), bob(team)
    gate = make_gate(policy=make_policy(team, quorum=2), card=make_card(title="Refund shipping"))
    decide(gate, reader)
    for _ in range(2):
        assert "Approved by you" in inbox_of(reader, "all")
        assert "Approved by you" not in inbox_of(other, "all")
    change_gate(gate, title="Refund the rest", risk="critical")
    page = inbox_of(other, "all")
    assert "Refund shipping" not in page
    assert re.search(r'data-risk="critical".*Refund the rest', page, re.DOTALL)


def test_a_long_queue_is_shown_in_parts_and_no_gate_is_in_two_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "SHOWN", 2)
    team, now = make_team(), timezone.now()
    for number in range(5):
        gate = make_gate(team=team, card=make_card(title=f"Gate {number}"))
        change_gate(gate, deadline=now + dt.timedelta(days=number) if number < 3 else None)
    reader, seen, query = signed_in(ann(team)), [], "queue=all"
    while query:
        page = reader.get(f"/inbox/list/?{query}").content.decode()
        seen += re.findall(r">Gate (\d)<", page)
        query = "".join(re.findall(r'gate-more"><a href="/\?([^"]+)"', page)).replace("&amp;", "&")
    assert seen == ["0", "1", "2", "3", "4"]


def test_a_part_begins_after_its_gate_also_when_that_was_decided_meanwhile() -> None:
    team = make_team()
    first, second = (make_gate(team=team, card=make_card(title=f"Gate {number}")) for number in range(2))
    decide(first, bob(team))
    assert "Gate 1" in inbox_of(ann(team), f"mine&after={first.pk}")
    assert "End of list" in inbox_of(ann(team), f"all&after={second.pk}")


def test_filters_pick_by_title_risk_and_agent_and_say_when_nothing_is_like_that() -> None:
    team = make_team()
    make_gate(team=team, card=make_card(title="Refund order 20418", risk="high"))
    make_gate(team=team, card=make_card(title="Wire to Brightwater", risk="low"))
    reader = ann(team)
    for query, there, gone in (
        ("q=brightwater", "Wire to", "Refund order"),
        ("risk=high", "Refund order", "Wire to"),
        ("q=20418&risk=low", "No matches", "gate-row"),
        ("agent=nobody", "No matches", "gate-row"),
        ("q=%22%28%7C%26%21%3A%2A", "", "Server Error"),
        ("risk=extreme&after=x", "Wire to", "No gate here"),
    ):
        page = inbox_of(reader, f"mine&{query}")
        assert there in page
        assert gone not in page


def test_the_wrong_queue_of_a_team_leaks_nothing() -> None:
    make_gate(card=make_card(title="Somebody else's"))
    outsider = eve()
    for queue in ("mine", "all", "decided"):
        assert "Somebody else" not in inbox_of(outsider, queue)


@pytest.mark.parametrize("query", ["queue=mine", "queue=all", "queue=all&risk=medium", "queue=decided"])
@pytest.mark.parametrize("hours", [0.5, 2, 40])
def test_an_inbox_is_read_in_thirteen_statements(monkeypatch: pytest.MonkeyPatch, query: str, hours: float) -> None:
    """One whose last group is the day's took 13, what had just closed four more, and one for each of its gates."""
    monkeypatch.setattr(views, "SHOWN", 3)
    noon = (timezone.now() + dt.timedelta(days=1)).replace(hour=12)
    monkeypatch.setattr(timezone, "now", lambda: noon)
    team = make_team()
    reader, other = ann(team), bob(team)
    for number in range(12):
        gate = make_gate(team=team, card=make_card(title=f"Gate {number}"))
        if number % 2:
            decide(gate, other)
        else:
            change_gate(gate, deadline=noon + dt.timedelta(hours=hours if number > 1 else 0.1))
    client = signed_in(reader)
    with sent() as statements:
        page = client.get(f"/?{query}").content.decode()
    assert page.count('<li class="gate-row') >= 3
    assert len(statements) <= 13, statements  # what an approval would repeat takes two more, where there is any
