"""What a person may order of a run, in words: the ways to rewind it, and the button that says what it does. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from approvals.english import listed, plural, quoted
from approvals.impact import Impact, Row
from approvals.presentation.drawing import impact_words
from checkpoints.runs.plans import in_words

EXECUTED = ("step", "gate", "reused")  # kinds of the checkpoints that a step left


@dataclass(frozen=True, slots=True)
class Way:
    """One checkpoint to rewind to: `place` is "after" or "before"."""

    place: str
    to: int
    label: str
    step: str = ""  # the title of the step named in the label
    rest: str = ""


def ways(
    *,
    seq: int,
    kind: str,
    step: str,
    then: str,
    before: int,
    effect: bool = False,
    asked: bool = True,
    called: Callable[[str], str] = in_words,
) -> list[Way]:
    """List the ways to rewind at a checkpoint: on from its state, or again the step that led to it.

    `then` is the step that follows it, empty where the run had ended; `before` is the number of the checkpoint from
    which `step` started, 0 where there is none in this run. `asked`: a gate had something to ask.
    """
    found = []
    gate = kind == "gate"
    if then and kind in EXECUTED:
        keeps = "keeping what it did" if effect else "keeping what it wrote"
        keeps = keeps if not gate else "keeping its answer" if asked else ""
        found.append(Way("after", seq, "After", called(step), keeps))
    elif then:
        found.append(Way("after", seq, "From this state, on with", called(then)))
    if before and kind in EXECUTED:
        again = "and run it again" if not gate else "and ask again" if asked else "and look again"
        found.append(Way("before", before, "Before", called(step), again))
    return found


def commit(verb: str, impact: Impact) -> str:
    """Return the button's text: "Rewind, undoing “Pay”", "Fork", "Rewind, undoing 2 effects, perhaps a third"."""
    said = [verb]
    if impact.undone:
        said.append(f"undoing {_effects(impact, impact.undone)}")
    if impact.may_undone:
        said.append(f"perhaps undoing {_effects(impact, impact.may_undone)}")
    if impact.repeated:
        said.append(f"doing {quoted(impact.called(impact.repeated))} once more")
    return ", ".join(said)


def _effects(impact: Impact, rows: Sequence[Row]) -> str:
    return rows[0].title or quoted(impact.called(rows)) if len(rows) == 1 else f"{len(rows)} effects"


def closing(gates: Sequence[int], agreed: Sequence[str]) -> impact_words.Row | None:
    """Return the gates that a move of the head withdraws, and whose approvals lapse; None where none is open."""
    if not gates:
        return None
    what = plural(len(gates), "gate")
    lapses = f"; what {listed(list(agreed))} agreed to lapses" if agreed else ", which is no rejection"
    numbers = listed([str(gate) for gate in gates])
    return impact_words.Row(effect="people", title="Closes", said=f"{what} {numbers}{lapses}")
