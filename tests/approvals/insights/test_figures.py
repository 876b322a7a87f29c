"""Figures over plain rows: counted by day, by span, by name, and backwards from what is open now."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from django.utils import timezone

from approvals.insights import backlog, charts, figures
from approvals.insights.closed_gates import CountedGate, InsightFilters
from approvals.policy.requirements import Requirements
from approvals.presentation import insights as presentation

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def gate(
    id: int = 1, *, kind: str = "approved", seconds: float = 60.0, at: datetime = NOON, **more: str
) -> CountedGate:
    given = {"policy": "refunds", "agent": "refunds", "risk": "low", **more}
    return CountedGate(id=id, team=1, kind=kind, at=at, seconds=seconds, **given)


def test_seconds_fall_into_the_span_that_they_do_not_exceed() -> None:
    counted = figures.count_by_span([299.9, 300.0, 3600.0, 90_000.0])
    assert list(counted.values()) == [1, 1, 1, 0, 1]


def test_quantiles_are_of_the_decisions_of_people_alone() -> None:
    rows = [gate(seconds=float(each)) for each in range(1, 11)]
    rows += [gate(kind="expired", seconds=9000.0), gate(kind="withdrawn", seconds=9000.0)]
    took = figures.measure_waits(rows)
    assert (took.number, took.half, took.most) == (10, timedelta(seconds=6), timedelta(seconds=10))


def test_a_day_is_one_of_the_readers_zone() -> None:
    late = gate(at=datetime(2026, 11, 20, 23, 30, tzinfo=UTC))
    with timezone.override("Europe/Berlin"):
        assert late.day == date(2026, 11, 21)
        days = figures.by_day([late], date(2026, 11, 20), 2)
    assert [each.decided for each in days] == [0, 1]


def test_names_with_most_gates_come_first() -> None:
    rows = [gate(agent="restock"), gate(agent="refunds"), gate(agent="refunds", kind="rejected")]
    counted = figures.endings(rows, lambda row: row.agent)
    assert list(counted) == ["refunds", "restock"]
    assert counted["refunds"] == {"approved": 1, "rejected": 1}


def test_the_list_behind_a_figure_is_the_rows_that_it_counts() -> None:
    rows = [gate(1), gate(2, kind="expired", seconds=10.0), gate(3, seconds=7200.0)]
    wanted = InsightFilters()
    assert [row.id for row in figures.select_part(rows, InsightFilters(kind="expired"))] == [2]
    # The expired one was decided by nobody.
    assert [row.id for row in figures.select_part(rows, InsightFilters(within="5m"))] == [1]
    assert [row.id for row in figures.select_part(rows, InsightFilters(day="2026-11-20"))] == [1, 2, 3]
    assert figures.select_part(rows, InsightFilters(day="2026-11-19")) == []
    assert [row.id for row in figures.select_part(rows, wanted)] == [1, 2, 3]


def test_the_backlog_is_counted_back_from_now_and_costs_what_the_cards_say() -> None:
    found = backlog.of_rows(
        [
            ("open", "1h", 4, 8000.0, 3000.0), ("opened", "2026-11-20", 3, 0, 0), ("closed", "2026-11-20", 5, 0, 0),
            ("cost", "EUR", 0, 0, 12.5),
        ],
        date(2026, 11, 19), 2,
    )  # fmt: skip
    assert found.days == [(date(2026, 11, 19), 6), (date(2026, 11, 20), 4)]
    assert (found.open, found.longest, found.spread["1h"]) == (4, timedelta(seconds=3000), 4)
    assert found.costs == {"EUR": 12.5}


def test_what_a_rule_approved_is_compared_with_its_sample_and_is_no_decision_of_people() -> None:
    own = Requirements(stages=(), rules=("small",), auto=True)
    alone, sample, asked = (each.to_text() for each in (own, replace(own, sampled=True), replace(own, auto=False)))
    rows = [
        gate(1, by="policy:7", requirements=alone),
        gate(2, by="user:3", requirements=sample, kind="rejected"),
        gate(3, by="user:3", requirements=sample),
        gate(4, by="user:3", requirements=asked),
    ]
    assert figures.by_rule(rows) == {"small": (1, {"approved": 1, "rejected": 1})}
    assert figures.measure_waits(rows).number == 3
    assert [row.id for row in figures.select_part(rows, InsightFilters(rule="small"))] == [1]
    assert [
        row.id for row in figures.select_part(rows, InsightFilters(rule="small", sample=True, kind="rejected"))
    ] == [2]


def test_places_in_a_list_are_one_field() -> None:
    patch: list[dict[str, Any]] = [
        {"op": "replace", "path": "/lines/0/price", "value": 1},
        {"op": "replace", "path": "/lines/17/price", "value": 1},
        {"op": "add", "path": "/lines/-", "value": {}},
        {"op": "test", "path": "/order", "value": 1},
    ]
    assert figures.changed_fields(patch) == {"/lines/*/price", "/lines/*"}


def test_a_field_is_named_for_people_and_a_bar_by_the_end_of_a_long_name() -> None:
    """The bar was named "/proposal/refund/…"."""
    drawn = presentation.edits({"/proposal/refund/amount": [1]}, InsightFilters())
    assert drawn.rows[0][0].text == "proposal \u203a refund \u203a amount"
    assert "…\u203a refund \u203a amount" in drawn.chart


@pytest.mark.parametrize("junk", ["x", "-1", "9" * 30, "²", ""])
def test_junk_in_an_address_is_ignored(junk: str) -> None:
    read = InsightFilters.from_query(
        {"days": junk, "team": junk, "person": junk, "risk": junk, "kind": junk, "day": junk}
    )
    assert read == InsightFilters()


def test_an_address_keeps_the_filters_and_the_part() -> None:
    wanted = InsightFilters(days=7, agent="a & b", risk="high")
    assert wanted.query(kind="rejected") == "days=7&agent=a+%26+b&risk=high&kind=rejected"
    assert wanted.whole == wanted
    assert InsightFilters(days=7, kind="rejected").whole == InsightFilters(days=7)


def test_a_chart_has_nothing_that_a_strict_policy_refuses_and_its_words_are_text() -> None:
    """pygal brings a style, a script and links that open elsewhere."""
    drawn = charts.lying_bars(["<script>alert(1)</script>", "b"], {"One": [(3, "/x?a=1&b=2"), (None, "")]})
    root = ElementTree.fromstring(drawn)  # noqa: S314 - drawn here
    names = {each.tag.rpartition("}")[2] for each in root.iter()}
    assert names <= {"svg", "g", "rect", "text", "path", "a", "circle"}
    assert not [each for each in root.iter() if {"style", "id", "onclick", "target"} & each.attrib.keys()]
    assert [each.get("href") for each in root.iter() if each.tag.endswith("}a")] == ["/x?a=1&b=2"]
    assert "<script>…" not in drawn
    assert "&lt;script" in drawn
    assert root.get("aria-hidden") == "true"


def test_numbers_of_gates_are_told_at_whole_numbers() -> None:
    root = ElementTree.fromstring(charts.lying_bars(["a"], {"One": [(2, "")]}))  # noqa: S314 - drawn here
    assert [each.text for each in root.iter() if each.tag.endswith("}text")] == ["a", "0", "1", "2"]


def test_a_line_of_gaps_alone_is_drawn() -> None:
    one = charts.lines(["1 Nov", "2 Nov"], {"Median": [(None, ""), (5, "/x")]})
    assert one.count("<circle") == one.count('href="/x"') == 1  # a day alone has no line
    assert charts.lines(["1 Nov", "2 Nov"], {"Median": [(None, ""), (None, "")]}).startswith("<svg")
