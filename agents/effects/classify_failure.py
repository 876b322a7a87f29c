"""Classifies an exception of an effect: provably not done, or unknown."""

from __future__ import annotations

from agents.errors import EffectFailed, EffectUnknown, Retry, StepFailed, UpcastFailed
from agents.steps import execute
from checkpoints.values.characters import one_line

from . import http

End = EffectFailed | EffectUnknown


def of(error: BaseException, doubt: str = "") -> End:
    """Classify the error: unknown unless it is known to be a failure.

    A failure is about this attempt alone: with an earlier attempt under the key in `doubt`, the effect stays unknown.
    """
    found = _found(error)
    if isinstance(found, EffectFailed) and doubt:
        return EffectUnknown(f"{doubt} Sent again under its key: {found}")
    return found


def said(end: End) -> str:
    """Return the message, which anybody may have worded, as one line that fits a row and a card."""
    return one_line(str(end), 500)


def _found(error: BaseException) -> End:
    if isinstance(error, (EffectFailed, EffectUnknown)):
        return error
    if isinstance(error, Retry):
        return EffectFailed(str(error), retry=True)
    if isinstance(error, (StepFailed, UpcastFailed)):  # with UpcastFailed nothing was even called
        return EffectFailed(str(error))
    found = http.classify(error) if isinstance(error, Exception) else None
    return found or EffectUnknown(execute.said(error))
