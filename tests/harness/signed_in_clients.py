"""People at a browser without a browser, and the form that a gate's page offers them."""

from __future__ import annotations

import secrets
import time
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.test import Client

from approvals.gates.page.shown_gate import ShownGate
from approvals.models import Gate
from approvals.policy.authority import GateStanding
from approvals.presentation.gate_page.page import GatePage
from approvals.sessions import SessionStore


def session_of(user: User) -> str:
    """Make a session of `user` and return its key. Django's own way for tests makes two and drops the first."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return str(session.session_key)


def signed_in(user: User) -> Client:
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = session_of(user)
    return client


def confirmed(user: User) -> Client:
    """The same where they gave their password again just now."""
    client = signed_in(user)
    session = client.session
    session["account_authentication_methods"] = [{"method": "password", "at": time.time(), "reauthenticated": True}]
    session["account_authentication_methods_user"] = str(user.pk)
    session.save()
    return client


def form_of(gate: Gate, verdict: str = "approve", **typed: str) -> dict[str, str]:
    """What the gate's page would post for what stands now, to somebody who has not said anything yet."""
    standing = Gate.objects.get(pk=gate.pk).standing()
    typed = {**shown_of(gate), **typed}
    hidden = {"seen": bytes(standing.digest).hex(), "proposal": str(standing.number), "key": secrets.token_hex(16)}
    return {**hidden, "verdict": verdict, **typed}


def shown_of(gate: Gate) -> dict[str, str]:
    """The marks with which the gate's page says what each choice does, and every box of it ticked."""
    read = Gate.objects.select_related("run__plan", "policy__team", "team").get(pk=gate.pk)
    nobody = ShownGate(
        gate=read, standing=read.standing(), sees_run=False, stands=GateStanding(0), draft=None, looking=[],
        replaced=[], approvals=[], deciders=frozenset(),
    )  # fmt: skip
    choices = GatePage(nobody, User()).choices
    backs, answers = [impact for *_, impact in choices.backs], [impact for _, impact in choices.asked]
    drawn = (*choices.impacts.values(), *backs, *answers)
    ticked = {f"confirm.{tick.value}.{each.choice}": "yes" for each in drawn for tick in each.ticks}
    return {f"shown.{each.choice}": each.shown for each in drawn} | ticked


def post(user: User, gate: Gate, form: dict[str, Any]) -> Any:
    return signed_in(user).post(f"/gates/{gate.pk}/decisions/", form)
