"""The page of figures: what it counts, for whom, the lists that its numbers lead to, and the charts."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals.insights import backlog, charts, figures
from approvals.insights.closed_gates import CountedGate, InsightFilters
from approvals.models import Gate
from approvals.policy.requirements import Requirements
from approvals.presentation import insights as presentation
from tests.factories import ann, change_gate, decide, edit_amount, eve, make_gate, make_policy, make_run
from tests.factories import make_team as team_of_people
from tests.factories.people import MEMBER, make_user
from tests.harness.signed_in_clients import signed_in

LEAD = (*MEMBER, "approvals.compare_people")


@pytest.fixture
def team() -> Group:
    return team_of_people()


def closed(team: Group, verdict: str = "approve", *, days: int = 0) -> Gate:
    """A gate of the team that a person decided so many days ago, an hour after it opened."""
    gate = make_gate(run=make_run(team=team), policy=make_policy(team, version=Gate.objects.count() + 1))
    sent = {"arguments": edit_amount(gate, "90.00")} if verdict == "edit" else {}
    decide(gate, make_user(f"Reviewer of-{gate.pk}", team), verdict, **sent)
    at = dt.datetime.now(dt.UTC) - dt.timedelta(days=days)
    change_gate(gate, closed_at=at, opened_at=at - dt.timedelta(hours=1))
    return gate


def links(page: str) -> list[tuple[str, int]]:
    found = re.findall(r'<td>\s*<a href="(/insights/gates/[^"]*)">(\d+)</a>', page)
    return [(unescape(address), int(number)) for address, number in found]


def test_every_number_leads_to_as_many_gates(team: Group) -> None:
    gate = closed(team)
    reader = signed_in(ann(team))
    reader.get("/insights/")
    with CaptureQueriesContext(connection) as few:
        reader.get("/insights/")
    closed(team, "reject")
    closed(team, "edit")
    closed(team, days=3)
    closed(team, days=40)  # before the period
    with CaptureQueriesContext(connection) as many:
        page = reader.get("/insights/").content.decode()
    assert len(many) == len(few) <= 10, "however many gates there are"
    found = links(page)
    assert len(found) > 12
    for address, number in set(found):
        listed = reader.get(address).content.decode()
        assert len(re.findall(r'<li class="gate-row"', listed)) == number, address
    assert ("/insights/gates/?days=30&field=%2Fproposal%2Famount", 1) in found
    assert links(reader.get(f"/insights/?agent={gate.run.plan.agent}").content.decode())
    outsider = signed_in(eve())
    assert links(outsider.get("/insights/").content.decode()) == []
    assert b'class="gate-row"' not in outsider.get(f"/insights/gates/?team={team.pk}").content
    for nothing in ("agent=nobody", "risk=critical", "policy=other"):
        assert links(reader.get(f"/insights/?{nothing}").content.decode()) == []


def test_people_are_compared_only_where_their_lead_permits_it(team: Group) -> None:
    gate = closed(team)
    other = gate.decisions.get().user
    reader = signed_in(ann(team))
    assert other.get_full_name() not in reader.get("/insights/").content.decode()
    assert reader.get(f"/insights/gates/?person={other.pk}").status_code == 404
    lead = signed_in(make_user("lead", team, may=LEAD))
    page = lead.get("/insights/").content.decode()
    assert other.get_full_name() in page
    # By the number of an account its name could be read, of whoever decided none of these gates.
    assert lead.get(f"/insights/gates/?person={eve().pk}").status_code == 404
    own = signed_in(other).get("/insights/").content.decode()
    assert f"/insights/gates/?days=30&amp;person={other.pk}" in own
    assert len(re.findall('class="gate-row"', lead.get(f"/insights/gates/?person={other.pk}").content.decode())) == 1


def test_the_backlog_counts_the_open_gates_of_the_readers_teams_alone(team: Group) -> None:
    other, now = team_of_people("Finance"), dt.datetime.now(dt.UTC)
    policies = {each: make_policy(each) for each in (team, other)}
    waits = [4, 6, 61, 481, 25 * 60, 49 * 60]  # minutes
    for of, minutes in ((other, 60), *((team, each) for each in waits)):
        cost = {"delay_currency": "EUR", "delay_value": 12} if minutes > 60 else {}
        gate = make_gate(run=make_run(team=of), policy=policies[of])
        change_gate(gate, opened_at=now - dt.timedelta(minutes=minutes), **cost)
    closed(team)
    found = backlog.read([team.pk], InsightFilters())
    assert found.spread == {"5m": 1, "1h": 1, "8h": 1, "1d": 1, "more": 2}
    assert (found.open, found.days[-1][1]) == (6, 6)
    assert found.longest is not None
    late = dt.timedelta(minutes=1)  # what the test takes
    assert dt.timedelta() <= found.longest - dt.timedelta(minutes=waits[-1]) < late
    assert dt.timedelta() <= found.waited - dt.timedelta(minutes=sum(waits)) < 6 * late
    assert found.costs == {"EUR": pytest.approx(12 * sum(waits[2:]) / 60, abs=1)}
    assert backlog.read([team.pk], InsightFilters(risk="critical")).open == 0
    assert backlog.read([team.pk], InsightFilters(team=other.pk)).open == 0
    assert backlog.read([team.pk, other.pk], InsightFilters()).open == 7


def test_days_are_counted_in_a_zone_of_which_the_database_does_not_know(team: Group) -> None:
    """The page answered 500 to a browser in a zone with a name that is newer than the database, or none."""
    policy, hour, now = make_policy(team), dt.timedelta(hours=1), dt.datetime.now(dt.UTC)
    made = dt.timezone(dt.timedelta(hours=13), "Made/Up")
    midnight = now.astimezone(made).replace(hour=0, minute=0, second=0, microsecond=0)
    for hours in (-25, -1, 0):
        change_gate(make_gate(run=make_run(team=team), policy=policy), opened_at=midnight + hours * hour)
    with timezone.override(made):
        found = backlog.read([team.pk], InsightFilters(days=7))
    assert [level for _, level in found.days[-4:]] == [0, 1, 2, 3]
    assert found.days[-1][0] == midnight.date()


NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def gate(
    id: int = 1, *, kind: str = "approved", seconds: float = 60.0, at: datetime = NOON, **more: str
) -> CountedGate:
    given = {"policy": "refunds", "agent": "refunds", "risk": "low", **more}
    return CountedGate(id=id, team=1, kind=kind, at=at, seconds=seconds, **given)


def test_quantiles_are_of_the_decisions_of_people_alone() -> None:
    rows = [gate(seconds=float(each)) for each in range(1, 11)]
    rows += [gate(kind="expired", seconds=9000.0), gate(kind="withdrawn", seconds=9000.0)]
    took = figures.measure_waits(rows)
    assert (took.number, took.half, took.most) == (10, timedelta(seconds=6), timedelta(seconds=10))


def test_what_a_rule_approved_is_compared_with_its_sample_and_is_no_decision_of_people() -> None:
    own = Requirements(stages=(), rules=("small",), auto=True)
    alone, sample, asked = (each.to_text() for each in (own, replace(own, sampled=True), replace(own, auto=False)))
    rows = [
        gate(1, by="policy:7", requirements=alone), gate(2, by="user:3", requirements=sample, kind="rejected"),
        gate(3, by="user:3", requirements=sample), gate(4, by="user:3", requirements=asked),
    ]  # fmt: skip
    assert figures.by_rule(rows) == {"small": (1, {"approved": 1, "rejected": 1})}
    assert figures.measure_waits(rows).number == 3
    for asked_for, found in (({}, [1]), ({"sample": True, "kind": "rejected"}, [2])):
        filters = InsightFilters(rule="small", **asked_for)  # type: ignore[arg-type]
        assert [row.id for row in figures.select_part(rows, filters)] == found


def test_places_in_a_list_are_one_field_and_a_bar_is_named_by_the_end_of_a_long_name() -> None:
    """The bar was named "/proposal/refund/…"."""
    ops = (("replace", "/lines/0/price"), ("replace", "/lines/17/price"), ("add", "/lines/-"), ("test", "/order"))
    patch = [{"op": op, "path": path, "value": 1} for op, path in ops]
    assert figures.changed_fields(patch) == {"/lines/*/price", "/lines/*"}
    drawn = presentation.edits({"/proposal/refund/amount": [1]}, InsightFilters())
    assert drawn.rows[0][0].text == "proposal \u203a refund \u203a amount"
    assert "…\u203a refund \u203a amount" in drawn.chart


@pytest.mark.parametrize("junk", ["-1", "9" * 30, "²"])
def test_junk_in_an_address_is_ignored_and_the_rest_kept(junk: str) -> None:
    query = dict.fromkeys(("days", "team", "person", "risk", "kind", "day"), junk)
    assert InsightFilters.from_query(query) == InsightFilters()
    wanted = InsightFilters(days=7, agent="a & b", risk="high")
    assert wanted.query(kind="rejected") == "days=7&agent=a+%26+b&risk=high&kind=rejected"
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
    assert [each.text for each in root.iter() if each.tag.endswith("}text")][-4:] == ["0", "1", "2", "3"]
    one = charts.lines(["1 Nov", "2 Nov"], {"Median": [(None, ""), (5, "/x")]})
    assert one.count("<circle") == one.count('href="/x"') == 1  # a day alone has no line
    assert charts.lines(["1 Nov", "2 Nov"], {"Median": [(None, ""), (None, "")]}).startswith("<svg")
