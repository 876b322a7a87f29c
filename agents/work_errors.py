"""Refusals that programs are told: agents outside, and whoever calls the API for a run.

Docstrings are the messages, unless another is given. `code` names the reason for programs; `status` is the HTTP status
of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from approvals.errors import AskedTooOften

from .errors import MOST, AgentError, FieldError, InputRefused, join_faults


class TokenNotAllowed(AgentError):
    """A token lacks the scope for the request; the sentence names it."""

    def __init__(self, scope: str, scopes: Sequence[str]) -> None:
        super().__init__(f"This token is for {', '.join(scopes)}; this needs {scope}. Use a token that has that scope.")
        self.scope = scope


class OwnerLacksFactor(AgentError):
    """This token's owner needs a second factor and has none. Add one at /account/security/ and send the token again."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class PlanRefused(InputRefused):
    """The plan of an external agent cannot work; `errors` lists the faults by JSON Pointer into it."""


class WorkRefused(AgentError):
    """A request of an external program to a run was refused; the sentence says why, and what to do.

    `code` names the reason for programs; `status` is the HTTP status of the answer.
    """

    code = "refused"
    status = 409

    def __init__(self, sentence: str = "", *, gate: int | None = None, until: datetime | None = None) -> None:
        super().__init__(sentence)
        self.gate = gate  # at which the run waits
        self.until = until  # when the lease ends of whoever has the run


class StaleToken(WorkRefused):
    """This claim token is stale: another program claimed the run, or a person moved it. Claim the run again."""

    code = "stale_token"


class NotClaimable(WorkRefused):
    """The run cannot be claimed now; the sentence says what it waits for, or who has it."""

    code = "not_claimable"


class RunEnded(WorkRefused):
    """The run has ended: nothing more can be done in it."""

    code = "run_ended"


class OutOfTurn(WorkRefused):
    """Another step comes next; the sentence says which."""

    code = "out_of_turn"


class NoGrant(WorkRefused):
    """Nobody has allowed this effect, or the permission was used."""

    code = "no_grant"


class ReportedBefore(WorkRefused):
    """The effect's result is known already, and it is another one."""

    code = "reported_before"


class NotExternal(WorkRefused):
    """The run's agent lives on this server: its own workers work on it."""

    code = "not_external"


class WorkInvalid(WorkRefused):
    """The request does not fit; `errors` lists the faults by JSON Pointer into it."""

    code = "invalid"
    status = 422

    def __init__(self, errors: list[FieldError]) -> None:
        self.errors = errors[:MOST]
        super().__init__(join_faults(self.errors))

    @classmethod
    def at(cls, pointer: str, message: str) -> WorkInvalid:
        """Return the refusal for one fault."""
        return cls([FieldError(pointer=pointer, message=message)])


class TooManyGates(WorkRefused):
    """The agent may not ask now; the sentence says why, and what to do instead."""

    status = 429

    def __init__(self, full: AskedTooOften) -> None:
        super().__init__(str(full))
        self.code, self.seconds = full.code, full.seconds


class ToolNotRegistered(WorkInvalid):
    """The policy takes registered tools only, and the request names another; `errors` says which."""

    code = "tool_not_registered"


class ToolMismatched(WorkInvalid):
    """The request does not fit its registered tool; `errors` lists the faults by JSON Pointer."""

    code = "tool_mismatch"


class SignalConflict(WorkRefused):
    """The run has a signal of this name and key with another value; send each signal under a key of its own."""

    code = "key_reused"
    sentence = "This form was sent before, with another value. Open the page again to send another signal."


class SignalRemoved(SignalConflict):
    """Retention removed the secret signal of this name and key, so nobody can tell if it is the same; use a new key."""

    sentence = "This form was sent before. Open the page again to send another signal."


class TooManySignals(WorkRefused):
    """The run has no room for another signal; the sentence says why."""

    code = "too_many_signals"
    sentence = "This run has all the signals that a run may have; it accepts no more."

    def __init__(self) -> None:
        super().__init__(str(self.sentence))


class SignalsTooLarge(TooManySignals):
    """The run has no room for a signal of this size."""

    code = "signals_too_large"
    sentence = (
        "This run's signals would have more than 64 MB together. Send a smaller value, such as the address of a file."
    )


class KeyReused(WorkRefused):
    """This Idempotency-Key was sent before with another request; choose a new key for a new request."""

    code = "key_reused"


class KeyRefused(WorkRefused):
    """An Idempotency-Key is between 1 and 200 printable ASCII characters."""

    code = "invalid"
    status = 422


class WorkNotAllowed(WorkRefused):
    """You may not start or work on runs of this team; ask its people for the right to start runs."""

    code = "not_allowed"
    status = 403
