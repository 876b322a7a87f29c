"""What the runner and the registry refuse, and what a step may raise. Each docstring is the message's sense."""

from __future__ import annotations

from typing import TypedDict


class FieldError(TypedDict):
    """One culprit: a JSON Pointer into the value and a sentence."""

    pointer: str
    message: str


class AgentError(Exception):
    """The agent's declaration is wrong; the sentence says what and where. Correct the class."""


class UnknownAgent(AgentError):
    """No agent of that name is registered here; the sentence lists the known ones."""


class InputRefused(AgentError):
    """The input does not fit the agent's state; `errors` names every culprit by JSON Pointer."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__("; ".join(f"{e['pointer'] or '/'}: {e['message']}" for e in errors))
        self.errors = errors


class OutputRefused(AgentError):
    """A step returned what its plan does not declare; declare the field in `writes` or stop returning it."""


class StepFailed(Exception):
    """Raised by a step that knows trying again is useless: a person is asked at once."""


class Retry(Exception):
    """Raised by a step that wants to be tried again, `after` so many seconds. In an effect: nothing was sent."""

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


class NotGranted(AgentError):
    """An effect's permission is missing, or was given for something else; the gate is asked again."""
