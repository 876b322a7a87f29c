"""What one open page may hear: read from the database at the socket's start and at every heartbeat."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest

from checkpoints import cursor
from checkpoints.cursor import Cursor
from checkpoints.models import Event, Run
from checkpoints.permissions import teams_where

from .models import Gate
from .presentation.facts import Fact, audience, fact_of

REPLAYED = 500


@dataclass(frozen=True)
class Access:
    """A signed-in person and the groups whose facts they hear."""

    user: User
    teams: frozenset[int]
    groups: set[str]


def access_of(session_key: str | None) -> Access | None:
    """Who the session belongs to and what they may hear now; None where it ended or its account is off."""
    if not session_key:
        return None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    if not isinstance(user, User) or not user.is_active:
        return None
    teams = frozenset(teams_where(user, "checkpoints.view_run").values_list("pk", flat=True))
    reviews = teams_where(user, "approvals.decide_gate").values_list("pk", flat=True)
    return Access(user, teams, {f"team.{team}" for team in teams} | {f"reviewers.{group}" for group in reviews})


def watchable(access: Access, subjects: Iterable[str]) -> set[str]:
    """Those of the subjects ("run:7", "gate:42") that this person may see, as groups."""
    wanted: dict[str, set[int]] = {"run": set(), "gate": set()}
    for subject in subjects:
        kind, _, number = subject.partition(":")
        if kind in wanted and number.isascii() and number.isdigit() and len(number) < 19:
            wanted[kind].add(int(number))
    gates = Gate.objects.visible_to(access.user).filter(pk__in=wanted["gate"]).values_list("pk", flat=True)
    runs = Run.objects.visible_to(access.user).filter(pk__in=wanted["run"]).values_list("pk", flat=True)
    return {f"gate.{pk}" for pk in gates} | {f"run.{pk}" for pk in runs}


def missed(access: Access, since: Cursor) -> list[Fact] | None:
    """The facts after a cursor that this person may hear; None where more happened than is looked through singly.

    Other teams' gates count towards that limit too: what lies behind them was not looked at.
    """
    found = cursor.beyond(cursor.settled(), since).filter(Q(team_id__in=access.teams) | Q(kind__startswith="gate."))
    events = list(found[: REPLAYED + 1])
    if len(events) > REPLAYED:
        return None
    heard = [event for event in events if event.team_id in access.teams or access.groups.intersection(audience(event))]
    titles = titles_of(heard)
    return [fact_of(event, titles) for event in heard]


def titles_of(events: Iterable[Event]) -> dict[str, str]:
    """The titles of the gates that these events are about, by subject: one query, none where there is no gate."""
    gates = {int(event.subject[5:]) for event in events if event.subject.startswith("gate:")}
    found = Gate.objects.filter(pk__in=gates).values_list("pk", "title") if gates else ()
    return {f"gate:{pk}": title for pk, title in found}
