"""Events over the API: the same facts as the socket's, for the same people."""

from __future__ import annotations

import os
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.api import events
from approvals.live import replay
from approvals.live.access import access_of
from approvals.live.replay import missed
from checkpoints import actors
from checkpoints.events import commit_order
from checkpoints.events.commit_order import Cursor
from checkpoints.models import Event
from tests.factories import MEMBER, REVIEWER, ann, eve, make_gate, make_policy, make_run, make_team, mira
from tests.harness import horizon
from tests.harness.signed_in_clients import session_of, signed_in

from .sent_requests import ask, save


def follow(user: User, after: str, **query: Any) -> list[dict[str, Any]]:
    """Everything after a cursor, page by page."""
    found: list[dict[str, Any]] = []
    more = True
    while more:
        page = ask(user, "/api/events", after=after, **query)
        found, after, more = found + page["items"], page["next"], page["more"]
    return found


def busy() -> tuple[Group, Group, str]:
    """A team and its reviewers, and a cursor before what happened to them and to strangers."""
    before = str(commit_order.newest_cursor())
    support, finance = make_team(may=MEMBER), make_team("Finance", may=REVIEWER)
    policy = make_policy(support, groups=(finance,))
    for _ in range(3):
        make_gate()
        make_gate(policy=policy)
        save(make_run(team=support), mailed=True)
        make_run()
    return support, finance, before


def test_pages_of_facts_follow_each_other_without_a_gap_or_a_repeat_as_the_socket_tells_them() -> None:
    support, finance, before = busy()
    for reader in (ann(support), mira(finance), eve()):
        access = access_of(session_of(reader))
        assert access is not None
        (told,) = missed([(access, Cursor.parse(before))])
        assert told is not None
        assert [dict(fact) for fact in told] == follow(reader, before, limit=2) == follow(reader, before)
    assert {fact["kind"] for fact in follow(ann(support), before)} >= {"gate.opened", "run.started", "checkpoint.saved"}
    assert {fact["kind"] for fact in follow(mira(finance), before)} == {"gate.opened"}
    assert follow(eve(), before) == []


def test_what_others_do_is_passed_over_once_and_never_read_again() -> None:
    _, _, before = busy()
    newest = commit_order.newest_cursor()
    page = ask(eve(), "/api/events", after=before)
    assert (page["items"], page["more"]) == ([], False)
    assert Cursor.parse(page["next"]) >= newest > Cursor.parse(before)


def test_a_page_that_only_strangers_fill_goes_on_where_it_ended(monkeypatch: Any) -> None:
    support, _, before = busy()
    monkeypatch.setattr(events, "SCANNED", 2)
    assert len(follow(mira(make_team(may=REVIEWER)), before)) == 0
    assert follow(ann(support), before, limit=1) == follow(ann(support), before)
    page = ask(eve(), "/api/events", after=before)
    assert (page["items"], page["more"]) == ([], True)


def test_now_is_a_place_to_start_from() -> None:
    team = make_team()
    make_gate(team=team)
    reader = ann(team)
    start = ask(reader, "/api/events", after="now")
    assert (start["items"], start["more"]) == ([], False)
    run = make_run(team=team)
    run.cancel(by=actors.SYSTEM, reason="Not needed")
    kinds = [fact["kind"] for fact in follow(reader, start["next"])]
    assert kinds[-1] == "run.cancelled"
    assert "gate.opened" not in kinds


def test_without_a_cursor_it_begins_with_the_first_event() -> None:
    team = make_team()
    gate = make_gate(team=team)
    found = follow(ann(team), "", limit=200)
    opened = next(fact for fact in found if fact["kind"] == "gate.opened")
    assert (opened["subject"], opened["title"]) == (f"gate:{gate.pk}", gate.title)
    assert {fact["run"] for fact in found if fact["run"]} == {f"run:{gate.run_id}"}


def test_a_place_that_the_database_has_not_come_to_is_gone() -> None:
    """A database that was set back was said to have nothing new for ever."""
    answer = signed_in(ann(make_team())).get("/api/events", {"after": str(Cursor(2**60, 1))})
    assert answer.status_code == 410
    assert "after=now" in answer.json()["detail"]


def test_a_place_that_no_reader_may_come_to_yet_is_not_ahead() -> None:
    team = make_team()
    reader = ann(team)
    with psycopg.connect(os.environ["DATABASE_URL"]) as other:
        other.execute("SELECT pg_current_xact_id()")
        make_gate(team=team)
        newest = Cursor.from_event(Event.objects.latest("xid", "id"))
        assert newest > commit_order.newest_cursor()
        page = ask(reader, "/api/events", after=str(newest))
        assert (page["items"], page["next"]) == ([], str(newest))
        access = access_of(session_of(reader))
        assert access is not None
        assert missed([(access, newest)]) == [[]]


def test_those_who_missed_much_and_little_are_told_apart_in_few_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crowd that had all missed too much was halved down to each of it: twice as many statements as one by one."""
    monkeypatch.setattr(replay, "REPLAYED", 6)
    support, _, before = busy()
    access, stranger = access_of(session_of(ann(support))), access_of(session_of(eve()))
    assert access is not None
    assert stranger is not None
    far, near = Cursor.parse(before), commit_order.newest_cursor()
    make_gate(policy=make_policy(support, name="default"))
    horizon.reached()
    with CaptureQueriesContext(connection) as statements:
        told = missed([(access, far)] * 50 + [(access, near)])
    assert told[:50] == [None] * 50
    assert "gate.opened" in [fact["kind"] for fact in told[50] or []]
    assert len(statements) <= 4
    assert [each is None for each in missed([(access, near), (stranger, near), (access, far)])] == [False, False, True]
