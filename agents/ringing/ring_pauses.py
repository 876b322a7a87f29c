"""When to ring again: not while enough messages wait already, and ever more seldom for one that nobody answers.

A message may be lost, so that what is due is rung for again; and it may only wait its turn, behind workers that are
busy or away, when every further one delays those behind it. So a queue gets as many messages as things are due in
it, however often a sweeper starts anew or Redis is flushed, and within that each one thing is rung for after a pause
that doubles. A message that waited for much longer than any pause is dropped where it is read: a newer one was sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FIRST, LONGEST = 1.0, 60.0  # seconds until what is still due is rung for again
# Seconds after which a message is dropped, lest they pile up while no worker is there. The worker looks at its own
# clock and the message was dated by its sender's, so it is longer than two machines' clocks should ever differ: a
# worker whose clock is ahead by as much drops everything.
EXPIRES = 3600.0


@dataclass
class RecentRings:
    """The bells rung, by number and token: the monotonic time of the ring, and the pause that follows.

    What was taken up since has another token: what is due then is news, and starts with the first pause.
    """

    rung: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)

    def quiet(self, now: float) -> list[tuple[int, int]]:
        """Return the (number, token) to leave alone for now. Those long past are forgotten."""
        self.rung = {key: (at, pause) for key, (at, pause) in self.rung.items() if now < at + pause + LONGEST}
        return [key for key, (at, pause) in self.rung.items() if now < at + pause]

    def rang(self, number: int, token: int, now: float) -> None:
        """Double the pause for this one."""
        _, pause = self.rung.get((number, token), (now, FIRST / 2))
        self.rung[number, token] = (now, min(LONGEST, pause * 2))

    def forget(self) -> None:
        """Forget all pauses: whatever was rung for is lost."""
        self.rung.clear()
