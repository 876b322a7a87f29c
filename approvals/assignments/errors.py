"""Refusals of claims, reassignments and times away, and of a decision over somebody's claim."""

from __future__ import annotations

from typing import Any

from approvals.errors import DecisionRefused, Refused


class ClaimedByOther(DecisionRefused):
    """A decision at a gate that somebody else is on."""

    code = "claimed"

    def __init__(self, name: str, holder: int) -> None:
        super().__init__(f"{name} has this gate and is working on it. Take it over first: they are told.")
        self.holder = holder

    def facts(self) -> dict[str, Any]:
        return {"holder": f"user:{self.holder}"}


class DeskRefused(Refused):
    """A claim, a release, a takeover or a reassignment that was not made."""

    message = "That was not possible; look at the gate again."
    code = "refused"
    status = 409


class MayNot(DeskRefused):
    """A person who may not decide the gate, or may not add reviewers."""

    code = "not_allowed"
    status = 403


class AlreadyClaimed(DeskRefused):
    """A gate that somebody else claimed first."""

    code = "claimed"

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} has this gate already. You can take it over.")


class NotClaimed(DeskRefused):
    """A claim that is not there to be released or taken over."""

    message = "Nobody has this gate now: claim it instead."
    code = "not_claimed"


class GateClosed(DeskRefused):
    """A gate that is closed, or past its deadline."""

    message = "This gate is closed."
    code = "closed"


class NotAsked(DeskRefused):
    """A reassignment to somebody who cannot act, or without a reason."""

    code = "invalid"
    status = 422


class AwayRefused(DeskRefused):
    """A time away that cannot be so."""

    code = "invalid"
    status = 422
