"""The logic from a gate to an approved effect: wait for people, claim the run, begin the effect.

It is the same after a crash. The server knows how far the run came: an effect that was begun and not reported is handed
out again under its key if it is idempotent, else people are asked about it, and this waits for their answer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from . import errors
from .answers import Begun, Events, Gate, Outcome, Run, Saved, Turn
from .calls import RESULT, Allowed
from .endings import Said, decision_of, end_sentence, gate_refusal, hand_out, kept_back
from .exact_calls import approved_arguments
from .runs import AGAIN, Held, await_outcome, claim_run
from .sending import Api, Op, Pause

LOG = logging.getLogger("holdpoint")
WORDS = ("title", "summary", "for_whom", "amount", "resource", "risk", "reasons", "quotes")
OF_ACTION = ("id", "title", "tool", "pinned", "draws", "verdicts", "schema", "response", "effect", "pointer")


class Way:
    """The way from one gate to its approved effect. `timeout`: seconds to wait for people; None for ever.

    `asked`: the arguments that this program asks about, by action; none where it goes on by the gate's number alone.
    """

    def __init__(
        self,
        api: Api,
        gate: int,
        *,
        timeout: float | None = None,
        undoes: bool = False,
        several: bool = False,
        asked: Mapping[str, Any] | None = None,
    ) -> None:
        self.api = api
        self.gate = gate  # the newest gate that asked
        self.until = float("inf") if timeout is None else api.habits.clock() + timeout
        self.undoes = undoes  # whether the caller can undo the effect
        self.several = several  # whether it does several actions, one after the other
        self.asked, self.first = asked or {}, gate
        self.run = 0
        self.url = ""
        self.actions: list[str] = []

    @property
    def about(self) -> str:
        return ", ".join(self.actions)

    @property
    def known(self) -> dict[str, Any]:
        """Return the gate, run and page, which every refusal has."""
        return {"gate": self.gate, "run": self.run, "url": self.url}

    def allowed(self) -> Op[Allowed]:
        """Return the effect, begun. Raises Refused in one of its kinds, StillOpen, Unknown, ToTakeBack, Altered."""
        yield from self.decided()
        found = yield from self.following()
        if found is None:
            raise (yield from self._end())
        return found

    def decided(self) -> Op[None]:
        """Wait for people. Raises StillOpen."""
        gate = yield from self.api.get(f"gates/{self.gate}", Gate)
        if len(gate.actions) != 1 and not self.several:
            raise errors.HoldpointError(
                f"Gate {gate.id} asks about {len(gate.actions)} things, and this goes on with one: take resume_each, "
                f"or work on its run by run({gate.run}).claim()."
            )
        self.run, self.url, self.actions = gate.run, gate.url, gate.actions
        LOG.info("Gate %s asks: %s %s", gate.id, end_sentence(gate.title), gate.url)
        yield from await_outcome(self.api, self.gate, self.until)

    def following(self, run_claim: Held | None = None, turn: Turn | None = None) -> Op[Allowed | None]:
        """Return the next effect, begun; None if the run has ended. `run_claim`, `turn`: of a claim taken before."""
        while True:
            try:
                if run_claim is None or turn is None:
                    run_claim, turn = yield from claim_run(self.api, self.run)
            except errors.RunEnded:
                return None
            except errors.NotClaimable:
                yield from self._wait()
                continue
            found = yield from self._taken(run_claim, turn)
            if found is not None or turn.ended:
                return found
            run_claim = turn = None

    def answer(self) -> Op[Said]:
        """Return people's decision on a question that performs nothing.

        Raises Refused, StillOpen, Altered and NotHandedOut.
        """
        outcome, gate = yield from self.settled()
        refusal = gate_refusal(gate, self.actions, self.known)
        if isinstance(refusal, errors.Answered):
            return Said(**self.known, decision=decision_of(gate, self.about), arguments={}, edits=[],
                        answer=refusal.answer)  # fmt: skip
        if refusal is not None:
            raise refusal
        given = outcome.outcome.arguments.get(self.about) if outcome.outcome else None
        edits, asked = outcome.edits.get(self.about, []), self.asked.get(self.about)
        arguments = approved_arguments(gate, self.about, given or {}, asked=asked, edits=edits)
        handed = yield from hand_out(self.api, self.gate, to=f"gate-{self.gate}")
        at, decision = None if handed.first else handed.at, decision_of(gate, self.about)
        return Said(**self.known, decision=decision, arguments=arguments, edits=edits, told_at=at)

    def settled(self) -> Op[tuple[Outcome, Gate]]:
        """Wait for people, and end the run, which performs nothing; return what `outcome_and_gate` does.

        Raises StillOpen, and NotHandedOut for a token that may not work on runs.
        """
        yield from self.decided()
        try:
            held, _ = yield from claim_run(self.api, self.run)
            held.let_go()
        except (errors.NotClaimable, errors.RunEnded):
            LOG.debug("Run %s ends by itself", self.run)
        except errors.NotAllowed as refusal:
            raise (yield from kept_back(self.api, self.gate, refusal)) from refusal
        return (yield from self.outcome_and_gate())

    def outcome_and_gate(self) -> Op[tuple[Outcome, Gate]]:
        outcome = yield from self.api.get(f"gates/{self.gate}/outcome", Outcome)
        gate = yield from self.api.get(f"gates/{self.gate}", Gate)
        return outcome, gate

    def results(self) -> Op[dict[str, Any]]:
        """Return the actions' results, as far as the run has them."""
        run = yield from self.api.get(f"runs/{self.run}", Run)
        saved = yield from self.api.get(f"runs/{run.id}/checkpoints/{run.seq}", Saved)
        found = {name: saved.state.get(name + RESULT) for name in self.actions}
        return {name: result for name, result in found.items() if result is not None}

    def ended_badly(self) -> Op[errors.HoldpointError | None]:
        """Return why a run that has ended was not completed; None if it was."""
        run = yield from self.api.get(f"runs/{self.run}", Run)
        return None if run.status == "completed" else (yield from self._end())

    def _taken(self, run_claim: Held, turn: Turn) -> Op[Allowed | None]:
        """Do what comes next in the run; return None to look again."""
        try:
            if turn.next.kind == "effect":
                return (yield from self._begun(run_claim, turn))
            if turn.next.kind == "undo":
                return (yield from self._undone(run_claim, turn))
            if turn.next.kind == "gate":
                yield from self._asked_again(run_claim, turn.next.step)
        except errors.StaleToken:
            LOG.info("Run %s was moved meanwhile", self.run)
        except BaseException:
            run_claim.let_go()
            raise
        run_claim.let_go()
        return None

    def _begun(self, run_claim: Held, turn: Turn) -> Op[Allowed | None]:
        begun = yield from run_claim.work("effects", {"step": turn.next.step})
        effect, state = begun.next.effect, begun.state or turn.state or {}
        if effect is None or begun.next.kind != "effect":
            return None  # people have to be asked first
        outcome, gate = yield from self._granting(effect)
        action = turn.next.step if self.several else self.about
        edits, decision = outcome.edits.get(action, []), decision_of(gate, action)
        asked = self.asked.get(action) if gate.id == self.first else None  # people may have edited the state since
        try:
            arguments = approved_arguments(gate, action, state.get(action) or {}, asked=asked, edits=edits)
        except errors.Altered as error:
            yield from run_claim.work(f"effects/{effect.id}/results", {"status": "failed", "error": str(error)})
            raise
        at = run_claim, self.gate, self.url, action
        return Allowed(*at, arguments, effect, edits, decision, goes_on=self.several)

    def _granting(self, effect: Begun) -> Op[tuple[Outcome, Gate]]:
        """Return what `outcome_and_gate` does, of the gate that gave the effect's grant.

        It is a later one where the run was sent back and another process asked again.
        """
        current = yield from self.outcome_and_gate()
        after, more = "", effect.grant not in (None, *(grant.id for grant in current[0].grants))
        while more:
            page = yield from self.api.get("events", Events, subject=f"run:{self.run}", after=after)
            for event in page.items:
                gate = int(event.subject.partition(":")[2]) if event.kind == "gate.opened" else 0
                if gate > self.gate:
                    outcome = yield from self.api.get(f"gates/{gate}/outcome", Outcome)
                    if effect.grant in [grant.id for grant in outcome.grants]:
                        self.gate, self.url = gate, outcome.url
                        return (yield from self.outcome_and_gate())
            after, more = page.next, page.more
        return current

    def _undone(self, run_claim: Held, turn: Turn) -> Op[Allowed | None]:
        undoes = turn.next.undoes
        if undoes is None:
            return None
        if not self.undoes:
            yield from run_claim.work("releases", {})
            raise errors.ToTakeBack(
                f"People sent run {self.run} back: take back what was done under the key {undoes.key} first "
                f"({undoes.undo}). Claim the run, begin_undo({undoes.id}), do it, and report it.",
                run=self.run, effect=undoes.id, key=undoes.key,
            )  # fmt: skip
        begun = yield from run_claim.work("effects", {"undoes": undoes.id})
        if begun.next.effect is None:
            return None
        _, gate = yield from self.outcome_and_gate()
        left, decision = begun.state or {}, decision_of(gate, self.about)
        return Allowed(run_claim, self.gate, self.url, self.about, left, begun.next.effect, [], decision, undoes)

    def _asked_again(self, run_claim: Held, step: str) -> Op[None]:
        """Ask again with the same card: the run came back to its gate, and the approval no longer holds."""
        gate = yield from self.api.get(f"gates/{self.gate}", Gate)
        card = {name: gate.card[name] for name in WORDS if name in gate.card}
        actions = [{name: action[name] for name in OF_ACTION if name in action} for action in gate.card["actions"]]
        turn = yield from run_claim.work("gates", {**card, "actions": actions, "step": step})
        self.gate, self.url = turn.gate or self.gate, turn.gate_url or self.url

    def _wait(self) -> Op[None]:
        """Wait until the run can be claimed again, as far as that is known. Raises StillOpen, Unknown."""
        run = yield from self.api.get(f"runs/{self.run}", Run)
        if not run.gates:
            if self.api.habits.clock() >= self.until:
                raise errors.StillOpen(
                    f"Run {self.run} has another worker now, or pauses. Resume gate {self.gate} later.", **self.known
                )
            yield Pause(AGAIN)
            return
        gate = yield from self.api.get(f"gates/{run.gates[-1]}", Gate)
        if gate.kind == "review":
            self.gate, self.url = gate.id, gate.url
            yield from await_outcome(self.api, gate.id, self.until)
            return
        LOG.warning("People are asked at gate %s: %s %s", gate.id, end_sentence(gate.title), gate.url)
        try:
            yield from await_outcome(self.api, gate.id, self.until)
        except errors.StillOpen:
            raise errors.Unknown(
                f"People are asked at gate {gate.id} how to go on: {end_sentence(gate.title)} Do not do it again; "
                f"resume gate {self.gate} later.",
                gate=gate.id, run=self.run, url=gate.url,
            ) from None  # fmt: skip

    def _end(self) -> Op[errors.HoldpointError]:
        """Return why nothing is to be done in a run that has ended."""
        run = yield from self.api.get(f"runs/{self.run}", Run)
        _, gate = yield from self.outcome_and_gate()
        refusal = gate_refusal(gate, self.actions, self.known)
        if run.status == "completed" and not isinstance(refusal, (errors.Answered, errors.Rejected)):
            result = (yield from self.results()).get(self.about)
            message = f"{self.about} was already done, once. Use its result."
            return errors.AlreadyDone(message, result=result, **self.known)
        if refusal is not None and (run.status == "completed" or not isinstance(refusal, errors.Answered)):
            return refusal
        return errors.Stopped(f"Run {self.run} is {run.status}: {run.reason}", reason=run.reason, **self.known)
