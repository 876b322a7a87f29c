"""What would be done once more, as a person or a program reads it: "An e-mail was already sent at 16:18". Pure."""

from __future__ import annotations

from approvals.impact.result import Repeat

from .verbs import phrase


def told(repeat: Repeat, *, at: str, here: int, doing: str = "Approving") -> str:
    """Write two sentences: what was done (see `done`), and what does it again. `doing` is the second's subject."""
    verb, _ = phrase(repeat.titles)
    again = f"{verb.third} it again" if repeat.certain else f"may {verb.base} it again"
    again = again if repeat.done else f"could {verb.base} it twice"
    return f"{done(repeat, at=at, here=here)}. {doing} {again}."


def done(repeat: Repeat, *, at: str, here: int) -> str:
    """Say what was done, without a full stop. `at` is its moment in words, `here` the run that is decided about."""
    verb, what = phrase(repeat.titles)
    said = " ".join(filter(None, [f"{what} was already {verb.past}", at, _where(repeat, here)]))
    return f"{said[:1].upper()}{said[1:]}" if repeat.done else f"Nobody knows whether {said}"


def again(repeat: Repeat) -> str:
    """Name what is confirmed: `Send it again`."""
    return f"{phrase(repeat.titles)[0].base.capitalize()} it again"


def _where(repeat: Repeat, here: int) -> str:
    run = f"R-{repeat.run}" if repeat.run != here else ""
    place = f"checkpoint {repeat.checkpoint}" if repeat.checkpoint else ""
    found = ", ".join(filter(None, [run, place]))
    return f"({found})" if found else ""
