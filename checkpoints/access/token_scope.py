"""The bounds of a request that carries a token instead of a session: never wider than the token's owner may reach.

The bounds go with the person (`user.bounds`), so that every question about who may see what heeds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Bounds:
    """`team` is a group's id, None for all of the person's teams; `agent` an agent's name, "" for all."""

    team: int | None = None
    agent: str = ""

    def take_in(self, *, team: int, agent: str) -> bool:
        """Tell whether what belongs to this team and agent lies within these bounds."""
        return self.team in (None, team) and self.agent in ("", agent)


EVERYTHING = Bounds()


def of(user: Any) -> Bounds:
    """Return the bounds of this user, or of the token that they use."""
    return getattr(user, "bounds", EVERYTHING)
