"""The page of figures: what it counts, for whom, and the lists that its numbers lead to."""

from __future__ import annotations

import datetime as dt
import re
from html import unescape

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals.insights import backlog
from approvals.insights.closed_gates import InsightFilters
from approvals.models import Gate
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
    """Every number of a table that is a link, with its address."""
    found = re.findall(r'<td>\s*<a href="(/insights/gates/[^"]*)">(\d+)</a>', page)
    return [(unescape(address), int(number)) for address, number in found]


def test_every_number_leads_to_as_many_gates(team: Group) -> None:
    closed(team)
    closed(team, "reject")
    closed(team, "edit")
    closed(team, days=3)
    closed(team, days=40)  # before the period
    reader = signed_in(ann(team))
    page = reader.get("/insights/").content.decode()
    found = links(page)
    assert len(found) > 12
    for address, number in found:
        listed = reader.get(address).content.decode()
        assert len(re.findall(r'<li class="gate-row"', listed)) == number, address
    assert ("/insights/gates/?days=30&field=%2Fproposal%2Famount", 1) in found


def test_gates_of_another_team_are_not_counted(team: Group) -> None:
    closed(team)
    outsider = signed_in(eve())
    assert links(outsider.get("/insights/").content.decode()) == []
    assert b'class="gate-row"' not in outsider.get(f"/insights/gates/?team={team.pk}").content


def test_people_are_compared_only_where_their_lead_permits_it(team: Group) -> None:
    gate = closed(team)
    other = gate.decisions.get().user
    reader = signed_in(ann(team))
    assert other.get_full_name() not in reader.get("/insights/").content.decode()
    assert reader.get(f"/insights/gates/?person={other.pk}").status_code == 404
    lead = signed_in(make_user("lead", team, may=LEAD))
    page = lead.get("/insights/").content.decode()
    assert other.get_full_name() in page
    assert len(re.findall('class="gate-row"', lead.get(f"/insights/gates/?person={other.pk}").content.decode())) == 1


def test_a_list_names_nobody_who_decided_none_of_its_gates(team: Group) -> None:
    """Whoever may compare people of one team could read the name of any account by its number."""
    closed(team)
    stranger = eve()
    lead = signed_in(make_user("lead", team, may=LEAD))
    assert lead.get(f"/insights/gates/?person={stranger.pk}").status_code == 404


def test_one_sees_ones_own_decisions(team: Group) -> None:
    gate = closed(team)
    me = gate.decisions.get().user
    page = signed_in(me).get("/insights/").content.decode()
    assert f"/insights/gates/?days=30&amp;person={me.pk}" in page


def test_filters_narrow_every_figure(team: Group) -> None:
    gate = closed(team)
    reader = signed_in(ann(team))
    assert links(reader.get(f"/insights/?agent={gate.run.plan.agent}").content.decode())
    assert links(reader.get("/insights/?agent=nobody").content.decode()) == []
    assert links(reader.get("/insights/?risk=critical").content.decode()) == []
    assert links(reader.get("/insights/?policy=other").content.decode()) == []


def test_the_page_takes_as_many_statements_however_many_gates_there_are(team: Group) -> None:
    reader, numbers = signed_in(ann(team)), []
    for _ in range(2):
        closed(team)
        reader.get("/insights/")
        with CaptureQueriesContext(connection) as captured:
            reader.get("/insights/")
        numbers.append(len(captured))
    assert numbers[0] == numbers[1]
    assert numbers[0] <= 10


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
