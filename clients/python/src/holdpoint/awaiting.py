"""The way from a gate to what it allowed: wait for people, take the run, begin the effect.

It is the same way after a crash. The server knows how far it went: what was begun and not reported is handed out again
under its key where it is idempotent, else people are asked what became of it, and that is waited for.
"""

from __future__ import annotations

import logging
from typing import Any

from .answers import Gate, Outcome, Run, Saved, Turn
from .calls import RESULT, Allowed, Decision
from .errors import (
    AlreadyDone,
    Answered,
    Expired,
    HoldpointError,
    NotClaimable,
    Rejected,
    RunEnded,
    StaleToken,
    StillOpen,
    Stopped,
    ToTakeBack,
    Unknown,
    Withdrawn,
)
from .exchange import Op, Pause
from .holding import Held, claim
from .sending import FIRST, Api

LOG = logging.getLogger("holdpoint")
SLOWEST = 2.0  # seconds between two looks, where the server does not hold the request
AGAIN = 1.0  # the same, at a run that somebody else has, or that pauses after a failure
WORDS = ("title", "summary", "for_whom", "amount", "resource", "risk", "reasons", "quotes")
OF_ACTION = ("id", "title", "tool", "pinned", "verdicts", "schema", "response", "effect", "pointer")


def awaited(api: Api, gate: int, until: float) -> Op[Outcome]:
    """How the gate ended. Raises StillOpen at `until`, by the habits' clock."""
    clock, pause = api.habits.clock, FIRST
    while True:
        began = clock()
        wait = max(0.0, min(api.habits.poll, until - began))
        found = yield from api.get(f"gates/{gate}/outcome", Outcome, longer=wait, wait=round(wait, 3))
        if not found.open:
            return found
        now = clock()
        if now >= until:
            raise StillOpen(f"Gate {gate} still asks. Resume it by its number later.", gate=gate, run=found.run)
        if now - began < wait / 2:  # answered at once
            yield Pause(min(pause, until - now))
            pause = min(2 * pause, SLOWEST)
        else:
            pause = FIRST


class Way:
    """From one gate with one action to its effect. `timeout`: seconds to wait for people; None for ever."""

    def __init__(self, api: Api, gate: int, *, timeout: float | None = None, undoes: bool = False) -> None:
        self.api = api
        self.gate = gate  # the newest that asked for it
        self.until = float("inf") if timeout is None else api.habits.clock() + timeout
        self.undoes = undoes  # whether whoever waits can take back what was done
        self.run = 0
        self.action = ""

    def allowed(self) -> Op[Allowed]:
        """The effect, begun. Raises Refused in one of its kinds, StillOpen, Unknown, ToTakeBack."""
        gate = yield from self.api.get(f"gates/{self.gate}", Gate)
        if len(gate.actions) != 1:
            raise HoldpointError(
                f"Gate {gate.id} asks about {len(gate.actions)} things, and this goes on with one. Work on its run: "
                f"run({gate.run}).claim()."
            )
        self.run, self.action = gate.run, gate.actions[0]
        LOG.info("Gate %s asks: %s", gate.id, gate.title)
        yield from awaited(self.api, self.gate, self.until)
        while True:
            try:
                held, turn = yield from claim(self.api, self.run)
            except RunEnded:
                raise (yield from self._end()) from None
            except NotClaimable:
                yield from self._wait()
                continue
            found = yield from self._taken(held, turn)
            if found is not None:
                return found

    def _taken(self, held: Held, turn: Turn) -> Op[Allowed | None]:
        """Go on from where the run stands; None to look anew."""
        try:
            if turn.next.kind == "effect":
                return (yield from self._begun(held, turn))
            if turn.next.kind == "undo":
                return (yield from self._undone(held, turn))
            if turn.next.kind == "gate":
                yield from self._asked_again(held, turn.next.step)
        except StaleToken:
            LOG.info("Run %s was moved meanwhile", self.run)
        except BaseException:
            held.let_go()
            raise
        held.let_go()
        if turn.ended:
            raise (yield from self._end())
        return None

    def _begun(self, held: Held, turn: Turn) -> Op[Allowed | None]:
        body = {"token": held.token, "step": turn.next.step}
        begun = yield from held.working(self.api.post(f"runs/{self.run}/effects", body, Turn))
        effect, state = begun.next.effect, begun.state or turn.state or {}
        if effect is None or begun.next.kind != "effect":
            return None  # somebody has to be asked before
        outcome, gate = yield from self._told()
        arguments = dict(state.get(self.action) or {})
        edits = outcome.edits.get(self.action, [])
        return Allowed(self.api, held, self.gate, self.action, arguments, effect, edits, _decision(gate, self.action))

    def _undone(self, held: Held, turn: Turn) -> Op[Allowed | None]:
        undoes = turn.next.undoes
        if undoes is None:
            return None
        if not self.undoes:
            yield from held.working(self.api.post(f"runs/{self.run}/releases", {"token": held.token}, Turn))
            raise ToTakeBack(
                f"People sent run {self.run} back: take back what was done under the key {undoes.key} first "
                f"({undoes.undo}). Claim the run, begin_undo({undoes.id}), do it, and report it.",
                run=self.run, effect=undoes.id, key=undoes.key,
            )  # fmt: skip
        body = {"token": held.token, "undoes": undoes.id}
        begun = yield from held.working(self.api.post(f"runs/{self.run}/effects", body, Turn))
        if begun.next.effect is None:
            return None
        _, gate = yield from self._told()
        left, decision = begun.state or {}, _decision(gate, self.action)
        return Allowed(self.api, held, self.gate, self.action, left, begun.next.effect, [], decision, undoes)

    def _asked_again(self, held: Held, step: str) -> Op[None]:
        """The run came back to its gate: what was allowed does not hold any more, so it is asked as it was."""
        gate = yield from self.api.get(f"gates/{self.gate}", Gate)
        card = {name: gate.card[name] for name in WORDS if name in gate.card}
        actions = [{name: each[name] for name in OF_ACTION if name in each} for each in gate.card["actions"]]
        body = {**card, "actions": actions, "token": held.token, "step": step}
        turn = yield from held.working(self.api.post(f"runs/{self.run}/gates", body, Turn))
        self.gate = turn.gate or self.gate

    def _wait(self) -> Op[None]:
        """Until the run can be claimed again, as far as it can be told. Raises StillOpen, Unknown."""
        run = yield from self.api.get(f"runs/{self.run}", Run)
        if not run.gates:
            if self.api.habits.clock() >= self.until:
                raise StillOpen(
                    f"Run {self.run} is somebody else's now, or pauses. Resume gate {self.gate} later.",
                    gate=self.gate, run=self.run,
                )  # fmt: skip
            yield Pause(AGAIN)
            return
        gate = yield from self.api.get(f"gates/{run.gates[-1]}", Gate)
        if gate.kind == "review":
            self.gate = gate.id
            yield from awaited(self.api, gate.id, self.until)
            return
        LOG.warning("People are asked at gate %s: %s", gate.id, gate.title)
        try:
            yield from awaited(self.api, gate.id, self.until)
        except StillOpen:
            raise Unknown(
                f"People are asked at gate {gate.id} how to go on: {_sentence(gate.title)} Do not do it again; resume "
                f"gate {self.gate} later.",
                gate=gate.id, run=self.run,
            ) from None  # fmt: skip

    def _told(self) -> Op[tuple[Outcome, Gate]]:
        outcome = yield from self.api.get(f"gates/{self.gate}/outcome", Outcome)
        gate = yield from self.api.get(f"gates/{self.gate}", Gate)
        return outcome, gate

    def _end(self) -> Op[HoldpointError]:
        """Why nothing is to be done: the run is over."""
        run = yield from self.api.get(f"runs/{self.run}", Run)
        _, gate = yield from self._told()
        known: dict[str, Any] = {"gate": self.gate, "run": self.run}
        ending = gate.outcome
        word = ending.actions.get(self.action) if ending else None
        if run.status == "completed":
            if word is not None and word.verdict == "respond":
                told = f"{word.by} answered in the place of {self.action}, which is not done."
                return Answered(told, by=word.by, answer=word.response, **known)
            result = yield from self._result(run)
            return AlreadyDone(f"{self.action} was done before, once. Take its result.", result=result, **known)
        by, reason = ending.by if ending else "", ending.feedback if ending else run.reason
        if ending is not None and ending.kind == "expired":
            return Expired(f"Nobody answered gate {self.gate} in time, so {self.action} is not done.", **known)
        if ending is not None and ending.kind == "withdrawn":
            return Withdrawn(f"Gate {self.gate} was withdrawn: {reason}", reason=reason, **known)
        if ending is not None and (ending.kind == "rejected" or (word is not None and word.verdict == "reject")):
            reason, by = (word.reason if word else "") or reason, (word.by if word else "") or by
            told = _sentence(f"{by} said no to {self.action}{f': {reason}' if reason else ''}")
            told += " Do not do it another way."
            return Rejected(told, by=by, reason=reason, **known)
        return Stopped(f"Run {self.run} is {run.status}: {run.reason}", reason=run.reason, **known)

    def _result(self, run: Run) -> Op[Any]:
        saved = yield from self.api.get(f"runs/{run.id}/checkpoints/{run.seq}", Saved)
        return saved.state.get(self.action + RESULT)


def _decision(gate: Gate, action: str) -> Decision:
    ending = gate.outcome
    word = ending.actions.get(action) if ending else None
    comments = [each.comment for each in gate.agreement.voices if each.counts and each.comment]
    return Decision(
        verdict=word.verdict if word else (ending.kind if ending else ""),
        by=ending.by if ending else "",
        at=ending.at if ending else None,
        comment="\n".join(comments),
    )


def _sentence(said: str) -> str:
    said = said.rstrip()
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."
