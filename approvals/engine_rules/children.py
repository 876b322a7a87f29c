"""Rules for the runs that a step starts: gathering their results, and what a run's path counts on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

COMPLETED = "completed"
LOST = ("failed", "cancelled")
ENDED = (COMPLETED, *LOST)


class Gathered(NamedTuple):
    """The state of a gathering of which `need` children have to complete.

    `missing`: how many have to complete yet; 0 where nothing is to be waited for. `lost`: the place of the child for
    which the others are in vain; None where the need is, or may still be, met.
    """

    missing: int
    lost: int | None = None


def gathered(statuses: Sequence[str], need: int) -> Gathered:
    """Tell whether enough children have completed, or too few are left that could."""
    done = sum(status == COMPLETED for status in statuses)
    lost = [place for place, status in enumerate(statuses) if status in LOST]
    if done >= need:
        return Gathered(0)
    if len(statuses) - len(lost) < need:
        return Gathered(0, lost[0])
    return Gathered(need - done)


def stands(*, on_path: bool, begun: bool) -> bool:
    """Tell whether a run counts on a child: a step that did is `on_path`, or the step at hand has `begun` it."""
    return on_path or begun


def begun(step: str, next_step: str, since: Iterable[str] | None, *, aside: Sequence[str]) -> bool:
    """Tell whether the run is still at the step that started a child, with at most checkpoints `aside` since.

    `since`: the kinds of the checkpoints that follow the start of the step; None where that is not on the path.
    """
    return since is not None and step == next_step and all(kind in aside for kind in since)


def lost(status: str, ordered: str) -> bool:
    """Tell whether a child has no result, nor will have one that counts.

    One that was told to stop and had completed before it heard of that has its result.
    """
    return status in LOST or ordered == "undo" or (bool(ordered) and status != COMPLETED)


def unsettled(status: str, *, owes: bool, frozen: bool, tried: bool) -> bool:
    """Tell whether a child that was left behind has something to undo or to stop.

    `owes`: it, or a run below it, did something, or one below it still lives. Of a frozen one nobody knows. One that
    was `tried` to be undone and has ended has nothing more: what is left of it stays.
    """
    return not frozen and (status not in ENDED or (owes and not tried))


def may_have_acted(status: str, *, owes: bool, frozen: bool, tried: bool) -> bool:
    """Tell whether an equal child beside this one could do the same twice: also where nobody knows what it did."""
    return frozen or unsettled(status, owes=owes, frozen=frozen, tried=tried)
