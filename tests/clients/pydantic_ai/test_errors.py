"""Errors in the adapter's own terms, which say what to do."""

from __future__ import annotations

import pytest

from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from checkpoints.store import claims
from tests.clients.pydantic_ai.conftest import Program
from tests.clients.pydantic_ai.test_verdicts import MAIL, REFUND
from tests.clients.scripted_model import scripted
from tests.clients.world import World


def test_two_calls_under_one_id_are_refused(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND, MAIL]) as model:
        model.same_id = True
        starts(world, model, "plain", "run", "k1").says(r"(CannotAsk \| Two calls of the agent have the id|raised \w+)")


@pytest.mark.long
def test_a_history_of_another_version_is_refused_and_its_approval_stays(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND], "Done.") as model:
        number = int(starts(world, model, "plain", "defer", SAVED_BY="9.9").says(r"pending \d+").split()[1])
        world.decides()
        starts(world, model, "plain", "resume", number).says(
            r"CannotResume \| The saved messages cannot be read: .* Resume with the version of pydantic-ai that saved"
        )


@pytest.mark.long
def test_a_gate_that_does_not_exist_or_is_another_programs_is_refused(web: str, starts: Program) -> None:
    world = World(web)
    with scripted() as model, world.client() as hp:
        starts(world, model, "plain", "resume", 987654321).says(r"CannotResume \| There is no gate 987654321")
        gate = hp.approve.defer("wire", {"to": "ACME"}, title="Pay").id
        starts(world, model, "plain", "resume", gate).says(r"CannotResume \| Gate \d+ was not opened by")


@pytest.mark.long
def test_a_number_that_json_cannot_hold_is_refused(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([("refund", '{"order": "7", "amount": 1e999}')], "Done.") as model:
        service = starts(world, model, "plain", "run", "k1")
        service.says(r"(CannotAsk \| The arguments of refund cannot be shown|final Done)")
        assert "ran refund" not in service.log


@pytest.mark.long
def test_a_program_whose_run_another_took_over_is_told(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND], "hang") as model:
        service = starts(world, model, "plain", "run", "k1")
        gate = world.decides()
        model.was_asked(2)
        row = Run.objects.get(pk=gate.run_id)
        Run.objects.filter(pk=row.pk).update(lease_until=row.created_at)
        assert claims.claim(row.pk, plan_ids=[row.plan_id], worker="box:2", lease=60, by=SYSTEM)
        model.left.set()
        service.says(r"StaleToken \| ")
