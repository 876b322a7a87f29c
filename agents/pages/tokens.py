"""The page of API tokens: a person's own, and those of the agents that they own.

A new token is shown once, by the answer to the form itself: it is in no address, no redirect and no session. A
form makes one token, however often its answer is loaded again.

A token outlives the session that made it, so making one takes the password again, as for a decision under such a
policy. The person comes back to the form as it was filled in, by its address: nothing of it is secret.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone

from agents import tokens
from agents.errors import FormUsed, TokenRefused
from agents.models import Token, TokenScope
from agents.models.token import FOR_AGENTS
from approvals.models import Policy
from approvals.policy import step_up
from approvals.presentation.gate_facts.step_up import asked as password
from approvals.views.access import private_get, private_post, reader_of
from checkpoints import actors
from checkpoints.access.permissions import START_RUN, own_teams, say_missing_permission, teams_where
from checkpoints.models import Plan
from checkpoints.postgresql.sql import make_storable

DAYS = 90  # the default lifetime of a new token
SHOWN = 100  # the newest ones


@private_get
def page(request: HttpRequest) -> HttpResponse:
    """Show all of the reader's tokens."""
    return show(request, typed=typed_in(request.GET) if request.GET else None)


@private_post
def create(request: HttpRequest) -> HttpResponse:
    """Make a token, and show it; 422 with the input where it is refused."""
    reader, form = reader_of(request), request.POST
    try:
        wanted = asked(reader, form)
        tokens.check(**wanted)
        if not step_up.counts(step_up.of_session(request), by=reader, now=timezone.now()):
            return _redirect_to_confirmation(reader, form)
        made, sent = tokens.issue(**wanted, form=_key(form), by=actors.of_user(reader))
    except FormUsed as refused:
        return show(request, refused=str(refused), status=409)
    except TokenRefused as refused:
        return show(request, typed=typed_in(form), refused=str(refused), status=422)
    return show(request, new_token=made, sent=sent)


@private_post
def revoke(request: HttpRequest, token: int) -> HttpResponse:
    """Revoke the token. Nothing happens if it is already revoked."""
    reader = reader_of(request)
    tokens.revoke(get_object_or_404(Token, user=reader, pk=token), by=actors.of_user(reader))
    return redirect("tokens")


def asked(reader: User, form: QueryDict) -> dict[str, Any]:
    """Return the input, for `issue`. Raises TokenRefused."""
    days, agent = form.get("days", ""), ""
    if form.get("whose") == "agent":
        agent = make_storable(form.get("agent", "").strip())
        if not agent:
            raise TokenRefused("Name the agent that the token is for.")
    return {
        "owner": reader,
        "name": make_storable(form.get("name", "")),
        "scopes": [make_storable(scope) for scope in form.getlist("scopes")],
        "lasts": timedelta(days=int(days) if re.fullmatch("[0-9]{1,4}", days) else 0),
        "team": _team(reader, form.get("team", "")),
        "agent": agent,
        "policy": make_storable(form.get("policy", "").strip()) if agent else "",
    }


def typed_in(form: QueryDict) -> dict[str, Any]:
    """Return the input for the form to show again."""
    texts = {
        name: make_storable(form.get(name, ""))[:200] for name in ("name", "whose", "agent", "policy", "team", "days")
    }
    return {**texts, "scopes": [scope for scope in form.getlist("scopes") if scope in TokenScope.values]}


def show(
    request: HttpRequest, *, typed: Mapping[str, Any] | None = None, refused: str = "", status: int = 200,
    new_token: Token | None = None, sent: str = "",
) -> HttpResponse:  # fmt: skip
    """Show the page, with a token that was just made."""
    reader = reader_of(request)
    startable = list(teams_where(reader, START_RUN).order_by("name"))
    own = list(own_teams(reader).order_by("name"))
    seen = Plan.objects.of_teams([team.pk for team in startable])
    stored = seen.order_by("agent").values_list("agent", flat=True).distinct()
    policies = Policy.objects.filter(team__in=startable)
    mine = Token.objects.filter(user=reader).with_state().select_related("team").order_by("-pk")
    context = {
        "tokens": list(mine[:SHOWN]), "made": new_token, "sent": sent, "refused": refused,
        "typed": typed or {"whose": "own", "days": DAYS, "scopes": []},
        "scopes": [(scope, scope in FOR_AGENTS) for scope in TokenScope],
        "policies": list(policies.order_by("name").values_list("name", flat=True).distinct()),
        "key": secrets.token_hex(16), "password": password(reader, step_up.of_session(request)),
        "own_teams": own, "startable": startable, "agents": list(stored) if startable else [],
        "no_agents": "" if startable else say_missing_permission(reader, START_RUN),
        "longest": tokens.LONGEST.days, "section": "tokens",
    }  # fmt: skip
    return render(request, "tokens/page.html", context, status=status)


def _redirect_to_confirmation(reader: User, form: QueryDict) -> HttpResponse:
    """Redirect to the confirmation, then back to the form. Raises TokenRefused for an account that cannot confirm."""
    if not step_up.possible(reader):
        raise TokenRefused(
            "Your account has nothing to confirm with. Add a passkey to it, or ask an administrator for a password."
        )
    back = reverse("tokens") + "?" + urlencode(typed_in(form), doseq=True) + "#make"
    return HttpResponseRedirect(step_up.address(back), status=303)


def _key(form: QueryDict) -> str:
    """Return the key that identifies the form. Raises TokenRefused if there is none."""
    found = form.get("key", "")
    if not re.fullmatch("[0-9a-f]{32}", found):
        raise TokenRefused("The form has no key. Send it from this page.")
    return found


def _team(reader: User, typed: str) -> Group | None:
    """Return the chosen team, or None. Raises TokenRefused for one that the reader is not in."""
    if not typed:
        return None
    found = own_teams(reader).filter(pk=typed if re.fullmatch("[0-9]{1,9}", typed) else 0).first()
    if found is None:
        raise TokenRefused("Choose a team that you belong to.")
    return found
