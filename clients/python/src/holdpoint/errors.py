"""The exceptions of this package, as one small tree. Each message says what to do; none holds the token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class HoldpointError(Exception):
    """The base of all exceptions of this package."""


class NotDone(HoldpointError):
    """Raise it if an approved action provably did not happen. `retry`: nothing was sent, trying again is safe."""

    def __init__(self, reason: str, *, retry: bool = False) -> None:
        super().__init__(reason)
        self.retry = retry


class NotConfigured(HoldpointError):
    """The address or the token is missing or malformed."""


class Unreachable(HoldpointError):
    """No usable answer came in time. The request may have been done: sent again with its key, it is not done twice."""


class BadAnswer(HoldpointError):
    """The answer is not from a Holdpoint server that this package knows."""


class Problem(HoldpointError):
    """The server refused the request: its problem document (RFC 9457)."""

    def __init__(self, status: int, document: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(document.get("code") or "")
        self.title = str(document.get("title") or "")
        self.detail = str(document.get("detail") or self.title or f"The server answered {status}.")
        errors = document.get("errors") or []
        self.errors: list[dict[str, Any]] = [dict(fault) for fault in errors if isinstance(fault, Mapping)]
        lines = [f"{fault.get('parameter')}: {fault.get('detail')}" for fault in self.errors]
        super().__init__("\n  ".join([f"{self.detail} ({status}{f' {self.code}' if self.code else ''})", *lines]))


class BadToken(Problem):
    """The token is not valid: unknown, expired, revoked, or its owner's account is off. Ask for another."""


class NotAllowed(Problem):
    """The token, or its owner, may not do this."""


class NotFound(Problem):
    """There is no such thing, or none that the token's owner may see."""


class Invalid(Problem):
    """The request's content is invalid; `errors` names each place by its JSON Pointer."""


class TooMany(Problem):
    """The server asked for fewer requests, for longer than the patience."""


class StaleToken(Problem):
    """Somebody else has claimed or moved the run: claim it again, and go on from its state then."""


class NotClaimable(Problem):
    """The run cannot be claimed now: it waits for people, or somebody has claimed it."""


class RunEnded(Problem):
    """The run has ended: nothing more is done in it."""


class OutOfTurn(Problem):
    """Another step comes next."""


class NoGrant(Problem):
    """Nobody has approved this effect, or its grant was used."""


class ReportedBefore(Problem):
    """The effect's result is known already."""


class KeyReused(Problem):
    """The key was sent before with another request: choose a new key for another request."""


class Refused(HoldpointError):
    """The action must not be done. `gate` and `run` are their numbers, `url` is the gate's page."""

    def __init__(self, message: str, *, gate: int, run: int, url: str = "", by: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.gate, self.run, self.url, self.by, self.reason = gate, run, url, by, reason


class Rejected(Refused):
    """People said no: `by` whom, and the `reason` in their words."""


class Expired(Refused):
    """Nobody decided in time. This is no rejection: a person says whether it still matters."""


class Withdrawn(Refused):
    """The gate was closed without an answer; `reason` says why."""


class Stopped(Refused):
    """The run ended otherwise: people stopped or cancelled it; `reason` says why."""


class Answered(Refused):
    """A person answered instead: use `answer` as the result."""

    def __init__(self, message: str, *, gate: int, run: int, url: str = "", by: str, answer: Any) -> None:
        super().__init__(message, gate=gate, run=run, url=url, by=by)
        self.answer = answer


class AlreadyDone(Refused):
    """It was already done, once; use `result`."""

    def __init__(self, message: str, *, gate: int, run: int, url: str = "", result: Any) -> None:
        super().__init__(message, gate=gate, run=run, url=url)
        self.result = result


class NotHandedOut(HoldpointError):
    """The server did not hand out the answer at `gate`, so it allows nothing; the message says why, and what to do."""

    def __init__(self, message: str, *, gate: int) -> None:
        super().__init__(message)
        self.gate = gate


class StillOpen(HoldpointError):
    """Nobody has decided before the timeout: resume by `gate` later. People decide at `url`."""

    def __init__(self, message: str, *, gate: int, run: int, url: str = "") -> None:
        super().__init__(message)
        self.gate, self.run, self.url = gate, run, url


class Unknown(StillOpen):
    """Nobody knows whether it happened, and people are asked at `gate`: resume later, and do not do it again."""


class ToTakeBack(HoldpointError):
    """An effect must be undone first, since people sent the run back to before it."""

    def __init__(self, message: str, *, run: int, effect: int, key: str) -> None:
        super().__init__(message)
        self.run, self.effect, self.key = run, effect, key


class Altered(HoldpointError):
    """The call differs from what people approved, so it was not done; the message says what to do."""


class NotJson(HoldpointError):
    """A value that JSON cannot hold, such as NaN: people cannot be asked about it."""


class CannotAsk(HoldpointError):
    """The calls of a framework's agent cannot be asked about: there are none, too many, or two under one id."""


class CannotResume(HoldpointError):
    """The saved state of a framework's agent cannot be resumed here; the message says what to do."""


class StateTooLarge(HoldpointError):
    """The framework's state is larger than the server keeps."""


BY_CODE: Mapping[str, type[Problem]] = {
    "stale_token": StaleToken,
    "not_claimable": NotClaimable,
    "run_ended": RunEnded,
    "out_of_turn": OutOfTurn,
    "no_grant": NoGrant,
    "reported_before": ReportedBefore,
    "key_reused": KeyReused,
}
BY_STATUS: Mapping[int, type[Problem]] = {401: BadToken, 403: NotAllowed, 404: NotFound, 422: Invalid, 429: TooMany}


def make_problem(status: int, document: Mapping[str, Any]) -> Problem:
    """Return the exception for a problem document."""
    found = BY_CODE.get(str(document.get("code"))) or BY_STATUS.get(status) or Problem
    return found(status, document)
