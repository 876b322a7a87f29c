"""A call of a program and a person who moves its run lock in one order, also where gates are open beside it.

The person has the gates, or the effects, already, and takes the run once the call waits: a call that had taken the run
before them would then wait for a person who waits for it, and the database would end one of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from agents.effects import hold_left_behind
from agents.moves import rewind
from agents.moves.cancel import cancel
from agents.remote import go_on_without_program
from agents.session import gates_beside
from checkpoints.actors import SYSTEM
from checkpoints.models import Checkpoint, Run
from tests.factories import ann
from tests.harness.racing_threads import meet_lock

from ..outside_program import STEPS, Program, decide
from .test_open_gates import gate
from .test_open_gates import note as noted
from .test_open_gates import program as asking

program = asking  # a fixture
Call = Callable[[], object]


def saves(program: Program) -> Call:
    """A checkpoint, after which the run waits for its gates."""
    return partial(program.work, "checkpoints", step="note", ops=[])


def claims(program: Program) -> Call:
    """A claim, which takes up a decision."""
    noted(program)
    decide(gate(program, "review"))
    return partial(program.post, f"runs/{program.run}/claims", {"worker": "box:82"})


def is_gone(program: Program) -> Call:
    """No call: the server goes on in its place."""
    noted(program)
    decide(gate(program, "legal"), "reject", comment="No.", then="stop")
    return partial(go_on_without_program.go_on, program.run)


@pytest.mark.parametrize("does", [saves, claims, is_gone])
def test_a_call_and_a_person_who_cancels_its_run_do_not_wait_for_each_other(
    program: Program, does: Callable[[Program], Call]
) -> None:
    """One of the two was ended by the database as a deadlock."""
    call = does(program)
    run = Run.objects.get(pk=program.run)
    cancelled = partial(cancel, run, by=SYSTEM, reason="not wanted")
    answer = meet_lock(partial(gates_beside.lock, run.pk), call, cancelled)
    assert answer is False if does is is_gone else answer.status_code == 409
    run.refresh_from_db()
    assert (run.status, gate(program, "legal").status == "open") == ("cancelled", False)


class Final(Program):
    """One whose payment cannot be taken back."""

    def register(self, **more: Any) -> dict[str, Any]:
        final = {"undo": "", "irreversible": True}
        steps = [step | final if step["kind"] == "effect" else step for step in STEPS]
        return super().register(steps=steps, **more)

    def edit(self, step: str, **fields: Any) -> None:
        """A person changes the state that a step led to."""
        at = Checkpoint.objects.filter(run=self.run, step=step).latest("seq").seq
        patch = [{"op": "add", "path": f"/{name}", "value": value} for name, value in fields.items()]
        rewind.edit(self.row(), at=at, patch=patch, by=ann(self.team))


def ends(program: Final) -> Call:
    """The end of a run that has left a payment behind: it settles first."""
    program.edit("draft", payment={"to": "ACME", "amount": "80.00"})
    program.claim()
    return partial(program.work, "endings", status="failed", reason="It broke.")


def takes_over(program: Final) -> Call:
    """A claim by which the run takes over the payment that it did before."""
    program.edit("review", log=["n"])
    return partial(program.post, f"runs/{program.run}/claims", {"worker": "box:82"})


@pytest.mark.parametrize("does", [ends, takes_over])
def test_a_call_locks_the_effects_that_it_comes_to_before_the_run(
    does: Callable[[Final], Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain run's effects were locked first only where it settled before: the database ended one of the two."""
    monkeypatch.setattr(rewind, "HALT_SECONDS", 0.0)  # the program is between two calls
    program = Final()
    decide(program.to_gate())
    program.claim()
    program.ok(program.report(program.begin()["id"]))
    call = does(program)
    cancelled = partial(cancel, program.row(), by=SYSTEM, reason="not wanted")
    answer = meet_lock(partial(hold_left_behind.lock, program.row()), call, cancelled)
    assert answer.status_code == (201 if does is takes_over else 409)
    row = program.row()
    assert "cancelled" in (row.status, row.ending)
