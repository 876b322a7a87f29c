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
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from approvals.models import BulkOrder, ChannelAddress, Delegation, Gate, SavedView, SignedIn
from checkpoints.actors import SYSTEM
from checkpoints.models import Event
from checkpoints.runs import notes
from checkpoints.values import artifacts
from tests.factories import ann, bob, eve, make_gate, make_run, make_state, make_team, make_user, unique
from tests.factories.people import EVERYTHING
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
PERSONAL = frozenset({"bulk"})  # shown to one person, whatever others may see
# POSTed to; everything else is only looked at.
MOVES = {"run-cancellations", "run-rewinds", "run-edits", "run-forks", "run-settlements", "run-wakes", "run-signals"}
MAY_MOVE = "checkpoints.rewind_run"
WRITER = (MAY_MOVE, "approvals.decide_gate")
FORMS = frozenset({"checkpoint-edit", "checkpoint-fork", "gate_hand_over"})  # shown to those who may write
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
    """Every (route, pattern) of the URL map."""
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
def note() -> int:
    """Somebody's note on the run's first checkpoint."""
    notes.note(gate().run, 1, "Look here", key="k", by=SYSTEM)
    return Event.objects.get(run_id=gate().run_id, kind=notes.NOTED).pk


@cache
def token() -> int:
    """Somebody's own token."""
    return make_token(ann(gate().team))[0].pk


@cache
def browser() -> int:
    """Somebody's browser, which takes pushed messages."""
    return ChannelAddress.objects.add("push", "{}", label="Firefox", user=ann(gate().team)).pk


@cache
def somebodys_session() -> int:
    """A session that is listed, of somebody else."""
    return SignedIn.objects.create(user=bob(gate().team), session_key=unique("a session of Bob's")).pk


@cache
def view() -> int:
    """Somebody's own view."""
    return SavedView.objects.create(user=ann(gate().team), name="Mine").pk


@cache
def order() -> int:
    """Somebody's own bulk decision."""
    made = BulkOrder.objects.create(user=ann(gate().team), key="k", verdict="approve", comment=b"", request=b"")
    return made.pk


@cache
def delegation() -> int:
    """Somebody's own time away."""
    now = timezone.now()
    return Delegation.objects.create(person=ann(gate().team), starts_at=now, ends_at=now + timedelta(days=1)).pk


def address(route: str) -> str:
    """The address of a route, for the one gate and its run."""
    values: dict[str, Any] = {"gate_id": gate().pk, "run_id": gate().run_id, "seq": 1, "note": note(), "token": token()}
    values["number"] = somebodys_session()
    values["pointer"] = "/order"
    values["browser"] = browser()
    values |= {"view_id": view(), "order_id": order()}
    values["delegation"] = delegation()
    values["name"] = gate().run.plan.agent
    values["digest"] = hashlib.sha256(b"a scan").hexdigest()
    values["event_id"] = Event.objects.filter(subject=f"gate:{gate().pk}").values_list("pk", flat=True)[0]

    def value(match: re.Match[str]) -> str:
        assert match[1] in values, f"say here what {match[1]} of {route} is"
        return str(values[match[1]])

    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", value, route)


def test_every_address_has_a_name() -> None:
    assert all(OURS.values())
    assert {"inbox", "gate", "gate_status", "runs", "run"} | WRITES <= set(OURS.values())


@pytest.mark.parametrize("route", list(OURS))
def test_it_refuses_the_wrong_method(route: str) -> None:
    member = signed_in(ann(gate().team))
    wrong = ("get", "put", "delete") if route in WRITTEN else ("post", "put", "delete")
    for method in wrong:
        assert getattr(member, method)(address(route)).status_code == 405, method


@pytest.mark.parametrize("route", WRITTEN)
def test_it_takes_nothing_without_the_sessions_own_token(route: str) -> None:
    """A form on another site, or a method that is only called another, orders nothing."""
    member = Client(enforce_csrf_checks=True)
    member.force_login(ann(gate().team))
    there, before = address(route), Event.objects.count()
    assert member.post(there, form_of(gate())).status_code == 403
    called = {"X-HTTP-Method-Override": "POST", "X-Method-Override": "POST"}
    assert member.get(there, {"_method": "POST", **form_of(gate())}, headers=called).status_code in (302, 405)
    assert Event.objects.count() == before


@pytest.mark.parametrize("route", [route for route in LOOKED_AT if OURS[route] not in FORMS | PERSONAL])
def test_whoever_opens_every_address_orders_nothing(route: str) -> None:
    """As the scanners of mail do."""
    there, before = address(route), (Event.objects.count(), Gate.objects.get(pk=gate().pk).version)
    answer = signed_in(ann(gate().team)).get(there)
    answer.close()
    assert answer.status_code == 200
    assert (Event.objects.count(), Gate.objects.get(pk=gate().pk).version) == before


@pytest.mark.parametrize("route", LOOKED_AT)
def test_it_is_shown_in_no_frame_and_runs_nothing_from_elsewhere(route: str) -> None:
    reader = make_user("Bob", gate().team, may=WRITER)
    answer = signed_in(reader).get(address(route))
    answer.close()
    said = answer["Content-Security-Policy"].split("; ")
    assert answer["X-Frame-Options"] == "DENY"
    assert "default-src 'none'" in said
    assert {"frame-ancestors 'none'", "script-src 'self'"} <= set(said) or "sandbox" in said


@pytest.mark.parametrize("route", OF_A_TEAM)
def test_an_outsider_is_told_that_nothing_is_there(route: str) -> None:
    outsider = signed_in(eve())
    answer = outsider.post(address(route), form_of(gate())) if route in WRITTEN else outsider.get(address(route))
    assert answer.status_code == 404


def test_each_asks_the_one_place_who_may() -> None:
    """Where that says nobody, whoever has every right in the tables gets nothing: no address has a rule of its own."""
    member = signed_in(make_user("Ann Okafor", gate().team, may=EVERYTHING))
    at = {route: address(route) for route in OF_A_TEAM}
    with nobody_may():
        said = {
            route: (member.post(there, form_of(gate())) if route in WRITTEN else member.get(there)).status_code
            for route, there in at.items()
        }
    assert said == dict.fromkeys(OF_A_TEAM, 404)


def test_each_list_asks_the_one_place_who_may() -> None:
    member = signed_in(make_user("Ann Okafor", gate().team, may=EVERYTHING))
    shown = (f"/gates/{gate().pk}/", f"/runs/{gate().run_id}/", f"/{gate().run.plan.agent}/")
    with nobody_may():
        for route in (route for route, name in OURS.items() if name in LISTS):
            answer = member.get(address(route), {"q": gate().title})
            assert answer.status_code == 200
            assert (route, [each for each in shown if each in answer.content.decode()]) == (route, [])


@pytest.mark.parametrize("route", list(OURS))
def test_nobody_gets_in_without_signing_in(route: str) -> None:
    answer = Client().post(address(route)) if route in WRITTEN else Client().get(address(route))
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize("route", [route for route in WRITTEN if OURS[route] not in SPEAKS | OWN | OF_ACCOUNTS])
def test_a_reader_may_not_write(route: str) -> None:
    reader = signed_in(make_user("Rita Reader", gate().team))
    answer = reader.post(address(route), form_of(gate()))
    assert answer.status_code in (403, 404)
    found = Gate.objects.select_related("run").get(pk=gate().pk)
    assert (found.status, found.version, found.run.status) == ("open", gate().version, "waiting")


@pytest.mark.parametrize("route", [route for route in LOOKED_AT if OURS[route] not in PERSONAL])
def test_what_it_shows_is_kept_by_no_cache(route: str) -> None:
    team = gate().team
    reader = make_user("Bob", team, may=WRITER) if OURS[route] in FORMS else make_user("Rita Reader", team)
    answer = signed_in(reader).get(address(route))
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
