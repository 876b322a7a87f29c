"""How the block is left is what is reported: nothing is taken for done that nobody said was."""

from __future__ import annotations

import asyncio

import pytest
from holdpoint import AsyncHoldpoint, Call, NotDone, Problem, Unknown, Unreachable, Withdrawn

from agents.models import Effect
from tests.clients.world import POOL, WIRE, World
from tests.harness.waiting import PATIENCE


def left(world: World, error: BaseException) -> Effect:
    """The effect after its block was left by this error."""
    with world.client() as hp:
        gate = hp.approve.defer("wire", WIRE).id
        world.decides()
        with pytest.raises(type(error)), hp.resume(gate, timeout=PATIENCE):
            raise error
    return Effect.objects.get(run__team=world.team)


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (ValueError("line one\nline two"), "unknown", "ValueError: line one line two"),
        (NotDone("refused at the door"), "failed", "refused at the door"),
        # Of a call inside of the work: it was taken for the report's own, and the effect was not reported at all.
        (Unreachable("No answer within 60 s."), "unknown", "Unreachable: No answer within 60 s."),
        pytest.param(KeyboardInterrupt(), "unknown", "KeyboardInterrupt: ", marks=pytest.mark.long),
        pytest.param(SystemExit(3), "unknown", "SystemExit: 3", marks=pytest.mark.long),
    ],
)
def test_what_is_raised_decides_between_failed_and_unknown(
    web: str, error: BaseException, status: str, words: str
) -> None:
    row = left(World(web), error)
    assert (row.status, row.error.strip()) == (status, words.strip())


def test_what_is_forgotten_is_unknown_and_warned_of(world: World) -> None:
    with world.client() as hp:
        gate = hp.approve.defer("wire", WIRE).id
        world.decides()
        with pytest.warns(RuntimeWarning, match=r"Call call\.done"), hp.resume(gate, timeout=PATIENCE):
            pass
    assert Effect.objects.get(run__team=world.team).status == "unknown"
    assert world.gate("recovery").asked.title == "Did “wire” happen? wire"


def test_what_was_said_before_an_error_stands(world: World) -> None:
    with world.client() as hp:
        gate = hp.approve.defer("wire", WIRE).id
        world.decides()
        approval = hp.resume(gate, timeout=PATIENCE)
        approval.__enter__().done({"id": "tx_1"})
        approval.__exit__(KeyError, KeyError("later"), None)
    assert Effect.objects.get(run__team=world.team).status == "done"


def test_a_failure_that_may_be_tried_again_is_handed_out_under_the_same_key(world: World) -> None:
    keys = []
    with world.client() as hp:
        gate = hp.approve.defer("wire", WIRE).id
        world.decides()
        with hp.resume(gate, timeout=PATIENCE) as call:
            keys.append(call.key)
            call.failed("503", retry=True)
        with hp.resume(gate, timeout=PATIENCE) as call:
            keys.append(call.key)
            call.done(object())
    assert len(keys) == 2
    row = Effect.objects.get(run__team=world.team)
    assert (row.status, row.key) == ("done", keys[1])
    assert str(row.returned["wire_result"]).startswith("<object object")


def test_a_task_that_is_cancelled_reports_that_nobody_knows(world: World) -> None:
    with world.client() as hp:
        gate = hp.approve.defer("wire", WIRE).id
    world.decides()

    async def program() -> None:
        async with world.awaited() as hp:
            begun = asyncio.Event()

            async def wires() -> None:
                async with hp.resume(gate, timeout=PATIENCE):
                    begun.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(wires())
            await asyncio.wait_for(begun.wait(), PATIENCE)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(program())
    row = Effect.objects.get(run__team=world.team)
    assert (row.status, row.error.strip()) == ("unknown", "CancelledError:")


def test_a_call_shows_neither_arguments_nor_token(world: World) -> None:
    with world.client() as hp:
        gate = hp.approve.defer("wire", WIRE).id
        world.decides()
        with hp.resume(gate, timeout=PATIENCE) as call:
            assert isinstance(call, Call)
            assert repr(call) == f"<Call wire of gate {gate}>"
            call.done()


def test_what_is_not_needed_any_more_is_taken_back(world: World) -> None:
    with world.client() as hp:
        gate = hp.approve.defer("wire", WIRE).id
        assert hp.withdraw(gate, "The invoice was cancelled.").status == "withdrawn"
        with pytest.raises(Withdrawn, match=r"The invoice was cancelled\."), hp.resume(gate, timeout=PATIENCE):
            pass
        with pytest.raises(Problem, match="The gate was withdrawn"):
            hp.withdraw(gate)


def test_without_its_block_nobody_goes_on_without_people_and_what_was_allowed_is_unknown(world: World) -> None:
    """`hp.approve(…)` alone asked nobody, so that the lines after it ran as if people had been asked."""
    world_decides = POOL.submit(world.decides)
    with world.client() as hp:
        with pytest.warns(RuntimeWarning, match="done in a block"):
            hp.approve("wire", WIRE, timeout=PATIENCE)
        assert world_decides.result(PATIENCE).asked.actions[0].arguments == WIRE
        with pytest.raises(Unknown):
            hp.resume(world_decides.result().pk, timeout=1)  # nobody answers
    assert world.gate("recovery").asked.title == "Did “wire” happen? wire"


def test_an_awaited_one_without_its_block_is_warned_of() -> None:
    hp = AsyncHoldpoint("http://127.0.0.1:9", "hp_a")
    with pytest.warns(RuntimeWarning, match="Nobody was asked"):
        hp.approve("wire", WIRE)
