"""Writes sentences about effects that would be repeated: "An e-mail was already sent at 16:18". Pure."""

from __future__ import annotations

from approvals.impact.result import Repeat

from .verbs import phrase


def told(repeat: Repeat, *, at: str, here: int, doing: str = "Approving") -> str:
    """Write two sentences: what was done (see `done`), and that it is done again. `doing` is the second's subject."""
    verb = phrase(repeat.titles)[0]
    if not repeat.done:
        said = f"{doing} could {verb.base} it twice."
    elif repeat.certain:
        said = f"{doing} {verb.third} it again."
    else:
        said = f"{doing} may {verb.base} it again."
    return f"{done(repeat, at=at, here=here)}. {said}"


def done(repeat: Repeat, *, at: str, here: int) -> str:
    """Say what was done, without a full stop. `at`: the time in words; `here`: the run that is decided about."""
    verb, what = phrase(repeat.titles)
    where = " ".join(filter(None, [at, _where(repeat, here)]))
    said = f"{what} was already {verb.past} {where}".rstrip()
    if not repeat.done:
        said = f"Nobody knows whether {said}"
    return f"{said[:1].upper()}{said[1:]}"


def again(repeat: Repeat) -> str:
    """Word the box that confirms a repeat: `Send it again`."""
    return f"{phrase(repeat.titles)[0].base.capitalize()} it again"


def _where(repeat: Repeat, here: int) -> str:
    run = f"R-{repeat.run}" if repeat.run != here else ""
    place = f"checkpoint {repeat.checkpoint}" if repeat.checkpoint else ""
    found = ", ".join(filter(None, [run, place]))
    return f"({found})" if found else ""
