"""Access of open pages: the people of their sessions, their teams, and the watched subjects that they may see.

Checked at a socket's start, at each of its messages and at every heartbeat, for many sockets at once: a thousand of
them ask seventy times a second, and one by one that would be most of a processor's time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from approvals.accounts import required
from approvals.models import Gate, gate
from approvals.sessions import SessionStore, digest_of_key, is_key
from checkpoints.access.permissions import DECIDE_GATE, NAMED, VIEW_RUN, Ways, shown_in, teams_of
from checkpoints.models import Run, run

_WATCHED: dict[str, tuple[type[Run | Gate], Ways]] = {"run": (Run, run.WAYS), "gate": (Gate, gate.WAYS)}


# The groups of what is lent: all that a team reviews, or of that the gates of one team, under one policy, or both; and
# those of who lends it and of the team by which they have it, which hear when that may end. Likewise of who is named by
# a policy. See `facts.audience`.
_WITHIN = """LEFT JOIN unnest(lent.teams) gates (team) ON true
LEFT JOIN unnest(lent.policies) policy (name) ON true WHERE lent.delegate_id = auth_user.id"""
_LENT = f"""ARRAY(
SELECT unnest(ARRAY[
  concat('lends.', lent.person_id), concat('lent.', lent.team_id),
  CASE WHEN gates.team IS NULL AND policy.name IS NULL THEN concat('reviewers.', lent.team_id)
    ELSE concat('lent.', lent.team_id, '.', gates.team, '.', policy.name) END])
FROM approvals_lent lent {_WITHIN}
UNION SELECT unnest(ARRAY[concat('lends.', lent.person_id),
  CASE WHEN gates.team IS NULL AND policy.name IS NULL THEN concat('named.', lent.person_id)
    ELSE concat('named.', lent.person_id, '.', gates.team, '.', policy.name) END])
FROM approvals_lending lent {_WITHIN})"""  # noqa: S608 - constants


@dataclass(frozen=True)
class Access:
    """A signed-in person and the groups whose facts they hear."""

    user: User
    teams: frozenset[int]  # whose runs they may see
    groups: frozenset[str]  # "team.3", "reviewers.4", "named.5": a person whom a policy names; see _LENT
    watched: frozenset[str] = frozenset()  # the watched subjects that they may see: "run.7", "gate.42"

    @property
    def joins(self) -> frozenset[str]:
        """All groups whose facts their page is told, as they happen and after a pause alike."""
        return self.groups | self.watched | {f"user.{self.user.pk}"}


class WatchedPage(NamedTuple):
    """A page: the key of its session and the subjects it watches, "run:7", "gate:42"; others are no subjects."""

    session_key: str | None
    subjects: frozenset[str] = frozenset()


def accesses(asked: Collection[WatchedPage]) -> list[Access | None]:
    """Return each page's access now; None where the session ended, its account is off, or a second factor lacks.

    Pages that are not signed in ask too, with a cookie of any content, which must not raise: an error reaches all who
    asked in the same batch. PostgreSQL takes no NUL in a text.
    """
    people = _signed_in({key for each in asked if (key := each.session_key) and is_key(key)})
    teams = teams_of({user.pk for user in people.values()}, VIEW_RUN, DECIDE_GATE, NAMED)
    shown = {name: through for kind in _WATCHED for name, through in _shown(kind, asked).items()}
    return [_access(each, people.get(each.session_key or ""), teams, shown) for each in asked]


def access_of(session_key: str | None) -> Access | None:
    """Return the access of one session's pages."""
    return accesses([WatchedPage(session_key)])[0]


def access_as(user: User) -> Access:
    """Return the access of a token's owner, before the token's scope is applied."""
    known = _people([user.pk]).first()
    lent = known.lent if known else []
    return _heard(user, teams_of({user.pk}, VIEW_RUN, DECIDE_GATE), lent)


def _access(
    asked: WatchedPage,
    user: User | None,
    teams: Mapping[tuple[int, str], frozenset[int]],
    shown: Mapping[str, Set[tuple[str, int]]],
) -> Access | None:
    if user is None:
        return None
    names = {f"{kind}.{pk}" for kind in _WATCHED for pk in _numbers(kind, [asked])}
    watched = {name for name in names if any(team in teams[user.pk, needs] for needs, team in shown.get(name, ()))}
    return replace(_heard(user, teams, getattr(user, "lent", ())), watched=frozenset(watched))


def _heard(user: User, teams: Mapping[tuple[int, str], frozenset[int]], lent: Iterable[str]) -> Access:
    sees, decides = teams[user.pk, VIEW_RUN], teams[user.pk, DECIDE_GATE]
    groups = {f"team.{team}" for team in sees} | {f"reviewers.{team}" for team in decides} | {f"named.{user.pk}"}
    return Access(user, sees, frozenset(groups.union(lent)))


def _signed_in(keys: Collection[str]) -> dict[str, User]:
    """Find the person signed in by each of these sessions, as django.contrib.auth.get_user does, for many at once."""
    by_stored, store = {digest_of_key(key): key for key in keys}, SessionStore()
    found = Session.objects.filter(session_key__in=by_stored, expire_date__gt=timezone.now())
    said = {by_stored[session.session_key]: store.decode(session.session_data) for session in found}
    ids = {str(each.get(SESSION_KEY)) for each in said.values()}
    numbers = [id for id in ids if id.isascii() and id.isdigit()]
    users = {str(user.pk): user for user in _people(numbers)}
    owners = {key: users.get(str(each.get(SESSION_KEY))) for key, each in said.items()}
    found_out = {key: user for key, user in owners.items() if user and user.is_active and _verified(said[key], user)}
    return {key: user for key, user in found_out.items() if required.met(said[key]) or not required.of_whom(user)}


def _people(numbers: Collection[str | int]) -> QuerySet[Any]:
    """Select people with `lent`: the groups of the gates that they decide for somebody who is away."""
    return User.objects.filter(pk__in=numbers).annotate(**{"lent": RawSQL(_LENT, [])})  # noqa: S611 - constants


def _verified(session: Mapping[str, Any], user: User) -> bool:
    """Tell whether the session was made by a backend still in use, for the password that the account has now."""
    if session.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return False
    said = session.get(HASH_SESSION_KEY) or ""
    hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(said, each) for each in hashes)


def _shown(kind: str, asked: Iterable[WatchedPage]) -> dict[str, set[tuple[str, int]]]:
    rows, ways = _WATCHED[kind]
    numbers = _numbers(kind, asked)
    found = shown_in(rows.objects.filter(pk__in=numbers), ways) if numbers else {}
    return {f"{kind}.{pk}": through for pk, through in found.items()}


def _numbers(kind: str, asked: Iterable[WatchedPage]) -> set[int]:
    named = (subject.partition(":") for each in asked for subject in each.subjects)
    return {int(n) for name, _, n in named if name == kind and n.isascii() and n.isdigit() and len(n) < 19}
