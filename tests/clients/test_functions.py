"""`@hp.requires_approval`: the function runs with what people left of its arguments, in its own types."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any, Literal

import httpx
import pytest
from holdpoint import AlreadyDone, AsyncHoldpoint, Holdpoint, HoldpointError, NotDone, Rejected
from pydantic import BaseModel, Field

from agents.models import Effect
from agents.moves import rewind
from approvals.errors import Invalid
from approvals.models import Gate
from checkpoints.models import Run
from tests.agents.remote.outside_program import decide
from tests.clients.world import World, ended
from tests.factories import ann
from tests.harness.waiting import PATIENCE


class Account(BaseModel):
    """Somebody's account; the bank has two kinds."""

    iban: str = Field(pattern="^[A-Z]{2}[0-9]+$")
    kind: Literal["giro", "savings"] = "giro"


class Payment(BaseModel):
    """What is paid, to whom, when."""

    amount: Decimal
    account: Account
    due: date
    cents: int


PAYMENT = Payment(
    amount=Decimal("120.10"), account=Account(iban="DE02"), due=date(2026, 3, 2), cents=12345678901234567890123
)
NOTE_DRAWN = [{"kind": "command", "at": "/note"}]


def test_models_and_decimals_come_back_exactly_as_they_were_edited(world: World) -> None:
    taken: list[Any] = []

    def program(hp: Holdpoint) -> Payment:
        @hp.requires_approval(
            title="Pay {payment.amount} on {payment.due}", risk="high", pinned=["payment"], draws=NOTE_DRAWN
        )
        def pay(payment: Payment, note: str = "", *, key: str = "") -> Payment:
            taken.extend([payment, note, key])
            return payment

        return pay(PAYMENT)

    told = world.runs(program)
    gate = world.gate()
    card = gate.asked
    assert (card.title, card.risk, card.actions[0].tool) == ("Pay 120.10 on 2026-03-02", "high", "pay")
    assert [each.to_json() for each in card.actions[0].draws] == NOTE_DRAWN
    asked = card.actions[0].arguments
    assert asked == {
        "payment": {"amount": "120.10", "account": {"iban": "DE02", "kind": "giro"}, "due": "2026-03-02",
                    "cents": 12345678901234567890123},
        "note": "",
    }  # fmt: skip
    payment = {**asked["payment"], "amount": "99.990", "account": {"iban": "FR76", "kind": "savings"}}
    decide(gate, "edit", arguments={"pay": {"payment": payment, "note": "Split."}})
    returned = told.result(PATIENCE)
    wanted = PAYMENT.model_copy(update={"amount": Decimal("99.990"), "account": Account(iban="FR76", kind="savings")})
    assert taken[:2] == [wanted, "Split."]
    assert str(taken[0].amount) == "99.990"
    assert returned == wanted
    assert taken[2] == Effect.objects.get(run=gate.run_id).key
    assert ended(gate.run_id)["pay_result"] == payment


def test_what_does_not_fit_the_signature_can_not_be_decided(world: World) -> None:
    with world.client() as hp:

        @hp.requires_approval()
        def pay(account: Account, amount: Decimal) -> None:
            """Pay somebody."""

        pay.defer(Account(iban="DE02"), Decimal("1.5"))
        gate = world.gate()
        assert gate.asked.title == "Pay somebody."
        for wrong in ({"amount": "much"}, {"account": {"iban": "none", "kind": "giro"}}, {"more": 1}, {"amount": 1.5}):
            with pytest.raises(Invalid):
                decide(gate, "edit", arguments={"pay": {**gate.asked.actions[0].arguments, **wrong}})
        with pytest.raises(TypeError, match="missing a required argument: 'account'"):
            pay.defer()  # type: ignore[call-arg]
    assert Gate.objects.get(pk=gate.pk).status == "open"


def test_an_answer_in_its_place_is_returned_in_its_own_type(world: World) -> None:
    def program(hp: Holdpoint) -> Decimal:
        @hp.requires_approval(respond=True)
        def rate(currency: str) -> Decimal:
            raise AssertionError("it was answered for")

        return rate("EUR")

    told = world.runs(program)
    world.decides("", verdicts={"rate": {"verdict": "respond", "response": "1.0850"}})
    assert str(told.result(PATIENCE)) == "1.0850"


def test_a_function_that_was_done_before_gives_what_it_gave(world: World) -> None:
    done = []
    with world.client() as hp:

        @hp.requires_approval(timeout=PATIENCE)
        def pay(amount: Decimal) -> Decimal:
            done.append(amount)
            return amount * 2

        gate = pay.defer(Decimal("1.50")).id
        world.decides()
        assert [pay.resume(gate), pay.resume(gate)] == [Decimal("3.00"), Decimal("3.00")]
    assert done == [Decimal("1.50")]


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (OSError("the line was cut"), "unknown", "OSError: the line was cut"),
        (NotDone("503 before anything was sent"), "failed", "503 before anything was sent"),
    ],
)
def test_what_a_function_raises_decides_whether_people_are_asked(
    world: World, error: Exception, status: str, words: str
) -> None:
    with world.client() as hp:

        @hp.requires_approval(timeout=PATIENCE)
        def pay(amount: Decimal) -> None:
            raise error

        gate = pay.defer(Decimal(1)).id
        world.decides()
        with pytest.raises(type(error), match=str(error)):
            pay.resume(gate)
    row = Effect.objects.get(run__team=world.team)
    assert (row.status, row.error) == (status, words)
    if status == "unknown":
        question = world.gate("recovery")
        assert question.asked.title.startswith("Did “pay” happen?")
        assert question.asked.summary == words


@pytest.mark.parametrize("awaited", [False, True])
def test_what_a_call_inside_of_it_was_refused_is_not_the_functions_result(world: World, awaited: bool) -> None:
    """It was returned as if the function had done it, while people were asked whether that happened."""
    inside = AlreadyDone("The mail was already done, once. Use its result.", gate=1, run=1, result="sent")

    def program(hp: Holdpoint) -> str:
        @hp.requires_approval
        def pay(to: str) -> str:
            raise inside

        return pay("ACME")

    async def program_awaited(hp: AsyncHoldpoint) -> str:
        @hp.requires_approval
        async def pay(to: str) -> str:
            raise inside

        return await pay("ACME")

    told = world.awaits(program_awaited) if awaited else world.runs(program)
    question = world.decides()
    assert told.exception(PATIENCE) is inside
    assert Effect.objects.get(run=question.run_id).status == "unknown"


def test_what_people_send_back_is_undone_before_it_is_done_again(world: World) -> None:
    bank = []

    with world.client() as hp:

        def cancel(amount: Decimal, result: str, key: str) -> None:
            bank.append(("cancel", amount, result, key))

        @hp.requires_approval(timeout=PATIENCE, undo=cancel)
        def pay(amount: Decimal, *, key: str = "") -> str:
            bank.append(("pay", amount, "", key))
            return f"tx_{len(bank)}"

        gate = pay.defer(Decimal("120.00"))
        world.decides("edit", arguments={"pay": {"amount": "80.00"}})
        assert pay.resume(gate.id) == "tx_1"
        run = Run.objects.get(pk=gate.run)
        rewind.rewind(run, to=1, by=ann(world.team))
        told = world.runs(lambda _: pay.resume(gate.id))
        again = world.gate()
        assert (again.run_id, again.pk != gate.id) == (gate.run, True)
        assert again.asked.actions[0].arguments == {"amount": "120.00"}
        decide(again, "approve")
        assert told.result(PATIENCE) == "tx_3"
    assert [each[:3] for each in bank] == [
        ("pay", Decimal("80.00"), ""), ("cancel", Decimal("80.00"), "tx_1"), ("pay", Decimal("120.00"), ""),
    ]  # fmt: skip
    assert len({each[3] for each in bank}) == 3
    rows = Effect.objects.filter(run=gate.run).order_by("pk")
    assert [(each.status, each.undoes_id is not None) for each in rows] == [
        ("undone", False), ("done", True), ("done", False),
    ]  # fmt: skip


@pytest.mark.long
def test_a_coroutine_function_asks_too(world: World) -> None:
    async def program(hp: AsyncHoldpoint) -> list[str]:
        @hp.requires_approval(title="Pay {amount}", respond=True)
        async def pay(amount: Decimal, *, key: str = "") -> str:
            return f"{amount!r}"

        return [await pay(Decimal("1.10")), await pay.resume((await pay.defer(Decimal(2))).id)]

    told = world.awaits(program)
    world.decides("edit", arguments={"pay": {"amount": "1.00"}})  # and what is asked then is another gate
    world.decides("", verdicts={"pay": {"verdict": "respond", "response": "in cash"}})
    assert told.result(PATIENCE) == ["Decimal('1.00')", "in cash"]


def test_a_no_to_a_coroutine_function_is_raised(world: World) -> None:
    async def program(hp: AsyncHoldpoint) -> None:
        @hp.requires_approval()
        async def pay(amount: Decimal) -> None:
            raise AssertionError("it was refused")

        await pay(Decimal(1))

    told = world.awaits(program)
    world.decides("reject", comment="No.")
    with pytest.raises(Rejected):
        told.result(PATIENCE)


@pytest.mark.long
def test_a_method_asks_about_its_arguments_and_not_about_its_object(world: World) -> None:
    with world.client() as hp:

        class Bank:
            def __init__(self, name: str) -> None:
                self.name = name

            @hp.requires_approval
            def pay(self, amount: Decimal) -> str:
                """Pay somebody."""
                return f"{self.name} paid {amount}"

        bank = Bank("DSK")
        gate = bank.pay.defer(Decimal("1.5")).id
        world.decides()
        assert Gate.objects.get(pk=gate).asked.actions[0].arguments == {"amount": "1.5"}
        assert bank.pay.resume(gate) == "DSK paid 1.5"


async def coroutine_of(pay: Callable[[str], object]) -> None:
    pay("ann")


def map_of(pay: Callable[[str], object]) -> dict[str, object]:
    return {"paid": [map(pay, ["ann", "bob"])]}


@pytest.mark.parametrize(
    ("unfinished", "words"),
    [
        (coroutine_of, r"pay_all returned a coroutine .* Await it"),
        (map_of, "pay_all returned a result with a map and not its result"),
    ],
)
def test_work_that_the_report_would_run_is_no_result(
    world: World, unfinished: Callable[[Callable[[str], object]], object], words: str
) -> None:
    """A coroutine was kept as its text, and what is read was run by the report, and the run said done."""
    paid: list[str] = []
    with world.client() as hp:

        @hp.requires_approval(timeout=PATIENCE)
        def pay_all(count: int) -> object:
            return unfinished(paid.append)

        gate = pay_all.defer(1).id
        world.decides()
        with pytest.raises(HoldpointError, match=words):
            pay_all.resume(gate)
    row = Effect.objects.get(run__team=world.team)
    assert (paid, row.status) == ([], "unknown"), "the function may have done something before it returned"
    assert re.search(words, row.error)


def test_a_task_that_goes_on_without_its_function_is_asked_about(world: World) -> None:
    """Where something may be under way already, nobody knows whether it happens."""

    async def program(hp: AsyncHoldpoint) -> None:
        @hp.requires_approval
        async def retried(amount: int) -> Awaitable[None]:
            return asyncio.ensure_future(asyncio.sleep(0))

        await retried(1)

    told = world.awaits(program)
    world.decides()
    error = told.exception(PATIENCE)
    assert type(error) is HoldpointError
    assert "retried returned a Task" in str(error)
    assert Effect.objects.get(run__team=world.team).status == "unknown"


def test_a_block_reports_no_coroutine_and_no_generator_as_its_result(world: World) -> None:
    with world.client() as hp:
        gate = world.allowed(hp)
        with (
            pytest.raises(HoldpointError, match="wire returned a generator"),
            hp.resume(gate, timeout=PATIENCE) as call,
        ):
            call.done(each for each in ("tx_1", "tx_2"))
    assert Effect.objects.get(run__team=world.team).status == "unknown"


def test_a_result_of_any_class_is_kept_as_text(world: World) -> None:
    """The module could not be imported, although nobody is shown the result's type."""
    with world.client() as hp:

        @hp.requires_approval(timeout=PATIENCE)
        def call(url: str) -> httpx.Response:
            return httpx.Response(204)

        gate = call.defer("http://bank").id
        world.decides()
        assert call.resume(gate).status_code == 204
        later: Any = call.resume(gate)
        assert later == "<Response [204 No Content]>"
    assert Effect.objects.get(run__team=world.team).returned["call_result"] == "<Response [204 No Content]>"


def pays(amount: int) -> int:
    return amount


async def pays_later(amount: int) -> int:
    return amount


def pays_some(amount: int) -> Iterator[int]:
    yield amount


async def pays_some_later(amount: int) -> AsyncIterator[int]:
    yield amount


def calls(url: str) -> httpx.Response:
    return httpx.Response(204)


def cancels(receipt: str) -> None: ...


@pytest.mark.parametrize(
    ("function", "terms", "words"),
    [
        # The coroutine was reported as the result of what had never run, and a generator read to its end.
        (pays_later, {}, "take an AsyncHoldpoint"),
        (pays_some, {}, r"pays_some yields .* Return them"),
        (pays_some_later, {}, r"pays_some_later yields .* Return them"),
        (calls, {"respond": True}, r"calls returns httpx\.Response, .* leave respond out"),
        (pays, {"title": "Pay {amout}"}, r"names \{amout\}; pays takes amount"),
        (pays, {"undo": cancels}, "not with receipt"),
    ],
)
def test_what_cannot_work_is_refused_where_it_is_decorated(function: Any, terms: dict[str, Any], words: str) -> None:
    client: Any = AsyncHoldpoint if function is pays_some_later else Holdpoint
    with pytest.raises((TypeError, ValueError), match=words):
        client("http://127.0.0.1:9", "hp_a").requires_approval(**terms)(function)
