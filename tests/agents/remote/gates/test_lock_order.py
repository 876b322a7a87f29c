"""A call of a program and a person who moves its run lock in one order, also where gates are open beside it.

The person has the gates already, and takes the run once the call waits: a call that had taken the run before the gates
would then wait for a person who waits for it, and the database would end one of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from agents.moves.cancel import cancel
from agents.remote import go_on_without_program
from agents.session import gates_beside
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.harness.racing_threads import meet_lock

from ..outside_program import Program, decide
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
