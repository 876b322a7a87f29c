"""One run with its people, in which crashes are asked for one after the other, each recovered as in real life.

Until the last crash has happened turns are taken in forked processes that may crash; after it, in this one.
Nothing waits: leases and backoffs of the case's own run are aged.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db.models.functions import Now

from agents.examples.refunds import Refunds
from agents.models import Effect
from agents.moves import rewind
from agents.runner import engine
from agents.runs.start import start_run
from approvals.cards.answer import RecoveryAnswer
from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.models import Gate
from approvals.policy import authority
from checkpoints import actors
from checkpoints.models import Checkpoint, Run
from tests.agents.examples.refunds.refund_runs import MAILS
from tests.factories import bob, repeatable
from tests.harness.services import Talking

from .oracle import complaints
from .outside_world import Outside

MOST_TURNS = 60


class Case:
    """Each of `wishes` is what HOLDPOINT_CRASH says up to the hit; none for a run that nothing disturbs."""

    def __init__(self, hand: Talking, outside: Outside, user: User, folder: Path, *wishes: str) -> None:
        self.hand, self.outside, self.user = hand, outside, user
        self.mover, *colleagues = (bob(*user.groups.all()) for _ in range(5))
        self.reviewers = [user, *colleagues]
        self.folder, self.disturbed = folder, bool(wishes)
        self.wishes = deque(wishes)
        self._arm()
        self.passed: Counter[str] = Counter()
        self.asked: list[str] = []
        self.run = Run()

    def _arm(self) -> None:
        """Ask for the next crash; `wish` is empty once all have happened."""
        self.wish = self.wishes.popleft() if self.wishes else ""
        self.counted = self.folder / f"hits-{secrets.token_hex(4)}"

    def start(self, agent: str, mail: str) -> None:
        """Start a run over the bundled mail of that number, unlike any that came before, and let it go on."""
        [input] = Refunds.inputs_from(next(MAILS.glob(f"{mail}-*.eml")))
        input["mail"]["raw"] += f"\nMine, {secrets.token_hex(4)}.\n"
        self.run = start_run(agent, input, by=actors.SYSTEM, team=self.user.groups.get())
        self.go_on()

    def go_on(self) -> None:
        """Take turns until the run has ended, or asks for a review. Questions after a fault are answered truthfully.

        So is whether a refund is right of which less is left than it would come to: other cases were paid before.
        """
        for _ in range(MOST_TURNS):
            self.run.refresh_from_db()
            if self.run.status not in Run.LIVE:
                return
            if self.run.status == Run.Status.WAITING:
                gate = Gate.objects.open().get(run=self.run)
                if gate.step == "ask_doubts":
                    self._answered(gate, {"choice": "pay"})
                elif gate.kind == Gate.Kind.REVIEW:
                    return
                else:
                    self._answer(gate)
            self._turn()
        raise AssertionError(f"{self.run} is {self.run.status} at {self.run.next_step}, asked {self.asked[-3:]}")

    def decide(self, verdict: str = "approve", **said: Any) -> None:
        gate = Gate.objects.open().get(run=self.run)
        seen = bytes(gate.standing().digest)
        said = {"confirm": repeatable(self.run), **said}
        deciding.decide(
            gate, Submission(verdict=verdict, seen=seen, key=secrets.token_hex(8), **said), by=self._reviewer(gate)
        )
        self.go_on()

    def _reviewer(self, gate: Gate) -> User:
        """Whoever wrote some of what is asked about does not decide it, so a colleague does."""
        return next(each for each in self.reviewers if not authority.why_not(each, gate))

    def approve(self, amount: str) -> None:
        standing = Gate.objects.open().get(run=self.run).standing().card.action("refund")
        assert standing is not None
        self.decide("edit", arguments={"refund": {**standing.arguments, "amount": amount}})

    def rewind(self, step: str, feedback: str = "") -> None:
        self._moved("rewind", to=self._before(step), feedback=feedback)

    def edit(self, step: str, pointer: str, value: Any) -> None:
        self._moved("edit", at=self._before(step), patch=[{"op": "replace", "path": pointer, "value": value}])

    def has_ended(self, status: str) -> None:
        found = list(complaints(self.run, self.outside))
        assert self.run.status == status, f"{self.run} is {self.run.status}: {self.run.reason}; asked {self.asked}"
        assert not found, "; ".join(found)

    def _before(self, step: str) -> int:
        found = Checkpoint.objects.filter(run=self.run, next_step=step).order_by("seq").values_list("seq", flat=True)
        return int(found[0])

    def _moved(self, do: str, **how: Any) -> None:
        """Whoever loses the answer looks whether the run was moved, and asks again where it was not."""
        before = self.run.seq
        while self.run.seq == before:
            if self.wish or not self.disturbed:
                self._child(do=do, by=self.mover.pk, how=how)
                self.run.refresh_from_db()
            else:
                act: Callable[..., Any] = rewind.rewind if do == "rewind" else rewind.edit
                act(self.run, by=self.mover, **how)
        self.go_on()

    def _turn(self) -> None:
        """One worker's turn; whoever had the run before is dead, or lets go of it."""
        mine = Run.objects.filter(pk=self.run.pk)
        mine.filter(status=Run.Status.RUNNING).update(lease_until=Now())
        mine.filter(status=Run.Status.QUEUED).update(wake_at=None)
        if self.wish or not self.disturbed:
            self._child(do="advance")
        else:
            engine.advance(self.run.pk)

    def _child(self, **asked: Any) -> None:
        wish = f"{self.wish}:{self.counted}" if self.wish else ""
        answer = self.hand.tell(json.dumps({"run": self.run.pk, "wish": wish, **asked}))
        self.passed.update(json.loads(answer)["passed"])
        if self.wish and self.counted.exists() and self.counted.stat().st_size >= int(self.wish.split(":")[2]):
            self._arm()

    def _answer(self, gate: Gate) -> None:
        """Say what somebody says who has looked at the provider and into the mailbox."""
        question = gate.asked.question
        assert question is not None
        offered = {choice["id"] for choice in question["choices"]}
        self.asked.append(f"{gate.title}: {gate.asked.summary}")
        if RecoveryAnswer.UNDO_AGAIN in offered:
            answer: dict[str, Any] = {"choice": RecoveryAnswer.UNDO_AGAIN}
        elif RecoveryAnswer.HAPPENED in offered or RecoveryAnswer.WAS_DONE in offered:
            aside = RecoveryAnswer.WAS_DONE in offered
            row = Effect.objects.filter(run=self.run, step=gate.step, undoes=None, status="unknown").latest("pk")
            result = self.outside.result_of(row)
            yes, no = (
                (RecoveryAnswer.WAS_DONE, RecoveryAnswer.WAS_NOT_DONE)
                if aside
                else (RecoveryAnswer.HAPPENED, RecoveryAnswer.NOT_HAPPENED)
            )
            answer = {"choice": no} if result is None else {"choice": yes, "value": result}
        else:
            answer = {"choice": RecoveryAnswer.RETRY}
        self._answered(gate, answer)

    def _answered(self, gate: Gate, answer: dict[str, Any]) -> None:
        seen = bytes(gate.standing().digest)
        deciding.decide(
            gate,
            Submission(verdict="answer", seen=seen, key=secrets.token_hex(8), answer=answer),
            by=self._reviewer(gate),
        )
