"""API tokens: issues them, finds the one that a request sent, and revokes them.

A token is shown once, when it is made. Only its digest is kept, so that a copy of the database holds no usable token.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from agents.models.token import FOR_AGENTS, Token, TokenScope, digest_of
from approvals.errors import NoSuchPolicy
from approvals.models import Policy
from checkpoints.access.permissions import START_RUN, own_teams, teams_where
from checkpoints.access.token_scope import TokenBounds
from checkpoints.actors import Actor
from checkpoints.events import event_log
from checkpoints.postgresql.sql import run_sql

from .errors import FormUsed, TokenRefused
from .models import Answer

PREFIX = "hp_"
LONGEST = timedelta(days=366)
SEEN = timedelta(minutes=1)  # the precision of the time at which a token was last used
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # of an agent
# In the order of the models' fields; one that is left out would be read when somebody asks for it.
_COLUMNS = ("id", "agent", "team_id", "policy", "name", "scopes", "hint", "expires_at")
_OWNER = ("id", "is_superuser", "username", "first_name", "last_name", "is_staff", "is_active")
# As TokenQuerySet.valid has it. A busy agent sends it hundreds of times a second, and its use is kept once a minute.
_FIND = f"""
SELECT {", ".join(f"t.{name}" for name in _COLUMNS)}, {", ".join(f"u.{name}" for name in _OWNER)},
  t.last_used_at IS NULL OR t.last_used_at < statement_timestamp() - interval '1 minute'
FROM agents_token t JOIN auth_user u ON u.id = t.user_id
WHERE t.digest = $1 AND t.revoked_at IS NULL AND t.expires_at > statement_timestamp() AND u.is_active
"""  # noqa: S608 - constants


def issue(
    *,
    owner: User,
    name: str,
    scopes: Collection[str],
    lasts: timedelta,
    team: Group | None = None,
    agent: str = "",
    policy: str = "",
    form: str = "",
    by: Actor,
) -> tuple[Token, str]:
    """Make a token, with its event; return the row and the token itself, which is not kept.

    With `agent` it is that agent's: it is limited to one team, in which its owner may start runs, and with `policy` to
    gates under that policy. `form` is the id of the form that was sent, which makes only one token. Raises TokenRefused
    and FormUsed.
    """
    check(owner=owner, name=name, scopes=scopes, lasts=lasts, team=team, agent=agent, policy=policy)
    sent = PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        own: dict[str, Any] = {"who": f"user:{owner.pk}", "key": f"form {form}"}
        if form and not Answer.objects.get_or_create(**own, request=b"")[1]:
            raise FormUsed(str(FormUsed.sentence))
        made = Token.objects.create(
            user=owner, name=name.strip()[:100], scopes=sorted(scopes), team=team, agent=agent, policy=policy,
            digest=digest_of(sent), hint=sent[:8], expires_at=timezone.now() + lasts,
        )  # fmt: skip
        data = {"scopes": made.scopes, "agent": agent, "policy": policy, "owner": f"user:{owner.pk}"}
        event_log.record("token.created", subject=made.subject, by=by, team_id=team.pk if team else None, data=data)
    return made, sent


def revoke(token: Token, *, by: Actor) -> bool:
    """Revoke the token, with its event; False where it was revoked before."""
    with transaction.atomic():
        left = Token.objects.filter(pk=token.pk, revoked_at__isnull=True)
        if not left.update(revoked_at=Now(), revoked_by=by.id):
            return False
        event_log.record("token.revoked", subject=token.subject, by=by, team_id=token.team_id)
    return True


def find_token(sent: str) -> Token | None:
    """Return the row of a valid token, with its owner limited to the token's bounds; None if it is not valid."""
    if not sent.startswith(PREFIX) or len(sent) > 100:
        return None
    found = run_sql(_FIND, [digest_of(sent)])
    if not found:
        return None
    *columns, unused = found[0]
    token = Token.from_db(connection.alias, _COLUMNS, columns[: len(_COLUMNS)])
    owner: Any = User.from_db(connection.alias, _OWNER, columns[len(_COLUMNS) :])
    owner.bounds = TokenBounds(token.team_id, token.agent)
    token.user = owner
    if unused:
        stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=Now() - SEEN)
        Token.objects.filter(stale, pk=token.pk).update(last_used_at=Now())
    return token


def check(
    *, owner: User, name: str, scopes: Collection[str], lasts: timedelta, team: Group | None = None, agent: str = "",
    policy: str = "",
) -> None:  # fmt: skip
    """Check the arguments of `issue`. Raises TokenRefused."""
    known = [str(scope) for scope in TokenScope]
    strange = sorted(set(scopes) - set(known))
    if strange:
        raise TokenRefused(f"There are no scopes {', '.join(strange)}. A token needs scopes out of {', '.join(known)}.")
    if not scopes:
        raise TokenRefused(f"A token needs scopes out of {', '.join(known)}.")
    if not name.strip():
        raise TokenRefused("A token needs a name that says what it is for.")
    if not timedelta(0) < lasts <= LONGEST:
        raise TokenRefused(f"A token lasts between a minute and {LONGEST.days} days.")
    if not owner.is_active:
        raise TokenRefused(f"The account {owner.username} is switched off.")
    if agent:
        _check_agent(owner, scopes, team, agent, policy)
    elif policy:
        raise TokenRefused("Only an agent's token can be limited to a policy.")
    elif team is not None and not own_teams(owner).filter(pk=team.pk).exists():
        raise TokenRefused(f"{owner.username} is not in the team {team.name}.")


def _check_agent(owner: User, scopes: Collection[str], team: Group | None, agent: str, policy: str) -> None:
    beyond = sorted(set(scopes) - {str(scope) for scope in FOR_AGENTS})
    if beyond:
        raise TokenRefused(f"An agent's token cannot have {', '.join(beyond)}: only people decide.")
    if not NAME.fullmatch(agent):
        raise TokenRefused("An agent's name has only plain letters, digits, . _ - and at most 100 characters.")
    if team is None or not teams_where(owner, START_RUN).filter(pk=team.pk).exists():
        raise TokenRefused(f"An agent's token needs a team in which {owner.username} may start runs.")
    if policy:
        try:
            Policy.objects.expect(policy, team=team, exact=True)
        except NoSuchPolicy as error:
            raise TokenRefused(str(error)) from error
