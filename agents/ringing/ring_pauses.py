"""The pauses between doorbells for the same run or other work: they double while no worker takes it up.

A message may be lost, so due work is rung for again. Or it only waits its turn, behind workers that are busy or away;
then every further message delays those behind it. So a queue holds at most as many messages as work is due in it, even
if a sweeper restarts or Redis is flushed, and each piece of work is rung for again after a pause that doubles. When a
worker begins the pauses are forgotten: those before it may have died with the messages that they had taken. A
message that waited for much longer than any pause is dropped when it is read: a newer one was sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

FIRST, LONGEST = 1.0, 60.0  # seconds until what is still due is rung for again
# Seconds after which a message is dropped, lest they pile up while no worker is there. The worker looks at its own
# clock and the message was dated by its sender's, so it is longer than two machines' clocks should ever differ: a
# worker whose clock is ahead by as much drops everything.
EXPIRES = 3600.0


@dataclass
class RecentRings:
    """The last doorbells, by number and token: the monotonic time of each, and the pause after it.

    Work that was claimed since has another token, and starts again with the first pause.
    """

    rung: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)

    def quiet(self, now: float) -> list[tuple[int, int]]:
        """Return the (number, token) that are still in their pause, and forget those long past."""
        self.rung = {key: (at, pause) for key, (at, pause) in self.rung.items() if now < at + pause + LONGEST}
        return [key for key, (at, pause) in self.rung.items() if now < at + pause]

    def rang(self, number: int, token: int, now: float) -> None:
        """Note a doorbell for this one and double its pause."""
        _, pause = self.rung.get((number, token), (now, FIRST / 2))
        self.rung[number, token] = (now, min(LONGEST, pause * 2))

    def rang_all(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Note doorbells that were sent just now."""
        now = time.monotonic()
        for number, token in pairs:
            self.rang(number, token, now)

    def ring_for_each(self, pairs: Iterable[tuple[int, int]], ring: Callable[[int], bool], *, most: int) -> int:
        """Ring for the (number, token) that are not in their pause; return how many there were."""
        now = time.monotonic()
        quiet = set(self.quiet(now))
        waiting = [item for item in pairs if item not in quiet][:most]
        for number, token in waiting:
            if not ring(number):
                break  # the broker is down: nothing is lost, the next pass tries again
            self.rang(number, token, now)
        return len(waiting)

    def forget(self) -> None:
        """Forget all pauses, when the messages may be lost."""
        self.rung.clear()
