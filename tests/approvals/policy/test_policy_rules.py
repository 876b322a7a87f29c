"""When votes are enough."""

from __future__ import annotations

import pytest

from approvals.policy.vote_tally import Vote, tally


def vote(user: int, *, on: int = 1, verdict: str = "approve", may: bool = True) -> Vote:
    """One word on proposal `on`."""
    return Vote(user=user, proposal=on, verdict=verdict, may=may)


@pytest.mark.parametrize(
    ("votes", "standing", "quorum", "closes", "missing"),
    [
        ([], 1, 1, "", 1),
        ([vote(1)], 1, 1, "agreed", 0),
        ([vote(1)], 1, 2, "", 1),
        ([vote(1), vote(1)], 1, 2, "", 1),
        ([vote(1), vote(2)], 1, 2, "agreed", 0),
        ([vote(1), vote(2), vote(3)], 1, 2, "agreed", 0),
        ([vote(1, on=1), vote(2, on=2, verdict="edit")], 2, 2, "", 1),
        ([vote(1, on=1), vote(2, on=2, verdict="edit"), vote(1, on=2)], 2, 2, "agreed", 0),
        ([vote(1), vote(2, may=False)], 1, 2, "", 1),
        ([vote(1), vote(2, verdict="reject")], 1, 3, "rejected", 2),
        ([vote(1, verdict="reject", may=False)], 1, 1, "", 1),
        ([vote(1, on=1, verdict="reject")], 2, 1, "", 1),
        ([vote(1, verdict="answer")], 1, 1, "agreed", 0),
        ([], 1, 0, "", 1),
    ],
)
def test_a_gate_closes_when_enough_people_agree_or_one_rejects(
    votes: list[Vote], standing: int, quorum: int, closes: str, missing: int
) -> None:
    count = tally(votes, standing=standing, quorum=quorum)
    assert (count.closes, count.missing) == (closes, missing)


def test_people_who_may_no_longer_decide_are_named() -> None:
    count = tally([vote(1), vote(2, may=False)], standing=1, quorum=2)
    assert (count.agreed, count.lapsed) == ((1,), (2,))
