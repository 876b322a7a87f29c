"""The errors of the runner and the registry, and those that a step may raise. Docstrings say what messages mean."""

from __future__ import annotations

from typing import Any, TypedDict

from checkpoints.errors import ValueRefused

MOST = 100  # faults that are listed: a body may hold hundreds of thousands


class FieldError(TypedDict):
    """One fault: a JSON Pointer into the value and a sentence."""

    pointer: str
    message: str


def join_faults(errors: list[FieldError]) -> str:
    """Return the faults as one sentence."""
    return "; ".join(f"{e['pointer'] or '/'}: {e['message']}" for e in errors)


class AgentError(Exception):
    """The agent's declaration is wrong; the sentence says what and where. Correct the class."""


class UnknownAgent(AgentError):
    """No agent of that name is registered here; the sentence lists the known ones."""


class InputRefused(AgentError):
    """The input does not fit the agent's state; `errors` lists the faults by JSON Pointer."""

    def __init__(self, errors: list[FieldError]) -> None:
        self.errors = errors[:MOST]
        super().__init__(join_faults(self.errors))


class ConfigRefused(InputRefused):
    """The configuration does not fit the agent's Config; `errors` lists the faults by JSON Pointer into it."""


class UpcastFailed(AgentError):
    """A run cannot go on in a newer version; the sentence says which upcaster is at fault. Correct it."""

    def __init__(self, reason: str, errors: list[FieldError] | None = None) -> None:
        self.errors = (errors or [])[:MOST]
        words = join_faults(self.errors)
        super().__init__(f"{reason}: {words}." if words else f"{reason}.")


class RewindRefused(AgentError):
    """The run cannot be moved as asked; the sentence says why. `errors` lists the faults by JSON Pointer.

    `status` is the HTTP status of the answer: 409 where the run is the reason, 422 where the request is.
    """

    code = "refused"
    status = 409

    def __init__(self, reason: str, errors: list[FieldError] | None = None) -> None:
        self.errors = (errors or [])[:MOST]
        self.status = 422 if self.errors else self.status
        words = join_faults(self.errors)
        super().__init__(f"{reason} {words}".strip())


class RewindNotAllowed(RewindRefused):
    """This person may not rewind, edit, fork, settle or cancel runs of the run's team."""

    code = "not_allowed"
    status = 403


class OrderNotConfirmed(RewindRefused):
    """A policy of the run asks people to confirm who they are, and this person did not; `method` says by what."""

    code = "not_confirmed"
    status = 403

    def __init__(self, method: str) -> None:
        words = "A policy of this run asks you to confirm who you are before you change it: do it on the run's page."
        super().__init__(words)
        self.method = method


class ImpactChanged(RewindRefused):
    """The move would have another impact now than the one that was shown; `impact` is the new one. Ask again."""

    code = "impact_changed"

    def __init__(self, impact: Any, reason: str = "") -> None:
        super().__init__(reason or "The run has changed since you looked. See below what this would do now.")
        self.impact = impact


class NeedsConfirmation(RewindRefused):
    """The run would be sent back to an effect that cannot be undone, to do it again; confirm that."""

    code = "needs_confirmation"
    status = 422

    def __init__(self, effects: list[str]) -> None:
        words = f"{', '.join(effects)} cannot be undone, and would be performed again under a new key. Confirm this."
        super().__init__(words)
        self.effects = effects


class OutputRefused(AgentError):
    """A step returned what its plan does not declare; declare the field in `writes` or stop returning it."""


class InvariantBroken(ValueRefused):
    """The state would break a rule of its own, so nothing was saved; `errors` lists the faults by JSON Pointer."""

    def __init__(self, errors: list[FieldError]) -> None:
        self.errors = errors[:MOST]
        super().__init__(self.errors[0]["pointer"], self.errors[0]["message"])
        self.args = (f"The state would break its rules: {join_faults(self.errors)}",)


class StepFailed(Exception):
    """Raised by a step for which trying again is useless: a person is asked at once."""


class Retry(Exception):
    """Raised by a step that asks to be tried again, after `after` seconds. In an effect: nothing was sent."""

    def __init__(self, reason: str = "asked to be tried again", after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class EffectFailed(Exception):
    """The effect is provably not done. `retry`: nothing was sent, so that trying again by itself is safe."""

    def __init__(self, reason: str, *, retry: bool = False) -> None:
        super().__init__(reason)
        self.retry = retry


class EffectUnknown(Exception):
    """The effect may have happened: a timeout, a line cut after sending, a 5xx."""


class StepTimeout(BaseException):
    """The step ran past its time limit.

    Not an Exception, so that a step's own `except Exception` does not swallow it.
    """


class ObservationFailed(Exception):
    """A precondition could not be observed, so nothing was done; it is tried again later."""


class RunLost(BaseException):
    """Another worker holds the run by now; the step's work may not land.

    Not an Exception, so that a step's own `except Exception` does not swallow it.
    """


class Suspended(BaseException):
    """The step waits, and the run is released until the wait is over; the step then starts again.

    Not an Exception, so that a step's own `except Exception` does not swallow it.
    """

    def __init__(self, wait: Any) -> None:
        super().__init__(str(wait))
        self.wait = wait  # an agents.models.Wait, agents.children.gather.Gathering, or agents.children.spawn.Uncalled


class ChildFailed(StepFailed):
    """A child run that the step waits for has failed or was cancelled; `run` is its number. A person is asked."""

    def __init__(self, run: int, reason: str) -> None:
        super().__init__(reason)
        self.run = run


class SignalTimeout(Exception):
    """The signal that a step waited for did not come within the step's timeout."""


class NotGranted(AgentError):
    """An effect's permission is missing or for something else, or a precondition changed; the gate asks again."""


class TokenRefused(AgentError):
    """A token cannot be made as asked; the sentence says what it needs."""


class FormUsed(TokenRefused):
    """The form was sent before and made a token then."""

    sentence = (
        "This form made a token before, which is in the list and was shown then. Fill it in again to make another."
    )


class WrongCode(AgentError):
    """No request waits under the code."""

    sentence = "No program waits under this code. Compare it with your terminal; a code lasts ten minutes."

    def __init__(self) -> None:
        super().__init__(str(self.sentence))


class TooManyGuesses(WrongCode):
    """The person entered too many wrong codes."""

    sentence = "Too many wrong codes. Wait five minutes, and start again in your terminal."


class DeviceRefused(AgentError):
    """A program gets no token for its device code; `code` is RFC 8628's word, and the sentence says what to do."""

    why = {
        "authorization_pending": "Nobody has confirmed the code yet. Ask again after the interval.",
        "slow_down": "This came too soon. Wait five seconds longer between requests from now on.",
        "access_denied": "The request was refused. Start again if that was a mistake.",
        "expired_token": "The code has expired. Start again.",
        "invalid_grant": "This device code is unknown, or its token was collected already. Start again.",
    }

    def __init__(self, code: str, sentence: str = "") -> None:
        super().__init__(sentence or self.why[code])
        self.code = code
