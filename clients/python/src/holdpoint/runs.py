"""Working on a run: claim it, do what comes next, report the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .answers import Begun, Checkpoints, Gate, Outcome, Patch, Saved, Turn
from .answers import Run as RunRead
from .awaiting import await_outcome
from .drivers import Awaiting, Blocking, operation
from .errors import HoldpointError, NotClaimable
from .exchange import Op, Pause
from .holding import Held, OnLost, claim_run
from .plans import Card, Write
from .sending import Api

AGAIN = 1.0  # seconds between two attempts to claim a run that somebody else has


class _Run:
    """A run. `turn` is the server's last answer, with the next piece of work; `state` is the state to do it on."""

    def __init__(self, io: Any, api: Api, id: int) -> None:
        self._io, self._api = io, api
        self._held: Held | None = None
        self.id = id
        self.turn: Turn | None = None
        self.state: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    @property
    def lost(self) -> HoldpointError | None:
        """Return why the claim was lost, once a heartbeat has found out."""
        return self._held.lost if self._held else None

    @property
    def halt(self) -> bool:
        """Tell whether a person asks the program to stop after the current step, to move the run."""
        return bool(self._held and self._held.halt)

    def check(self) -> None:
        """Raise StaleToken or RunEnded if the claim is known to be lost."""
        if self._held is not None:
            self._held.check()

    @operation
    def claim(
        self, *, worker: str = "", lease: float = 0.0, timeout: float = 0.0, on_lost: OnLost | None = None
    ) -> Op[Turn]:
        """Claim the run, and keep it by heartbeats. `timeout`: seconds to wait while somebody else has it.

        `on_lost` is called, in the thread or task of the heartbeats, if the run was taken over. Raises NotClaimable,
        RunEnded.
        """
        clock = self._api.habits.clock
        until = clock() + timeout
        while True:
            try:
                self._held, turn = yield from claim_run(self._api, self.id, name=worker, lease=lease, on_lost=on_lost)
            except NotClaimable:
                if clock() + AGAIN > until:
                    raise
                yield Pause(AGAIN)
            else:
                return self._came(turn)

    @operation
    def save(
        self,
        step: str,
        *,
        set: Mapping[str, Any] | None = None,
        append: Mapping[str, Sequence[Any]] | None = None,
        splice: Mapping[str, tuple[int, int, Sequence[Any]]] | None = None,
        next_step: str | None = None,
        took: float = 0.0,
        notes: Sequence[str] = (),
    ) -> Op[Turn]:
        """Save a step's writes, by field: a value, items for the end of a list, or (start, delete, items) in one."""
        wrote = Write(
            step=step, set=set or {}, append=append or {}, splice=splice or {}, next_step=next_step, took=took,
            notes=notes,
        )  # fmt: skip
        return (yield from self._work("checkpoints", wrote.body()))

    @operation
    def save_all(self, writes: Sequence[Write]) -> Op[Turn]:
        """Save several steps' writes, a checkpoint each, in one call: all of them or none."""
        return (yield from self._work("checkpoints/batches", {"checkpoints": [write.body() for write in writes]}))

    @operation
    def save_state(self, step: str, state: Mapping[str, Any], *, next_step: str | None = None) -> Op[Turn]:
        """Save the whole new state, every field of it."""
        return (yield from self._work("checkpoints", {"step": step, "state": dict(state), "next_step": next_step}))

    @operation
    def ask(self, step: str, card: Card, *, deferred: bool = False) -> Op[Turn]:
        """Open the plan's gate, and release the run until people have decided."""
        return (yield from self._work("gates", {"step": step, "deferred": deferred, **card.body()}))

    @operation
    def wait(self, *, timeout: float | None = None) -> Op[Outcome]:
        """Return the outcome of the gate at which the run waits. Raises StillOpen after `timeout` seconds."""
        gate = self.turn.gate if self.turn is not None else None
        if gate is None:
            run = yield from self._api.get(f"runs/{self.id}", RunRead)
            if not run.gates:
                raise HoldpointError(f"Run {self.id} waits at no gate: it is {run.status}. Claim it.")
            gate = run.gates[-1]
        until = float("inf") if timeout is None else self._api.habits.clock() + timeout
        return (yield from await_outcome(self._api, gate, until))

    @operation
    def begin(self, step: str) -> Op[Begun]:
        """Begin an effect, which uses its grant, and return its key. Raises NoGrant, OutOfTurn."""
        return self._begun((yield from self._work("effects", {"step": step})))

    @operation
    def begin_undo(self, effect: int) -> Op[Begun]:
        """Begin to undo an effect; `state` is then the one that it left."""
        return self._begun((yield from self._work("effects", {"undoes": effect})))

    @operation
    def done(
        self, effect: Begun, writes: Mapping[str, Any] | None = None, *, next_step: str | None = None, took: float = 0.0
    ) -> Op[Turn]:
        """Report that the effect happened, with the fields that it wrote."""
        body = {"status": "done", "writes": dict(writes or {}), "next_step": next_step, "took": took}
        return (yield from self._work(f"effects/{effect.id}/results", body))

    @operation
    def failed(self, effect: Begun, error: str, *, retry: bool = False) -> Op[Turn]:
        """Report that the effect provably did not happen. `retry`: nothing was sent."""
        body = {"status": "failed", "error": error, "retry": retry}
        return (yield from self._work(f"effects/{effect.id}/results", body))

    @operation
    def unknown(self, effect: Begun, error: str) -> Op[Turn]:
        """Report that nobody knows whether the effect happened: people are asked."""
        return (yield from self._work(f"effects/{effect.id}/results", {"status": "unknown", "error": error}))

    @operation
    def fail(self, step: str, error: str, *, retry: bool = False) -> Op[Turn]:
        """Report that a step failed: it runs again later if the plan says so, else people are asked."""
        return (yield from self._work("failures", {"step": step, "error": error, "retry": retry}))

    @operation
    def release(self) -> Op[Turn]:
        """Release the run as it is."""
        return (yield from self._work("releases", {}))

    @operation
    def end(self, *, failed: str = "") -> Op[Turn]:
        """End the run: completed, or `failed` for this reason."""
        body = {"status": "failed" if failed else "completed", "reason": failed}
        return (yield from self._work("endings", body))

    @operation
    def read(self) -> Op[RunRead]:
        """Return the run as it is now."""
        return (yield from self._api.get(f"runs/{self.id}", RunRead))

    @operation
    def checkpoints(self, *, cursor: str = "", limit: int = 50) -> Op[Checkpoints]:
        """Return its checkpoints on all branches, newest first."""
        return (yield from self._api.get(f"runs/{self.id}/checkpoints", Checkpoints, cursor=cursor, limit=limit))

    @operation
    def checkpoint(self, seq: int) -> Op[Saved]:
        """Return one checkpoint with its state."""
        return (yield from self._api.get(f"runs/{self.id}/checkpoints/{seq}", Saved))

    @operation
    def diff(self, seq: int, to: int) -> Op[list[dict[str, Any]]]:
        """Return the JSON Patch from the state of one checkpoint to that of another."""
        found = yield from self._api.get(f"runs/{self.id}/checkpoints/{seq}/diff", Patch, to=to)
        return found.root

    @operation
    def gate(self) -> Op[Gate | None]:
        """Return the gate at which it waits."""
        run = yield from self._api.get(f"runs/{self.id}", RunRead)
        return (yield from self._api.get(f"gates/{run.gates[-1]}", Gate)) if run.gates else None

    def _work(self, address: str, body: dict[str, Any]) -> Op[Turn]:
        if self._held is None:
            raise HoldpointError(f"Claim run {self.id} first: run.claim().")
        return self._came((yield from self._held.work(address, body)))

    def _came(self, turn: Turn) -> Turn:
        self.turn = turn
        if turn.state is not None:
            self.state = turn.state
        return turn

    def _begun(self, turn: Turn) -> Begun:
        if turn.next.effect is None:
            raise HoldpointError(f"Nothing was begun: run {self.id} is {turn.status}. Look at run.turn.")
        return turn.next.effect


class Run(_Run, Blocking):
    """A run; its methods wait for the server."""


class AsyncRun(_Run, Awaiting):
    """A run; its methods are awaited."""
