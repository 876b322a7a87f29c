"""Working on a run: claim it, wait for people, do what comes next, report the results."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .answers import Beat, Begun, Checkpoints, Gate, Outcome, Patch, Question, Questions, Saved, Turn
from .answers import Run as RunRead
from .drivers import Awaiting, Blocking, operation
from .errors import HoldpointError, NotClaimable, Problem, RunEnded, StaleToken, StillOpen
from .posting import Card, Write
from .sending import FIRST, Api, Keep, Op, Pause, Stop

LOG = logging.getLogger("holdpoint")
OnLost = Callable[[HoldpointError], object]
AGAIN = 1.0  # seconds between two attempts to claim a run that somebody else has, or that pauses after a failure
BEAT = 30.0  # seconds between heartbeats at most: after 90 without one people are told that the program is gone
SLOWEST = 2.0  # seconds between two requests at most, if the server does not hold them
LONGEST = 8_000  # characters of an answer


@dataclass
class Held:
    """A claim, whose token is sent with everything. `lost`: why the claim was lost, once that is known."""

    api: Api
    run: int
    token: int
    lease: float
    halt: bool = False  # a person asks to stop after the current step
    lost: Problem | None = None
    on_lost: OnLost | None = None
    stops: list[Stop] = field(default_factory=list)
    at_work: int = 0  # requests under way that carry the token

    def check(self) -> None:
        """Raise StaleToken or RunEnded if the claim is known to be lost: work in progress must not go on."""
        if self.lost is not None:
            raise self.lost

    def work(self, address: str, body: Mapping[str, Any]) -> Op[Turn]:
        """Send something about the run. It may end the claim before its answer arrives; heartbeats ignore that."""
        self.at_work += 1
        try:
            turn = yield from self.api.post(f"runs/{self.run}/{address}", {"token": self.token, **body}, Turn)
            if not turn.next.kind:
                self.let_go()  # the run waits, or has ended: nobody holds it
            return turn
        finally:
            self.at_work -= 1

    def let_go(self) -> None:
        """Stop the heartbeats."""
        while self.stops:
            self.stops.pop()()


def claim_run(
    api: Api, run: int, *, name: str = "", lease: float = 0.0, on_lost: OnLost | None = None
) -> Op[tuple[Held, Turn]]:
    """Claim a run and keep it by heartbeats. Raises NotClaimable, RunEnded."""
    lease, name = lease or api.habits.lease, name or f"{socket.gethostname()}:{os.getpid()}"[:120]
    turn = yield from api.post(f"runs/{run}/claims", {"worker": name, "lease": lease}, Turn)
    held = Held(api, run, turn.token, lease, on_lost=on_lost)
    if turn.next.kind:
        held.stops.append((yield Keep(beating(held))))
    return held, turn


def beating(run_claim: Held) -> Op[None]:
    """Send heartbeats until the server says that the claim is lost."""
    while True:
        yield Pause(min(run_claim.lease / 3, BEAT))
        try:
            address, body = f"runs/{run_claim.run}/heartbeats", {"token": run_claim.token}
            beat = yield from run_claim.api.post(address, body, Beat, patience=run_claim.lease / 3)
            run_claim.halt = beat.halt
        except (StaleToken, RunEnded) as error:
            if run_claim.at_work or not run_claim.stops:
                continue
            run_claim.lost = error
            LOG.warning("Run %s is lost: %s", run_claim.run, error)
            if run_claim.on_lost is not None:
                run_claim.on_lost(error)
            return
        except HoldpointError as error:
            LOG.warning("No heartbeat for run %s: %s", run_claim.run, error)


def await_outcome(api: Api, gate: int, until: float) -> Op[Outcome]:
    """Return a gate's outcome. Raises StillOpen at `until`, by the habits' clock."""
    clock, pause = api.habits.clock, FIRST
    while True:
        began = clock()
        longest = SLOWEST if api.habits.on_question else api.habits.poll
        wait = max(0.0, min(longest, until - began))
        found = yield from api.get(f"gates/{gate}/outcome", Outcome, longer=wait, wait=round(wait, 3))
        if not found.open:
            return found
        yield from answer_questions(api, gate)
        now = clock()
        if now >= until:
            raise StillOpen(
                f"Gate {gate} is still open. Resume it by its number later.", gate=gate, run=found.run, url=found.url
            )
        if now - began < wait / 2:  # answered at once
            yield Pause(min(pause, until - now))
            pause = min(2 * pause, SLOWEST)
        else:
            pause = FIRST


def answer_questions(api: Api, gate: int) -> Op[None]:
    """Answer each open question at the gate by the client's `on_question`; what it raises is told to people."""
    answer = api.habits.on_question
    if answer is None:
        return
    found = yield from api.get(f"gates/{gate}/questions", Questions)
    for question in found.items:
        if question.status != "asked" or question.text is None:
            continue
        try:
            text, failed = answer(question), False
        except Exception as error:
            LOG.exception("Question %s at gate %s was not answered.", question.id, gate)
            text, failed = f"{type(error).__name__}: {error}", True
        body = {"question": question.id, "text": (text or "no words")[:LONGEST], "failed": failed or not text}
        try:
            yield from api.post(f"gates/{gate}/answers", body, Question, key=f"answer-{gate}-{question.id}")
        except Problem as refusal:  # another process of the program has answered, or the words differ from those before
            LOG.warning("The answer to question %s was not taken: %s", question.id, refusal)


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
