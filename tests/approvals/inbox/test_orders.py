"""The queues of the inbox: which gates are in each, in which order, page by page, and what their rows say."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from itertools import product
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, transaction
from django.utils import timezone

from approvals.assignments import claims
from approvals.cards import amount
from approvals.cards.amount import NONE, Amount
from approvals.errors import CardRefused
from approvals.gates.lists.queue_filters import SORTS, QueueFilters
from approvals.gates.lists.queues import ALL, BY_ME, CLAIMED, GROUPS, MINE, SNOOZED, ReaderReach
from approvals.models import Gate, GateClaim, Snooze
from approvals.presentation import inbox
from approvals.views import inbox as views
from tests.factories import ann, bob, change_gate, decide, eve, make_card, make_gate, make_policy, make_team
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in


def walked(reach: ReaderReach, queue: str, sort: str) -> list[int]:
    found: list[int] = []
    while page := reach.ids(queue, most=2, wanted=QueueFilters(sort=sort, after=found[-1] if found else 0)):
        found += page
        assert len(found) < 100
    return found


def test_each_order_is_the_same_page_by_page_as_at_once() -> None:
    team = make_team()
    policies = [make_policy(team, name=name, deadline=due) for name, due in (("a", None), ("b", dt.timedelta(hours=2)))]
    delay = {"amount": "5", "currency": "EUR", "per": "hour"}
    cards = [
        make_card(title=f"{risk} {paid}", risk=risk, amount=paid, cost_of_delay=cost)
        for risk in ("low", "critical", "high", "medium")
        for paid, cost in (("€5.00", None), ("$7.00", delay), ("", {**delay, "currency": "USD"}), ("€1,200.50", delay))
    ]
    for place, card in enumerate(cards):
        make_gate(policy=policies[place % 2], card=card)
    reach = ReaderReach.of(ann(team))
    for sort, queue in product(SORTS, (MINE, ALL)):
        whole = reach.ids(queue, most=100, wanted=QueueFilters(sort=sort))
        assert (len(whole), walked(reach, queue, sort)) == (len(cards), whole)
    gates = Gate.objects.in_bulk(whole)
    by_risk = [gates[pk].risk for pk in reach.ids(MINE, most=100, wanted=QueueFilters(sort="risk"))]
    assert by_risk == ["critical"] * 4 + ["high"] * 4 + ["medium"] * 4 + ["low"] * 4
    by_amount = [gates[pk] for pk in reach.ids(MINE, most=100, wanted=QueueFilters(sort="amount"))]
    assert [(gate.amount_currency, gate.amount_value) for gate in by_amount] == (
        [("USD", Decimal(7))] * 4
        + [("EUR", Decimal("1200.5"))] * 4
        + [("EUR", Decimal(5))] * 4
        + [("", Decimal(0))] * 4
    )


def test_amounts_of_two_currencies_are_not_compared_but_stand_in_two_groups() -> None:
    team = make_team()
    for paid in ("€5.00", "$1.00", "€900.00", ""):
        make_gate(team=team, card=make_card(title=f"Pay {paid or 'nothing'}", amount=paid))
    page = signed_in(ann(team)).get("/?queue=mine&sort=amount").content.decode()
    places = [page.index(words) for words in (
        "USD, the largest first", "Pay $1.00", "EUR, the largest first", "Pay €900.00", "Pay €5.00",
        "No amount in one currency", "Pay nothing",
    )]  # fmt: skip
    assert places == sorted(places)


@pytest.mark.parametrize(("text", "found"), [
    ("€1,264.10", Amount("EUR", Decimal("1264.1"))), ("1.264,10 EUR", Amount("EUR", Decimal("1264.1"))),
    ("$ 5", Amount("USD", Decimal(5))), ("CHF 1'200", Amount("CHF", Decimal(1200))), ("-£3", Amount("GBP", Decimal(3))),
    ("", NONE), ("3 files", NONE), ("€5 and $7", NONE), ("€5 or €7", NONE), ("€" + "9" * 30, NONE), ("€4\u0669", NONE),
])  # fmt: skip
def test_an_amount_is_one_number_with_one_currency(text: str, found: Amount) -> None:
    assert amount.read(text) == found


@pytest.mark.parametrize("delay", [
    {"amount": "5", "currency": "EUR"}, ["5"], {"amount": "-1", "currency": "EUR", "per": "hour"},
    {"amount": "5", "currency": "euro", "per": "hour"}, {"amount": "1_000", "currency": "EUR", "per": "hour"},
])  # fmt: skip
def test_a_cost_of_delay_that_cannot_be_read_is_no_card(delay: object) -> None:
    with pytest.raises(CardRefused, match=r"cost of delay|currency"):
        make_gate(card=make_card(cost_of_delay=delay))


def plan_of(reach: ReaderReach, queue: str, wanted: QueueFilters) -> str:
    sql, values = reach._select(queue, 41, wanted)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute(f"EXPLAIN {sql}", values)
        return "\n".join(row[0] for row in cursor.fetchall())


@pytest.mark.parametrize("sort", ["oldest", "amount", "delay", "risk"])
def test_each_order_is_read_along_its_index_from_where_the_page_before_ended(sort: str) -> None:
    gate = make_gate(team=(team := make_team()))
    reach = ReaderReach.of(ann(team))
    for queue, owner in ((MINE, "policy"), (ALL, "team")):
        for after in (0, gate.pk):
            plan = plan_of(reach, queue, QueueFilters(sort=sort, after=after))
            assert f"gate_of_{owner}_{sort}" in plan, plan
            conditions = [line for line in plan.splitlines() if "Index Cond" in line and "ROW(" in line]
            assert bool(conditions) is bool(after), plan


def test_what_i_decided_is_a_queue_the_last_one_first() -> None:
    team = make_team()
    reader, other = ann(team), bob(team)
    mine = [make_gate(policy=make_policy(team, name=f"p{n}", quorum=n)) for n in (1, 2)]
    for gate in mine:
        decide(gate, reader)
    decide(make_gate(policy=make_policy(team, name="p3")), other)
    reach = ReaderReach.of(reader)
    assert reach.ids(BY_ME, most=9) == [gate.pk for gate in reversed(mine)]
    assert reach.ids(BY_ME, most=9, wanted=QueueFilters(after=mine[1].pk)) == [mine[0].pk]
    page = signed_in(reader).get("/?queue=by_me").content.decode()
    assert page.count('<li class="gate-row') == 2
    assert reach.ids(BY_ME, most=9, wanted=QueueFilters(risk="low")) == []
    reader.groups.clear()
    assert ReaderReach.of(type(reader).objects.get(pk=reader.pk)).ids(BY_ME, most=9) == []


def test_what_i_am_on_is_a_queue_while_there_is_any() -> None:
    """It was in no rail, and its statement named a table that is not there."""
    team = make_team()
    reader, other = ann(team), bob(team)
    mine, theirs = make_gate(team=team), make_gate(team=team)
    client = signed_in(reader)
    assert "queue=claimed" not in client.get("/").content.decode()
    claims.claim(mine, by=reader)
    claims.claim(theirs, by=other)
    assert 'href="/?queue=claimed"' in client.get("/").content.decode()
    page = client.get("/?queue=claimed").content.decode()
    assert page.count('<li class="gate-row') == 1
    assert ReaderReach.of(reader).ids(CLAIMED, most=9) == [mine.pk]
    GateClaim.objects.update(until=mine.opened_at)
    assert ReaderReach.of(reader).ids(CLAIMED, most=9) == []


def test_my_groups_gates_are_there_though_they_do_not_wait_for_me() -> None:
    team, other = make_team(), make_team("Finance")
    reader = ann(team)
    started = make_gate(team=team, started_by=reader)
    make_gate(team=other)
    put_off = make_gate(team=team)
    Snooze.objects.create(user=reader, gate=put_off, until=put_off.opened_at + dt.timedelta(days=1))
    reach = ReaderReach.of(reader)
    assert set(reach.ids(GROUPS, most=9)) == {started.pk, put_off.pk}
    assert (reach.ids(MINE, most=9), reach.ids(SNOOZED, most=9)) == ([], [put_off.pk])


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


def test_a_gate_is_marked_as_just_arrived_and_once_decided_says_by_whom_and_leaves() -> None:
    gate = make_gate(team=(team := make_team()), card=make_card(title="Refund shipping"))
    assert "Just arrived" in inbox_of(ann(team))
    Gate.objects.filter(pk=gate.pk).update(opened_at=gate.opened_at - dt.timedelta(minutes=5))
    assert "Just arrived" not in inbox_of(ann(team))
    decide(gate, bob(team))
    page = inbox_of(ann(team))
    for words in ('data-status="approved"', "Approved by Bob Lindqvist", "data-leaves-in="):
        assert words in page
    Gate.objects.filter(pk=gate.pk).update(closed_at=gate.opened_at - dt.timedelta(minutes=1))
    assert "Refund shipping" not in inbox_of(ann(team))
    assert "Approved by Bob Lindqvist" in inbox_of(ann(team), "decided")


def test_an_empty_inbox_says_so_and_an_unknown_queue_is_ones_own() -> None:
    assert "You are all caught up" in inbox_of(eve())
    page = signed_in(eve()).get("/?queue=<script>&after=999999999999999999999").content.decode()
    assert "<h1>Mine</h1>" in page


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


@pytest.mark.parametrize("hours", [0.5, 40])
def test_an_inbox_is_read_in_thirteen_statements(monkeypatch: pytest.MonkeyPatch, hours: float) -> None:
    """One whose last group is the day's took 13, what had just closed four more, and one for each of its gates."""
    monkeypatch.setattr(views, "SHOWN", 3)
    noon = (timezone.now() + dt.timedelta(days=1)).replace(hour=12)
    monkeypatch.setattr(timezone, "now", lambda: noon)
    team = make_team()
    reader, other = ann(team), bob(team)
    for number in range(8):
        gate = make_gate(team=team, card=make_card(title=f"Gate {number}"))
        if number % 2:
            decide(gate, other)
        else:
            change_gate(gate, deadline=noon + dt.timedelta(hours=hours if number > 1 else 0.1))
    client = signed_in(reader)
    for query in ("queue=mine", "queue=all&risk=medium", "queue=decided"):
        with sent() as statements:
            page = client.get(f"/?{query}").content.decode()
        assert page.count('<li class="gate-row') >= 3
        assert len(statements) <= 13, statements  # what an approval would repeat takes two more, where there is any
