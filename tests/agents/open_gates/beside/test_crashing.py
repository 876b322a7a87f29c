"""A worker that crashes anywhere around gates beside its run: killed, by an exception, or by a lost connection.

Whatever crashed, each question is asked and answered once, what the run leaves behind is withdrawn once, and it comes
to the end to which it would have come.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from django.db.models.functions import Now

from agents.models import Wait
from agents.runner import engine
from approvals.models import Gate
from checkpoints.audit import verify_runs
from checkpoints.models import Event, Run
from tests.agents.open_gates.launches import decide, done, gate, open_steps
from tests.agents.steps.killable_workers import KillableWorkers
from tests.factories.driven_runs import make_run, state, trail
from tests.harness.examples import one_in

ACTIONS = ("kill", "raise", "fail", "cut")  # as in the sweep of all points
MOST_TURNS = 20
TURN = ("before_outcome@{0}", "before_save@{0}", "after_save@{0}", "after_commit@{0}", "after_outcome@{0}")
ASKS = ("before_gate@{0}", "before_save@{0}", "after_save@{0}", "after_commit@{0}", "after_gate@{0}")


class Crashing:
    """Workers of which one crashes at `wish`; the next one comes once its lease is over."""

    def __init__(self, workers: KillableWorkers, wish: str, hits: Path) -> None:
        self.workers, self.wish, self.hits = workers, wish, hits

    def rest(self, run: Run) -> Run:
        """Take the run on until it waits for a decision, or has ended; a fault is tried again."""
        for _ in range(MOST_TURNS):
            asked = Gate.objects.open().filter(run=run, kind=Gate.Kind.RECOVERY).first()
            if asked is not None:
                decide(run, asked.step, "answer", answer={"choice": "retry", "value": None})
            mine = Run.objects.filter(pk=run.pk)
            mine.filter(status="running").update(lease_until=Now())
            mine.filter(status="queued").update(wake_at=None)
            run.refresh_from_db()
            if run.status not in ("queued", "running"):
                return run
            if self.hits.exists():
                engine.advance(run.pk)
            else:
                self.workers.tell(f"{run.pk} {self.wish}:1:{self.hits}")
        raise AssertionError(f"{run} is {run.status} at {run.next_step}")


def reviews(run: Run, status: str) -> list[str]:
    """The steps of its questions to reviewers that ended so, oldest first."""
    asked = Gate.objects.filter(run=run, kind=Gate.Kind.REVIEW, status=status)
    return list(asked.order_by("pk").values_list("step", flat=True))


def said(run: Run, kind: str) -> list[str]:
    """The steps of its checkpoints of a kind, in order."""
    return [step for each, step in trail(run) if each == kind]


def both_approve(crashing: Crashing, ledger: Path) -> Run:
    """Both gates are answered, one after the other."""
    run = crashing.rest(make_run("launch", topic="tea", ledger=str(ledger)))
    assert open_steps(run) == ["pricing", "legal"]
    decide(run, "legal")
    run = crashing.rest(run)
    assert (run.next_step, open_steps(run)) == ("offer", ["pricing"])
    decide(run, "pricing", "edit", arguments={"price": 12})
    run = crashing.rest(run)
    assert (run.status, reviews(run, "decided")) == ("completed", ["pricing", "legal"])
    assert (said(run, "asked"), said(run, "answered")) == (["pricing", "legal"], ["legal", "pricing"])
    assert (done(ledger).count("publish"), done(ledger).count("charge 12")) == (1, 1)
    return run


def sent_back(crashing: Crashing, ledger: Path) -> Run:
    """One answer sends the run back to before the other question, which is withdrawn and asked again."""
    run = crashing.rest(make_run("launch", topic="tea", ledger=str(ledger)))
    decide(run, "legal", "reject", comment="Too short.", then="back", back_to="draft")
    run = crashing.rest(run)
    assert open_steps(run) == ["pricing", "legal"]
    assert (reviews(run, "withdrawn"), reviews(run, "decided")) == (["pricing"], ["legal"])
    assert state(run)["text"] == "About tea. Too short."
    return run


def stopped(crashing: Crashing, ledger: Path) -> Run:
    """One answer ends the run, and the other question is withdrawn."""
    run = crashing.rest(make_run("launch", topic="tea", ledger=str(ledger)))
    decide(run, "legal", "reject", comment="No.", then="stop")
    run = crashing.rest(run)
    assert (run.status, open_steps(run), reviews(run, "withdrawn")) == ("cancelled", [], ["pricing"])
    assert gate(run, "pricing").outcome.words == "The run has ended."
    assert Event.objects.filter(run_id=run.pk, kind="gate.withdrawn").count() == 1
    return run


def at_its_end(crashing: Crashing, ledger: Path) -> Run:
    """The run has nothing more to do, and waits for an answer."""
    run = crashing.rest(make_run("busy", topic="tea", ledger=str(ledger)))
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "", ["agree"])
    decide(run, "agree", "edit", arguments={"note": "by hand"})
    run = crashing.rest(run)
    assert (run.status, state(run)["note"], said(run, "answered")) == ("completed", "by hand", ["agree"])
    return run


def asleep(crashing: Crashing, ledger: Path) -> Run:
    """A step waits for a time beside the question, and goes on waiting once that is answered."""
    run = crashing.rest(make_run("busy", topic="tea", ledger=str(ledger), does="sleep"))
    assert (run.status, open_steps(run)) == ("waiting", ["agree"])
    due = Wait.objects.get(run=run).due
    decide(run, "agree")
    run = crashing.rest(run)
    assert (run.status, run.wake_at, said(run, "answered")) == ("waiting", due, ["agree"])
    assert (Wait.objects.filter(run=run).count(), done(ledger).count("called")) == (1, 1)
    return run


FLOWS: dict[Callable[[Crashing, Path], Run], list[str]] = {
    both_approve: [
        *(place.format(step) for step in ("pricing", "legal") for place in (*ASKS, "before_outcome@{0}", TURN[-1])),
        "before_held@publish", "after_held@publish", "before_held@offer", "after_held@offer",
    ],
    sent_back: [*(place.format("legal") for place in TURN), "before_withdraw@pricing", "after_withdraw@pricing"],
    stopped: [*(place.format("legal") for place in TURN), "before_withdraw@pricing", "after_withdraw@pricing"],
    at_its_end: [
        *(place.format("agree") for place in (*ASKS, "before_outcome@{0}", TURN[-1])), "before_held", "after_held",
    ],
    asleep: ["before_wait@work", "beside_asleep", "after_wait@work", *(place.format("agree") for place in TURN)],
}  # fmt: skip
CASES = [(flow, place, action) for flow, places in FLOWS.items() for place, action in product(places, ACTIONS)]


@pytest.mark.parametrize(("flow", "place", "action"), one_in(41, CASES))
def test_whatever_crashes_the_run_comes_to_the_same(
    flow: Callable[[Crashing, Path], Run],
    place: str,
    action: str,
    ledger: Path,
    workers: KillableWorkers,
    tmp_path: Path,
) -> None:
    crashing = Crashing(workers, f"{place}:{action}", tmp_path / "hits")
    run = flow(crashing, ledger)
    assert crashing.hits.exists(), f"{place} was never reached"
    assert verify_runs.verify_run(run) == []
