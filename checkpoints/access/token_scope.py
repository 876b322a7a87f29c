"""The bounds of a request that carries a token instead of a session: never wider than the token owner's access.

The bounds are an attribute of the user (`user.bounds`), so that every check of permissions applies them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import QuerySet

Rows = TypeVar("Rows", bound=QuerySet[Any, Any])


@dataclass(frozen=True, slots=True)
class TokenBounds:
    """`team` is a group's id, None for all of the person's teams; `agent` an agent's name, "" for all."""

    team: int | None = None
    agent: str = ""

    def take_in(self, *, team: int, agent: str) -> bool:
        """Tell whether what belongs to this team and agent lies within these bounds."""
        return self.team in (None, team) and self.agent in ("", agent)

    def narrow(self, rows: Rows, **ways: str) -> Rows:
        """Keep the rows within these bounds; `team` and `agent` lead from a row to its team's id, its agent's name."""
        bounds = {way: getattr(self, name) for name, way in ways.items()}
        return rows.filter(**{way: bound for way, bound in bounds.items() if bound not in (None, "")})


EVERYTHING = TokenBounds()


def by_token(user: Any) -> bool:
    """Tell whether this user came by a token instead of a session."""
    return hasattr(user, "bounds")


def bounds_of(user: Any) -> TokenBounds:
    """Return the bounds of this user, or of the token that they use."""
    return getattr(user, "bounds", EVERYTHING)
