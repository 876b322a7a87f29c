"""The orders of the inbox, page by page: by age, amount, risk and the cost of waiting."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from django.db import connection, transaction

from approvals.assignments import claims
from approvals.cards import amount
from approvals.cards.amount import NONE, Amount
from approvals.errors import CardRefused
from approvals.gates.lists.queue_filters import QueueFilters
from approvals.gates.lists.queue_orders import SORTS
from approvals.gates.lists.queues import ALL, BY_ME, CLAIMED, GROUPS, MINE, SNOOZED, ReaderReach
from approvals.models import Gate, GateClaim, Snooze
from tests.factories import ann, bob, decide, make_card, make_gate, make_policy, make_team
from tests.harness.signed_in_clients import signed_in


def walked(reach: ReaderReach, queue: str, sort: str) -> list[int]:
    """Read a queue two gates at a time, each page from the last gate of the one before."""
    found: list[int] = []
    while page := reach.ids(queue, most=2, wanted=QueueFilters(sort=sort, after=found[-1] if found else 0)):
        found += page
        assert len(found) < 100
    return found


@pytest.mark.parametrize("queue", [MINE, GROUPS, ALL])
def test_each_order_is_the_same_page_by_page_as_at_once(queue: str) -> None:
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
    for sort in SORTS:
        whole = reach.ids(queue, most=100, wanted=QueueFilters(sort=sort))
        assert len(whole) == len(cards)
        assert walked(reach, queue, sort) == whole
    gates = Gate.objects.in_bulk(reach.ids(queue, most=100))
    by_risk = [gates[pk].risk for pk in reach.ids(queue, most=100, wanted=QueueFilters(sort="risk"))]
    assert by_risk == ["critical"] * 4 + ["high"] * 4 + ["medium"] * 4 + ["low"] * 4
    by_amount = [gates[pk] for pk in reach.ids(queue, most=100, wanted=QueueFilters(sort="amount"))]
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
    ("€1,264.10", Amount("EUR", Decimal("1264.1"))), ("1264.1 SEK", Amount("SEK", Decimal("1264.1"))),
    ("1.264,10 EUR", Amount("EUR", Decimal("1264.1"))), ("$ 5", Amount("USD", Decimal(5))),
    ("CHF 1'200", Amount("CHF", Decimal(1200))), ("-£3", Amount("GBP", Decimal(3))),
    ("", NONE), ("3 files", NONE), ("€5 and $7", NONE), ("€5 or €7", NONE), ("€" + "9" * 30, NONE), ("NaN EUR", NONE),
    ("€4\u0669", NONE), ("4\u0669 EUR", NONE), ("\uff14\uff19 EUR", NONE), ("\u0669 €4", NONE),
])  # fmt: skip
def test_an_amount_is_one_number_with_one_currency(text: str, found: Amount) -> None:
    assert amount.read(text) == found


@pytest.mark.parametrize("delay", [
    {"amount": "5", "currency": "EUR"}, {"amount": "x", "currency": "EUR", "per": "hour"},
    {"amount": "-1", "currency": "EUR", "per": "hour"}, {"amount": "5", "currency": "euro", "per": "hour"},
    {"amount": "5", "currency": "EUR", "per": "day"}, ["5"],
    {"amount": "4\u0669", "currency": "EUR", "per": "hour"}, {"amount": "1_000", "currency": "EUR", "per": "hour"},
])  # fmt: skip
def test_a_cost_of_delay_that_cannot_be_read_is_no_card(delay: object) -> None:
    with pytest.raises(CardRefused, match=r"cost of delay|currency"):
        make_gate(card=make_card(cost_of_delay=delay))


def test_what_waiting_costs_stands_in_the_row_and_nothing_is_written_where_none_is_stated() -> None:
    team = make_team()
    plain = make_gate(team=team)
    assert b"cost_of_delay" not in bytes(plain.card)
    make_gate(team=team, card=make_card(cost_of_delay={"amount": "350", "currency": "EUR", "per": "hour"}))
    assert "waiting costs <bdi>€350.00</bdi> an hour" in signed_in(ann(team)).get("/?sort=delay").content.decode()


def plan_of(reach: ReaderReach, queue: str, wanted: QueueFilters) -> str:
    sql, values = reach._select(queue, 41, wanted)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute(f"EXPLAIN {sql}", values)
        return "\n".join(row[0] for row in cursor.fetchall())


@pytest.mark.parametrize(("sort", "name"), [
    ("oldest", "oldest"), ("amount", "amount"), ("delay", "delay"), ("risk", "risk"),
])  # fmt: skip
def test_each_order_is_read_along_its_index_from_where_the_page_before_ended(sort: str, name: str) -> None:
    team = make_team()
    gate = make_gate(team=team)
    reach = ReaderReach.of(ann(team))
    for queue, owner in ((MINE, "policy"), (ALL, "team")):
        for after in (0, gate.pk):
            plan = plan_of(reach, queue, QueueFilters(sort=sort, after=after))
            assert f"gate_of_{owner}_{name}" in plan, plan
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
