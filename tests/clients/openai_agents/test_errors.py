"""Errors in the adapter's own terms, which say what to do."""

from __future__ import annotations

import pytest

from agents.models import Effect
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from checkpoints.store import claims
from tests.clients.openai_agents.conftest import Program
from tests.clients.openai_agents.test_verdicts import REFUND
from tests.clients.scripted_model import Call, scripted
from tests.clients.world import World
from tests.conftest import SharedWeb


def test_two_calls_under_one_id_are_refused(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND, ("mail", {"to": "a"})]) as model:
        model.same_id = True
        service = starts(world, model, "plain", "run", "k1")
        service.says(r"(CannotAsk \| Two calls of the agent have the id|raised ModelBehaviorError)")


def test_a_key_with_another_input_is_refused(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND], [REFUND]) as model:
        starts(world, model, "plain", "run", "k1")
        world.gate()
        starts(world, model, "plain", "run", "k1", "Something else.").says(
            r"KeyReused \| The key 'k1' belongs to another input: go on with that one, or choose a new key"
        )


def test_a_run_state_of_other_agents_or_versions_is_refused(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND], "Done.") as model:
        number = int(starts(world, model, "plain", "defer").says(r"pending \d+").split()[1])
        world.decides()
        starts(world, model, "renamed", "resume", number).says(
            r"CannotResume \| The saved RunState cannot be restored: .* Resume with the agents that saved it"
        )
        starts(world, model, "plain", "resume", number).says("final Done")


@pytest.mark.long
def test_a_run_state_of_another_version_of_the_sdk_is_refused(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND]) as model:
        first = starts(world, model, "plain", "defer", SAVED_BY="9.9")
        number = int(first.says(r"pending \d+").split()[1])
        world.decides()
        starts(world, model, "plain", "resume", number).says(
            r"CannotResume \| .*schema version is not supported.* the version of openai-agents that did, or run"
        )


@pytest.mark.long
def test_a_gate_that_does_not_exist_is_refused(web: str, starts: Program) -> None:
    world = World(web)
    with scripted() as model:
        starts(world, model, "plain", "resume", 987654321).says(r"CannotResume \| There is no gate 987654321")


def test_a_gate_of_another_program_is_refused(web: str, starts: Program) -> None:
    world = World(web)
    with scripted() as model, world.client() as hp:
        gate = hp.approve.defer("wire", {"to": "ACME"}, title="Pay").id
        starts(world, model, "plain", "resume", gate).says(r"CannotResume \| Gate \d+ was not opened by")


@pytest.mark.long
def test_a_state_that_is_too_large_says_what_to_do(shared_web: SharedWeb, starts: Program) -> None:
    world = World(shared_web({"HOLDPOINT_STATE_LIMIT": "100000"}))
    for length, name in ((50_000, "too-large"), (2_000_000, "far-too-large")):  # the request itself is too large too
        large: Call = ("refund", {"order": "7" * length, "amount": "1"})
        with scripted([large]) as model:
            service = starts(world, model, "plain", "run", name, PATIENCE="5")
            service.says(r"StateTooLarge \| The state of Teller is too large")


@pytest.mark.long
def test_a_tool_that_was_removed_meanwhile_says_what_to_do_and_its_approval_stays(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND], "Done.") as model:
        number = int(starts(world, model, "plain", "defer").says(r"pending \d+").split()[1])
        world.decides()
        starts(world, model, "less", "resume", number).says(
            rf"CannotResume \| The agent Teller has no tool refund by now, about which people decided at gate {number}"
        )
        assert not Effect.objects.filter(run__team=world.team).exists()
        service = starts(world, model, "plain", "resume", number)
        service.says("final Done")
        assert service.log.count("ran refund") == 1


@pytest.mark.long
def test_a_result_that_is_too_large_says_what_to_do(shared_web: SharedWeb, starts: Program) -> None:
    world = World(shared_web({"HOLDPOINT_STATE_LIMIT": "100000"}))
    with scripted([("archive", {"order": "7"})], "Done.", "Done.") as model:
        service = starts(world, model, "plain", "run", "k1")
        world.decides()
        service.says(r"StateTooLarge \| archive ran, but the server does not keep its result \(200,002 bytes\)")
        told = {"choice": "happened", "value": {"results": {"archive": "in the cellar"}}}
        world.decides("answer", kind="recovery", answer=told)
        second = starts(world, model, "plain", "run", "k1")
        second.says("final Done")
        assert "ran archive" not in second.log
        assert "in the cellar" in model.told()


@pytest.mark.long
def test_arguments_that_are_no_object_are_shown_as_they_are(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([("refund", '{"order": "7", "order": "8", "amount": "1"}')], "Done.") as model:
        service = starts(world, model, "plain", "run", "k1")
        assert world.gate().asked.actions[0].arguments == {"input": '{"order": "7", "order": "8", "amount": "1"}'}
        world.decides("reject", comment="Twice?", then="back")
        service.says("final Done")


@pytest.mark.long
def test_a_number_that_json_cannot_hold_is_refused(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([("refund", '{"order": "7", "amount": 1e999}')]) as model:
        service = starts(world, model, "plain", "run", "k1")
        service.says(r"CannotAsk \| The arguments of refund cannot be shown")


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
