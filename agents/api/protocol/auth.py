"""Authentication: a signed-in person by the session's cookie, or the owner of a bearer token.

Each operation names the scope that a token needs for it; a session needs none, because it can do what the pages can.
A token opens nothing that its owner may not do: the same rules apply, for a person who reaches no further than the
token. If a token is sent, the cookie is ignored.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import HttpBearer, SessionAuth

from agents import tokens
from agents.models import Token, TokenScope
from agents.work_errors import OwnerLacksFactor, TokenNotAllowed
from approvals.accounts import required
from approvals.policy import step_up
from approvals.views.access import reader_of
from checkpoints import actors
from checkpoints.actors import Actor


class Bearer(HttpBearer):
    """Authentication by a token that has the scope; without one by any valid token, for what it does to itself."""

    def __init__(self, scope: TokenScope | None) -> None:
        super().__init__()
        self.scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> Token:
        """Return the token, and its owner as `request.user`.

        Raises AuthenticationError; where a scope is needed TokenNotAllowed, and OwnerLacksFactor for a person's own
        token.
        """
        found = tokens.find_token(token)
        if found is None:
            raise AuthenticationError
        request.auth = found  # type: ignore[attr-defined] # counted as its request, whatever comes of it
        if self.scope and not found.allows(self.scope):
            raise TokenNotAllowed(self.scope, found.scopes)
        if self.scope and not found.agent and required.has_none(found.user):
            raise OwnerLacksFactor
        request.user = found.user
        return found


class Session(SessionAuth):
    """Authentication by the session. Without one the answer is 401, before any complaint about a missing CSRF token."""

    def _get_key(self, request: HttpRequest) -> str | None:
        return super()._get_key(request) if request.user.is_authenticated else None


session = Session()


def require_scope(scope: TokenScope) -> list[Any]:
    """Return the ways to authenticate for an operation that needs this scope."""
    return [Bearer(scope), session]


def token_of(request: HttpRequest) -> Token | None:
    """Return the token that the request came with; None for a signed-in person."""
    found = getattr(request, "auth", None)
    return found if isinstance(found, Token) else None


def actor_of(request: HttpRequest) -> Actor:
    """Return the actor: the agent whose token it is, or the person."""
    token = token_of(request)
    return token.actor if token else actors.of_user(reader_of(request))


def who_asks(request: HttpRequest) -> str:
    """Return the name under which requests are counted and keys stored: the token's or the person's."""
    token = token_of(request)
    return f"token:{token.pk}" if token else f"user:{reader_of(request).pk}"


def confirmation_of(request: HttpRequest) -> step_up.Confirmed | None:
    """Return what the session's person confirmed; None for a token, even if a cookie comes with it."""
    return step_up.of_session(request) if isinstance(getattr(request, "auth", None), User) else None
