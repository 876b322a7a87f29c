"""When a gate's votes are enough. Pure: plain data in, a verdict out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Vote:
    """One person's vote on one version of a proposal."""

    user: int
    proposal: int  # the number of the proposal it is about
    verdict: str  # approve, edit, reject, answer
    may: bool = True  # whether this person has the authority now


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The state of a gate's vote."""

    agreed: tuple[int, ...]  # the distinct people whose vote counts, in order
    lapsed: tuple[int, ...]  # people who voted for the current proposal and may no longer decide
    rejected_by: int | None
    quorum: int

    @property
    def missing(self) -> int:
        """Count how many more people have to agree."""
        return max(0, self.quorum - len(self.agreed))

    @property
    def closes(self) -> str:
        """Return "rejected", "agreed", or "" while the gate stays open."""
        if self.rejected_by is not None:
            return "rejected"
        return "" if self.missing else "agreed"


def tally(votes: Iterable[Vote], *, standing: int, quorum: int) -> Tally:
    """Count distinct people for the current proposal; one rejection of it closes the gate.

    Votes for other versions count for nothing, nor do those of people who may no longer decide.
    """
    agreed: dict[int, None] = {}
    lapsed: dict[int, None] = {}
    rejected_by: int | None = None
    for vote in votes:
        if vote.proposal != standing:
            continue
        if not vote.may:
            lapsed[vote.user] = None
        elif vote.verdict == "reject":
            rejected_by = vote.user if rejected_by is None else rejected_by
        else:
            agreed[vote.user] = None
    return Tally(agreed=tuple(agreed), lapsed=tuple(lapsed), rejected_by=rejected_by, quorum=max(1, quorum))
