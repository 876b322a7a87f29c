"""What open pages may hear: whose their sessions are, those people's teams, and what of the watched they may see.

Asked at a socket's start, at whatever it says and at every heartbeat, for many sockets at once: a thousand of them
ask seventy times a second, and one by one that would be most of a processor's time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from approvals.models import Gate, Policy
from approvals.sessions import SessionStore, is_key, stored
from checkpoints.access.permissions import teams_of
from checkpoints.models import Run

SEES, DECIDES = "checkpoints.view_run", "approvals.decide_gate"


@dataclass(frozen=True)
class Access:
    """A signed-in person and the groups whose facts they hear."""

    user: User
    teams: frozenset[int]  # whose runs they may see
    groups: frozenset[str]  # "team.3", "reviewers.4"
    watched: frozenset[str] = frozenset()  # of what was asked about, what they may see: "run.7", "gate.42"


class Asked(NamedTuple):
    """A page: the key of its session and the subjects it watches, "run:7", "gate:42"; others are no subjects."""

    session_key: str | None
    subjects: frozenset[str] = frozenset()


def accesses(asked: Collection[Asked]) -> list[Access | None]:
    """Return what each of these pages may hear now; None where the session ended or its account is off.

    Whoever has not signed in asks too, by a cookie that may say anything, and nothing of it may fail here: what is
    raised is raised to all who asked in the same batch. PostgreSQL takes no NUL in a text.
    """
    people = _signed_in({key for each in asked if (key := each.session_key) and is_key(key)})
    teams = teams_of({user.pk for user in people.values()}, SEES, DECIDES)
    gates, runs = _gates(asked), _runs(asked)
    return [_access(each, people.get(each.session_key or ""), teams, gates, runs) for each in asked]


def access_of(session_key: str | None) -> Access | None:
    """Return what the pages of one session may hear."""
    return accesses([Asked(session_key)])[0]


def access_as(user: User) -> Access:
    """Return what the person behind a token may hear, before the token's scope is applied."""
    return _heard(user, teams_of({user.pk}, SEES, DECIDES))


class _Watched(NamedTuple):
    """Whose a gate is: its team, and the groups that review it, or one that it replaces, for the team."""

    team: int
    reviewers: frozenset[int]


def _access(
    asked: Asked,
    user: User | None,
    teams: Mapping[tuple[int, str], frozenset[int]],
    gates: Mapping[int, _Watched],
    runs: Mapping[int, int],
) -> Access | None:
    if user is None:
        return None
    sees, decides = teams[user.pk, SEES], teams[user.pk, DECIDES]
    watched = {f"run.{pk}" for pk in _numbers("run", asked.subjects) if runs.get(pk) in sees}
    for pk in _numbers("gate", asked.subjects):
        gate = gates.get(pk)
        if gate and (gate.team in sees or not decides.isdisjoint(gate.reviewers)):
            watched.add(f"gate.{pk}")
    return replace(_heard(user, teams), watched=frozenset(watched))


def _heard(user: User, teams: Mapping[tuple[int, str], frozenset[int]]) -> Access:
    sees, decides = teams[user.pk, SEES], teams[user.pk, DECIDES]
    groups = {f"team.{team}" for team in sees} | {f"reviewers.{team}" for team in decides}
    return Access(user, sees, frozenset(groups))


def _signed_in(keys: Collection[str]) -> dict[str, User]:
    """Find who is signed in by each of these sessions; the rule of django.contrib.auth.get_user for many at once."""
    by_stored, store = {stored(key): key for key in keys}, SessionStore()
    found = Session.objects.filter(session_key__in=by_stored, expire_date__gt=timezone.now())
    said = {by_stored[session.session_key]: store.decode(session.session_data) for session in found}
    ids = {str(each.get(SESSION_KEY)) for each in said.values()}
    numbers = [id for id in ids if id.isascii() and id.isdigit()]
    users = {str(user.pk): user for user in User.objects.filter(pk__in=numbers)}
    owners = {key: users.get(str(each.get(SESSION_KEY))) for key, each in said.items()}
    return {key: user for key, user in owners.items() if user and user.is_active and _verified(said[key], user)}


def _verified(session: Mapping[str, Any], user: User) -> bool:
    """Tell whether the session was made by a backend still in use, for the password that the account has now."""
    if session.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return False
    said = session.get(HASH_SESSION_KEY) or ""
    hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(said, each) for each in hashes)


def _gates(asked: Iterable[Asked]) -> dict[int, _Watched]:
    numbers = {pk for each in asked for pk in _numbers("gate", each.subjects)}
    if not numbers:
        return {}
    found = Gate.objects.filter(pk__in=numbers).values_list("pk", "team_id", "policy_id", "replaces__policy_id")
    teams: dict[int, int] = {}
    policies: dict[int, set[int]] = {}
    for pk, team, policy, replaced in found:
        teams[pk] = team
        policies.setdefault(pk, {policy}).update([replaced] if replaced else [])
    reviewers: dict[int, set[int]] = {}
    links = Policy.groups.through.objects.filter(policy_id__in=set().union(*policies.values()))
    for policy, group in links.values_list("policy_id", "group_id"):
        reviewers.setdefault(policy, set()).add(group)
    return {
        pk: _Watched(team, frozenset().union(*(reviewers.get(policy, {team}) for policy in policies[pk])))
        for pk, team in teams.items()
    }


def _runs(asked: Iterable[Asked]) -> dict[int, int]:
    numbers = {pk for each in asked for pk in _numbers("run", each.subjects)}
    return dict(Run.objects.filter(pk__in=numbers).values_list("pk", "team_id")) if numbers else {}


def _numbers(kind: str, subjects: Iterable[str]) -> set[int]:
    named = (subject.partition(":") for subject in subjects)
    return {int(n) for name, _, n in named if name == kind and n.isascii() and n.isdigit() and len(n) < 19}
