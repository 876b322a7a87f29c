"""Judges the votes at a gate: nothing beside this decides what they come to. Pure.

It is asked after every move: a vote, an edit, an undo, the end of an undo window, a team that was added, a refusal. An
approval fills one place of what the proposal needs, a rejection rejects, and either counts only while its sender may
decide. Everybody whose approval would complete one more place of the reached stage is asked for it, and nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from approvals.policy.requirements import Requirements
from approvals.policy.tally import CountedVote, Tally, tally
from checkpoints.values import digests

NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class CastVote:
    """A vote as it was cast."""

    decision: int  # its number
    person: int
    authority: int  # the person whose authority it uses: its sender, or somebody who is away
    repeats: frozenset[int] = NOBODY  # the effects, done before, that its sender allows to be done once more


@dataclass(frozen=True, kw_only=True)
class Approval(CastVote):
    """A vote for the current proposal."""


@dataclass(frozen=True, kw_only=True)
class Rejection(CastVote):
    """A vote against whatever is proposed."""

    then: str = ""
    back_to: str = ""


@dataclass(frozen=True, kw_only=True)
class VoteStanding:
    """The standing of a vote's sender at the gate now."""

    why_not: str = ""  # why they may not decide, as a sentence
    teams: frozenset[int] = NOBODY  # in which they may, by the authority that the vote uses


@dataclass(frozen=True, kw_only=True)
class End:
    """The end of a gate by votes."""

    rejects: bool
    proposal: int
    votes: tuple[int, ...]  # the numbers of the decisions that count, oldest first
    then: str = ""
    back_to: str = ""
    repeats: frozenset[int] = NOBODY

    @property
    def digest(self) -> str:
        """Return what another end differs in, whoever votes for it: that has an undo window of its own."""
        said = [self.rejects, self.proposal, self.then, self.back_to, sorted(self.repeats)]
        return digests.of_value(["end", *said]).hex()


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of judging votes."""

    count: Tally  # of the approvals that count
    end: End | None = None
    lapsed: tuple[tuple[CastVote, str], ...] = ()  # votes that count no more, each with why

    @property
    def awaits(self) -> list[int]:
        """Return the ids of the teams, and the negated ids of the people, who are asked now."""
        return self.count.awaits if self.end is None else []


def judge(
    needs: Requirements,
    proposal: int,
    approvals: Sequence[Approval],
    rejections: Sequence[Rejection],
    standings: Mapping[int, VoteStanding],
) -> Verdict:
    """Judge the votes on a proposal, oldest first. `standings`: by the number of each decision."""
    barred = [(vote, why) for vote in (*approvals, *rejections) if (why := standings[vote.decision].why_not)]
    may = [vote for vote in approvals if not standings[vote.decision].why_not]
    repeats = may[-1].repeats if may else NOBODY
    fewer = [(vote, "It allows fewer effects to be repeated.") for vote in may if not repeats <= vote.repeats]
    agreed = [vote for vote in may if repeats <= vote.repeats]
    count = tally(needs, [CountedVote(person=vote.authority, teams=standings[vote.decision].teams) for vote in agreed])
    against = [vote for vote in rejections if not standings[vote.decision].why_not]
    end = None
    if against:
        last = against[-1]
        end = End(
            rejects=True, proposal=proposal, votes=(last.decision,), then=last.then, back_to=last.back_to,
            repeats=last.repeats,
        )  # fmt: skip
    elif not count.left:
        end = End(rejects=False, proposal=proposal, votes=tuple(vote.decision for vote in agreed), repeats=repeats)
    return Verdict(count=count, end=end, lapsed=(*barred, *fewer))
