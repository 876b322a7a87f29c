"""Who asks: a signed-in person by the session's cookie, or whoever owns the bearer token that is sent.

Each operation names the scope that a token needs for it; a session needs none, because it can do what the pages can.
A token opens nothing that its owner may not do: the same rules are asked, for a person who reaches no further than the
token. Where a token is sent the cookie is not looked at.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import HttpBearer, SessionAuth

from agents import tokens
from agents.errors import TokenNotAllowed
from agents.models import Token, TokenScope
from agents.queries.access import reader_of
from checkpoints import actors
from checkpoints.actors import Actor


class Bearer(HttpBearer):
    """Whoever owns the token, where it is for this."""

    def __init__(self, scope: TokenScope) -> None:
        super().__init__()
        self.scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> Token:
        """Return the token, and its owner as `request.user`. Raises AuthenticationError and TokenNotAllowed."""
        found = tokens.of(token)
        if found is None:
            raise AuthenticationError
        request.auth = found  # type: ignore[attr-defined] # counted as its request, whatever comes of it
        if not found.allows(self.scope):
            raise TokenNotAllowed(self.scope, found.scopes)
        request.user = found.user
        return found


class Session(SessionAuth):
    """Whoever signed in. Who did not is told that first, and not that the token against forged forms is missing."""

    def _get_key(self, request: HttpRequest) -> str | None:
        return super()._get_key(request) if request.user.is_authenticated else None


session = Session()


def needs(scope: TokenScope) -> list[Any]:
    """Return the ways in to an operation that a token of this scope opens."""
    return [Bearer(scope), session]


def token_of(request: HttpRequest) -> Token | None:
    """Return the token by which somebody came; None for one who signed in."""
    found = getattr(request, "auth", None)
    return found if isinstance(found, Token) else None


def actor_of(request: HttpRequest) -> Actor:
    """Return who acts: the agent whose token it is, or the person."""
    token = token_of(request)
    return token.actor if token else actors.of_user(reader_of(request))


def who_asks(request: HttpRequest) -> str:
    """Return by what name keys and requests are counted as theirs: of the token, or of the person."""
    token = token_of(request)
    return f"token:{token.pk}" if token else f"user:{reader_of(request).pk}"
