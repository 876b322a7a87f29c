"""Errors and refusals. `message` is the sentence that a person reads unless another is given: it says what to do."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from django.template.defaultfilters import filesizeformat

from approvals.preflight import RED, Preflight

# The HTTP statuses of refused decisions, by code; any other is 409.
STATUSES = {
    "not_allowed": 403, "not_confirmed": 403, "token_not_allowed": 403, "invalid": 422, "edit_refused": 422,
    "needs_confirmation": 422, "second_look": 422,
}  # fmt: skip


class Problem(TypedDict):
    """One fault of a submission."""

    action: str  # the action's id; empty where the fault is not in an action
    pointer: str  # JSON Pointer within the action's arguments
    at: str  # JSON Pointer within the state; empty where there is none
    part: str  # of what was said about the action: verdict, reason, response; empty: its arguments
    message: str


def make_problem(message: str, *, action: str = "", pointer: str = "", at: str = "", part: str = "") -> Problem:
    """Return one fault, with the places that are known."""
    return {"action": action, "pointer": pointer, "at": at, "part": part, "message": str(message)}


class Refused(Exception):
    """Something that was not done."""

    message: str = ""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.message)


class DecisionRefused(Refused):
    """A decision that was not recorded."""

    message = "The decision was not recorded; look at the gate again."
    code = "refused"

    def facts(self) -> dict[str, Any]:
        """Return what the refusal's event keeps: never personal text."""
        return {}


class NotAllowed(DecisionRefused):
    """A person who may not decide the gate."""

    message = "You may not decide this gate; ask one of its reviewers."
    code = "not_allowed"


class NotConfirmed(DecisionRefused):
    """A policy that asks people to confirm who they are, by a person who did not."""

    message = (
        "This gate's policy asks you to confirm who you are: open the gate's page and confirm it there as you decide."
    )
    by_passkey = (
        "This gate's policy asks for your passkey: open the gate's page and confirm with it there as you decide."
    )
    code = "not_confirmed"

    def __init__(self, asked: str = "") -> None:
        super().__init__(self.by_passkey if asked == "passkey" else "")


class TokenMayNotDecide(DecisionRefused):
    """A decision by a token, which the policy does not take."""

    message = (
        "This gate's policy takes no decisions by token: decide on the gate's page. An administrator can allow tokens "
        "in the next version of the policy, which counts for later gates."
    )
    code = "token_not_allowed"


class SecondLookNeeded(DecisionRefused):
    """An approval that needs a second look, without one: `words` say why, with the streak of approvals before it."""

    code = "second_look"

    def __init__(self, words: str, count: int = 0, seconds: int = 0) -> None:
        super().__init__(f"{words} Look once more, tick that you did, and send again.")
        self.count, self.seconds = count, seconds

    def facts(self) -> dict[str, Any]:
        return {"streak": self.count, "seconds": self.seconds}


class QuotaReached(Exception):
    """The file was not kept: its person's files may take no more. Says how much there is, and what to do."""

    def __init__(self, used: int, size: int, most: int) -> None:
        super().__init__(
            f"This file has {filesizeformat(size)}. Your files at gates and runs that are still open take "
            f"{filesizeformat(used)}, and may take {filesizeformat(most)}: decide some of those gates "
            "first, or ask an administrator for more."
        )


class AlreadyDecided(DecisionRefused):
    """A gate that somebody else decided before."""

    code = "already_decided"

    def __init__(self, by: str, kind: str) -> None:
        super().__init__(f"{by} already decided this: {kind}. No decision is needed any more.")
        self.kind = kind

    def facts(self) -> dict[str, Any]:
        return {"ended": self.kind}


class StaleGate(DecisionRefused):
    """A gate whose proposal changed since the person looked."""

    message = "This gate changed after you opened it. Review the change, then decide."
    code = "stale"

    def __init__(self, changes: Sequence[dict[str, Any]], by: str, answered: str = "") -> None:
        words = f"{by} edited this gate after you opened it. Review the change, then decide."
        if answered:
            words = f"{by} answered “{answered}” after you opened it. Agree to that answer, or give another one."
        super().__init__(words if by else "")
        self.changes = list(changes)  # rows: of, pointer, kind, before, after
        self.answered = answered  # the label of what they answered; "" where they edited


class GateExpired(DecisionRefused):
    """A gate whose deadline has passed."""

    message = "The deadline has passed. Decisions no longer count."
    code = "expired"


class GateWithdrawn(DecisionRefused):
    """A gate that was withdrawn."""

    message = "The gate was withdrawn. No decision is needed."
    code = "withdrawn"

    def __init__(self, reason: str = "") -> None:
        super().__init__(f"The gate was withdrawn: {reason}" if reason else "")


class NotVerifiable(DecisionRefused):
    """Stored data that does not verify."""

    message = "The stored data failed its integrity check, so no decision is possible. Ask an administrator."
    code = "not_verified"


class CannotResume(DecisionRefused):
    """A run that could not go on from here, so that nothing is decided over it."""

    code = "cannot_resume"
    instead = "Nobody can decide until this is fixed. You can cancel the run instead; that needs no agent code."

    def __init__(self, preflight: Preflight) -> None:
        red = [finding for finding in preflight.findings if finding.colour == RED]
        super().__init__(" ".join([*(finding.words for finding in red), self.instead]))
        self.checks = [finding.check for finding in red]

    def facts(self) -> dict[str, Any]:
        return {"checks": self.checks}


class AlreadySaid(DecisionRefused):
    """A second vote of one person."""

    message = "You already approved this; another person must approve too."
    rejected = "You already rejected this. Approve it if you changed your mind."
    code = "already_said"


class SaidInTheirName(AlreadySaid):
    """A second vote by the authority of one person: their own, and their delegate's."""

    def __init__(self, name: str, *, rejects: bool) -> None:
        did, must = ("rejected", "reject") if rejects else ("approved", "approve")
        super().__init__(f"{name} already {did} this by the same authority; another person must {must} too.")


class UndoRefused(DecisionRefused):
    """A decision that cannot be taken back."""


class NothingToUndo(UndoRefused):
    """A person without a decision that counts, or one that is not the one named."""

    message = "You have no decision here that counts, so there is nothing to undo."
    code = "nothing_to_undo"


class NoUndo(UndoRefused):
    """A gate whose policy gives no undo window."""

    message = "This gate's policy gives no time to undo a decision."
    code = "no_undo"


class UndoTooLate(UndoRefused):
    """A gate that closed before the decision was taken back."""

    code = "too_late"

    def __init__(self, at: str, how: str) -> None:
        super().__init__(f"This gate closed at {at} UTC: {how}. It is too late to undo: its effects may have begun.")


class Rejected(DecisionRefused):
    """A decision with faults, each named in `errors`."""

    message = "The decision is not valid. Correct the marked fields."
    code = "invalid"

    def __init__(self, errors: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{e['pointer'] or e['at']}: {e['message']}".lstrip(": ") for e in errors))
        self.errors = list(errors)

    def facts(self) -> dict[str, Any]:
        return {"pointers": sorted({e["at"] or e["pointer"] for e in self.errors})}


class EditRefused(Rejected):
    """An edit of what the gate does not offer."""

    message = "The edit changes fields that this gate does not let you edit. Change only those that it offers."
    code = "edit_refused"


class Invalid(Rejected):
    """A value that does not hold."""

    message = "A value is not valid. Correct the marked fields."
    code = "invalid"


class CardRefused(ValueError):
    """The gate's card cannot be shown as it is; correct the agent's gate step."""


@dataclass(frozen=True)
class ToolFault:
    """One place of an action that does not fit its registered tool."""

    number: int  # of the action in the card, from 0
    pointer: str  # within the action
    message: str

    def words(self) -> str:
        """Name the action and what is wrong with it."""
        return f"action {self.number + 1}{self.pointer}: {self.message}"


class ToolRefused(CardRefused):
    """The gate does not fit the registered tools; correct the agent, or have the tool registered."""

    instead = "Ask for what is registered, or have the tool changed in the administration, and try again"

    def __init__(self, faults: Sequence[ToolFault]) -> None:
        words = "; ".join(fault.words() for fault in faults)
        super().__init__(f"{words}. {self.instead}.")
        self.faults = list(faults)


class NotRegistered(ToolRefused):
    """The policy takes registered tools only, and this tool is not registered."""

    instead = "Have it registered in the administration, and try again"


class ToolMismatch(ToolRefused):
    """An action does not fit its registered tool."""


class NoSuchPolicy(CardRefused):
    """The run's team has no policy of the name that the gate's step gives; have it made, and try again."""

    def __init__(self, name: str, team: str, others: Sequence[str]) -> None:
        use = ", which a gate without a policy of its own uses" if name == "default" else ""
        super().__init__(
            f"{team} has no policy {name}{use}; it has {', '.join(others)}. Name one of these, or make {name} in the "
            "administration, and try again."
        )


class UnprovenPolicy(NoSuchPolicy):
    """No proven event tells of a version: it was written into the database past Holdpoint."""

    def __init__(self, name: str, version: int, team: str) -> None:
        words = (
            f"Version {version} of {team}'s policy {name} is not vouched for by its event: it was written "
            "past Holdpoint, or by a release that is being replaced. Look at it in the administration, "
            "save it as it should be, and try again."
        )
        Exception.__init__(self, words)


class AskedTooOften(Exception):
    """The agent asks more than its policy lets it, until `until`, in `seconds`; `why` says so to people.

    A model takes "ask again after 23:50" for an order, and asks until somebody says yes: it is told what to do instead,
    as by the clients, and the time as a fact.
    """

    code = "too_many_gates"
    instead = (
        "Do not do it another way. Do not ask for it again unasked: go on without it, or tell the person and ask what "
        "they want."
    )

    def __init__(self, agent: str, most: int, policy: str, *, now: dt.datetime, until: dt.datetime) -> None:
        self._wait(f"{agent} has asked {most} gates within an hour, and the policy {policy} allows no more", now, until)

    def _wait(self, why: str, now: dt.datetime, until: dt.datetime) -> None:
        self.until, self.seconds = until, max(int((until - now).total_seconds()) + 1, 1)
        self.why = f"{why}, until {until:%H:%M:%S} UTC."
        super().__init__(f"{why}. {self.instead} This holds until {until:%H:%M:%S} UTC.")


class AskedTooSoon(AskedTooOften):
    """The same was rejected more than once, and is not asked about until `until`, in `seconds`."""

    code = "rejected_before"

    def __init__(self, gate: int, times: int, *, now: dt.datetime, until: dt.datetime) -> None:
        words = f"The same was rejected {times} times, the last time at gate {gate}, and people are not asked about it"
        self._wait(words, now, until)
