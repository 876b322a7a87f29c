"""Every address of the product refuses the wrong method, tells outsiders nothing and lets readers write nothing.

Generated from the URL map: an address that is added is covered, or fails here until it says how to build it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from approvals.models import BulkOrder, ChannelAddress, Delegation, Gate, SavedView, SignedIn
from checkpoints.actors import SYSTEM
from checkpoints.models import Event
from checkpoints.runs import notes
from checkpoints.values import artifacts
from tests.factories import ann, bob, eve, make_gate, make_run, make_state, make_team, make_user, unique
from tests.factories.people import EVERYTHING, READER
from tests.factories.tokens import make_token
from tests.harness.altered_rows import nobody_may
from tests.harness.signed_in_clients import form_of, signed_in

# Others' addresses, and those that answer anybody.
ELSEWHERE = re.compile(
    r"accounts/|account/security/|admin/|healthz|readyz|metrics|api/|static/|manifest|service-worker|offline/"
)
# Lists of what is the reader's own: an outsider gets an empty one.
LISTS = frozenset(
    {
        "inbox", "inbox_list", "bulk_progress", "views", "jump", "runs", "agents", "tokens", "device", "account",
        "account-sessions", "away", "notifications", "browser-keys", "waiting", "insights", "insight_gates",
    }
)  # fmt: skip
# Whoever is signed in writes what is their own. Gates are named in the forms of a bulk decision: see its own tests.
OWN = frozenset(
    {
        "notification-settings", "notification-tests", "token-issuances", "device-codes", "device-confirmations",
        "device-refusals", "browsers", "slack-lookups", "away-plans", "bulk-previews",
        "bulk-decisions", "view-savings",
    }
)  # fmt: skip
OF_ACCOUNTS = frozenset({"account-changes", "account-session-removals", "account-sessions-others-removals"})
# POSTed to; everything else is only looked at.
MOVES = {"run-cancellations", "run-rewinds", "run-edits", "run-forks", "run-settlements", "run-wakes", "run-signals"}
MAY_MOVE = "checkpoints.rewind_run"
WRITER = (MAY_MOVE, "approvals.decide_gate")
AUDIT_ORDERS = {"audit-verifications", "audit-exports", "audit-erasures"}
NOTES = {"checkpoint-notes", "checkpoint-note-removals"}
NAMES = {"checkpoint-names", "checkpoint-name-removals"}
TOKENS = {*OWN, "token-revocations", "browser-removals", "view-changes", "gate_snoozes"}
SPEAKS = {"gate_questions", "gate_remarks", "checkpoint-notes"}  # who may see it may speak of it; it decides nothing
ON_GATES = {"decisions", "undos", "gate_drafts", "gate_forms", "gate_impacts", "gate_questions", "gate_remarks"}
ON_GATES |= {"gate_claims", "gate_releases", "gate_takeovers", "gate_reassignments", "away-ends"}
REVEALS = {"gate_reveals", "checkpoint-reveals"}
WRITES = frozenset(
    {"run-impacts", "run-forms", "agent-runs", *TOKENS, *ON_GATES, *MOVES, *NAMES, *NOTES, *REVEALS, *AUDIT_ORDERS}
    | OF_ACCOUNTS
)


def patterns(found: list[Any], before: str = "") -> Iterator[tuple[str, URLPattern]]:
    for each in found:
        route = before + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from patterns(each.url_patterns, route)
        else:
            yield route, each


OURS = {route: each.name for route, each in patterns(get_resolver().url_patterns) if not ELSEWHERE.match(route)}
OF_A_TEAM = [
    route for route, name in OURS.items() if name not in LISTS | OWN | (OF_ACCOUNTS - {"account-session-removals"})
]
LOOKED_AT = [route for route, name in OURS.items() if name not in WRITES]
WRITTEN = [route for route, name in OURS.items() if name in WRITES]


@cache
def gate() -> Gate:
    team = make_team(may=("checkpoints.view_run",))
    return make_gate(run=make_run(team=team, state=make_state(order={"scan": artifacts.keep(b"a scan")})))


@cache
def form() -> dict[str, str]:
    return form_of(gate())


@cache
def person(*may: str) -> User:
    return make_user("Ann Okafor", gate().team, may=may)


@cache
def parts() -> dict[str, Any]:
    """What addresses name: parts of the gate and its run, and what is somebody's own."""
    here, team, now = gate(), gate().team, timezone.now()
    notes.note(here.run, 1, "Look here", key="k", by=SYSTEM)
    push = ChannelAddress.objects.add("push", "{}", label="Firefox", user=ann(team))
    session = SignedIn.objects.create(user=bob(team), session_key=unique("a session of Bob's"))
    view = SavedView.objects.create(user=ann(team), name="Mine")
    away = Delegation.objects.create(person=ann(team), starts_at=now, ends_at=now + timedelta(days=1))
    own = {"user": person(*WRITER), "key": "k", "verdict": "approve", "comment": b"", "request": b""}
    return {
        "gate_id": here.pk, "run_id": here.run_id, "seq": 1, "pointer": "/order", "name": here.run.plan.agent,
        "note": Event.objects.get(run_id=here.run_id, kind=notes.NOTED).pk, "token": make_token(ann(team))[0].pk,
        "number": session.pk, "browser": push.pk, "view_id": view.pk, "delegation": away.pk,
        "order_id": BulkOrder.objects.create(**own).pk, "digest": hashlib.sha256(b"a scan").hexdigest(),
        "event_id": Event.objects.filter(subject=f"gate:{here.pk}").values_list("pk", flat=True)[0],
    }  # fmt: skip


@cache
def address(route: str) -> str:

    def value(match: re.Match[str]) -> str:
        assert match[1] in parts(), f"say here what {match[1]} of {route} is"
        return str(parts()[match[1]])

    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", value, route)


def test_every_address_has_a_name() -> None:
    assert all(OURS.values())
    assert {"inbox", "gate", "gate_status", "runs", "run"} | WRITES <= set(OURS.values())


@cache
def reader(*may: str) -> Client:
    return signed_in(person(*may))


def asked(client: Client, route: str, **more: Any) -> Any:
    """Send a form to the address where it takes one, and open it where it does not."""
    return client.post(address(route), form(), **more) if route in WRITTEN else client.get(address(route))


def statuses(client: Client, routes: list[str]) -> dict[str, int]:
    return {route: asked(client, route).status_code for route in routes}


def test_each_refuses_the_wrong_method() -> None:
    wrong = {route: ("get" if route in WRITTEN else "post", "put", "delete") for route in OURS}
    said = {
        (route, each): getattr(reader(), each)(address(route)).status_code for route in OURS for each in wrong[route]
    }
    assert said == dict.fromkeys(said, 405)


def test_none_takes_anything_without_the_sessions_own_token() -> None:
    """A form on another site, or a method that is only called another, orders nothing."""
    member = Client(enforce_csrf_checks=True)
    member.force_login(ann(gate().team))
    parts()  # so that what it makes does not count
    before = Event.objects.count()
    called = {"X-HTTP-Method-Override": "POST", "X-Method-Override": "POST"}
    for route in WRITTEN:
        refused = asked(member, route)
        assert (route, refused.status_code, "This form has expired" in refused.content.decode()) == (route, 403, True)
        answer = member.get(address(route), {"_method": "POST", **form()}, headers=called)
        assert (route, answer.status_code in (302, 405)) == (route, True)
    assert Event.objects.count() == before


@pytest.mark.parametrize("route", LOOKED_AT)
def test_whoever_opens_it_orders_nothing_and_nothing_is_cached_framed_or_run_from_elsewhere(route: str) -> None:
    """As the scanners of mail do, which open every address."""
    there, client = address(route), reader(*WRITER)
    before = (Event.objects.count(), Gate.objects.get(pk=gate().pk).version)
    answer = client.get(there)
    assert answer.status_code == 200
    answer.close()
    said = answer["Content-Security-Policy"].split("; ")
    assert answer["X-Frame-Options"] == "DENY"
    assert "default-src 'none'" in said
    assert {"frame-ancestors 'none'", "script-src 'self'"} <= set(said) or "sandbox" in said
    assert "no-store" in answer["Cache-Control"]
    if not answer.streaming:
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style", answer.content.decode())
    assert (Event.objects.count(), Gate.objects.get(pk=gate().pk).version) == before


def test_an_outsider_is_told_that_nothing_is_there() -> None:
    assert statuses(signed_in(eve()), OF_A_TEAM) == dict.fromkeys(OF_A_TEAM, 404)


def test_each_asks_the_one_place_who_may() -> None:
    """Where that says nobody, whoever has every right in the tables gets nothing: no address has a rule of its own."""
    member = reader(*EVERYTHING)
    shown = (f"/gates/{gate().pk}/", f"/runs/{gate().run_id}/", f"/{gate().run.plan.agent}/")
    with nobody_may():
        assert statuses(member, OF_A_TEAM) == dict.fromkeys(OF_A_TEAM, 404)
        for route in (route for route, name in OURS.items() if name in LISTS):
            answer = member.get(address(route), {"q": gate().title})
            assert answer.status_code == 200
            assert (route, [each for each in shown if each in answer.content.decode()]) == (route, [])


def test_nobody_gets_in_without_signing_in() -> None:
    for route in OURS:
        answer = asked(Client(), route)
        assert (route, answer.status_code, answer["Location"][:16]) == (route, 302, "/accounts/login/")


def test_a_reader_may_not_write() -> None:
    routes = [route for route in WRITTEN if OURS[route] not in SPEAKS | OWN | OF_ACCOUNTS]
    assert set(statuses(reader(*READER), routes).values()) <= {403, 404}
    stored = Gate.objects.select_related("run").get(pk=gate().pk)
    assert (stored.status, stored.version, stored.run.status) == ("open", gate().version, "waiting")
