"""What makers of tools read of a function that asks first: LangChain's `@tool`, OpenAI's `@function_tool`, editors."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
from decimal import Decimal
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest
from holdpoint import AsyncHoldpoint, Holdpoint
from holdpoint.decorating import Signature
from holdpoint.drivers import operation

from tests.clients.world import World
from tests.harness.waiting import PATIENCE

if TYPE_CHECKING:
    from fractions import Fraction

NOWHERE = ("http://127.0.0.1:9", "hp_a")


async def wire(to: str, amount: Decimal, *, key: str = "") -> str:
    """Wire money.

    Args:
        to: Who gets it.
    """
    return f"{amount} to {to} under {key}"


def wire_called(to: str, amount: Decimal, *, key: str = "") -> str:
    """Wire money."""
    return f"{amount} to {to} under {key}"


def decorated(function: Any) -> Any:
    """The function that asks first, by the client that it belongs to."""
    client: Any = AsyncHoldpoint if inspect.iscoroutinefunction(function) else Holdpoint
    return client(*NOWHERE).requires_approval(title="Wire {amount}")(function)


def finished(function: Any, *args: Any, **more: Any) -> Any:
    """What a function gives, or the coroutine of it."""
    given = function(*args, **more)
    return asyncio.run(given) if inspect.iscoroutine(given) else given


@pytest.mark.parametrize("function", [wire, wire_called])
def test_it_is_a_function_of_the_same_kind_name_and_words(function: Any) -> None:
    """An object in a function's place was called by both, and its coroutine handed on as what it had returned."""
    made = decorated(function)
    assert inspect.isfunction(made)
    assert inspect.iscoroutinefunction(made) == inspect.iscoroutinefunction(function)
    assert (made.__name__, made.__doc__, made.__module__) == (function.__name__, function.__doc__, function.__module__)


@pytest.mark.parametrize("function", [wire, wire_called])
def test_its_key_is_nothing_that_a_model_is_asked_for(function: Any) -> None:
    made = decorated(function)
    assert str(inspect.signature(made)) == "(to: str, amount: decimal.Decimal) -> str"
    assert get_type_hints(made) == {"to": str, "amount": Decimal, "return": str}
    assert str(inspect.signature(made.defer)) == "(to: str, amount: decimal.Decimal) -> holdpoint.approvals.Pending"
    assert str(inspect.signature(made.resume)) == "(gate: 'int') -> str"
    for asks in (made, made.defer):
        with pytest.raises(TypeError, match="unexpected keyword argument 'key'"):
            finished(asks, "ACME", Decimal(1), key="mine")


def test_nothing_of_it_leads_past_the_question() -> None:
    """What unwraps a function calls it without asking."""
    made = decorated(wire)
    assert inspect.unwrap(made) is made
    assert not hasattr(made, "__wrapped__")


class Bank:
    """A method asks as a function does."""

    hp = AsyncHoldpoint(*NOWHERE)

    @hp.requires_approval
    async def wire(self, to: str, *, key: str = "") -> str:
        """Wire money."""
        return to

    @staticmethod
    @hp.requires_approval
    async def check(to: str) -> str:
        """Check an account."""
        return to


@pytest.mark.parametrize("name", ["wire", "check"])
def test_a_method_of_an_object_is_such_a_function_too(name: str) -> None:
    method = getattr(Bank(), name)
    assert inspect.iscoroutinefunction(method)
    assert str(inspect.signature(method)) == "(to: str) -> str"
    assert inspect.iscoroutinefunction(method.defer)


def test_what_a_tool_returns_is_what_the_function_returned_after_people_allowed_it(world: World) -> None:
    async def program(hp: AsyncHoldpoint) -> str:
        tool = hp.requires_approval(title="Wire {amount}")(wire)
        assert inspect.iscoroutinefunction(tool)
        return await tool("ACME", "1.50")  # type: ignore[arg-type]  # as a model's JSON has it

    told = world.awaits(program)
    gate = world.decides()
    assert gate.asked.actions[0].arguments == {"to": "ACME", "amount": "1.50"}
    assert told.result(PATIENCE).startswith("1.50 to ACME under ")


def shown(thing: Any) -> str:
    """What help() prints."""
    return pydoc.plain(pydoc.render_doc(thing))


@pytest.mark.parametrize("client", [Holdpoint, AsyncHoldpoint])
def test_help_tells_of_every_call_what_it_takes_and_gives(client: Any) -> None:
    """It told of the class of the object that `approve` was, and that `gate` takes `self` and gives an `Op`."""
    hp = client(*NOWHERE)
    approve = shown(hp.approve)
    assert "approve(name: 'str', arguments:" in approve
    assert "Ask whether `name` may be done" in approve
    assert "Ask, and return at once; this process or another resumes" in shown(hp.approve.defer)
    assert "Ask about several actions" in shown(hp.approve_each)
    assert "Ask people without doing anything" in shown(hp.ask)
    assert "Make a function ask first" in shown(hp.requires_approval)
    assert {"title", "undo"} <= set(inspect.signature(hp.requires_approval).parameters)
    gate = shown(hp.gate)
    assert "gate(id: 'int') -> 'Gate'" in gate
    assert "Op[" not in shown(client)


@pytest.mark.parametrize(("client", "awaited"), [(Holdpoint, False), (AsyncHoldpoint, True)])
def test_a_call_that_is_awaited_is_a_coroutine_function(client: Any, awaited: bool) -> None:
    hp = client(*NOWHERE)
    calls = [name for name, each in vars(client.__mro__[1]).items() if isinstance(each, operation)]
    assert len(calls) >= 6
    of_run = [hp.run(1).claim, hp.run(1).save]
    asks = [hp.approve.defer, hp.ask]
    for call in [*(getattr(hp, name) for name in calls), *of_run, *asks]:
        assert inspect.iscoroutinefunction(call) == awaited, call


class Handle:
    """A class that pydantic asks for its schema, and that has none."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        raise RuntimeError("no schema")


def for_checkers(cents: int) -> Fraction:
    return cents  # type: ignore[return-value]


def hooked(cents: int) -> Handle:
    return Handle()


def unknown_argument(amount: Fraction) -> None:
    """Pay."""


@pytest.mark.parametrize(("function", "name"), [(for_checkers, "Fraction"), (hooked, "Handle")])
def test_a_result_whose_type_is_unknown_here_stops_no_function_from_asking(function: Any, name: str) -> None:
    """The decorator raised at import where the result's class is for type checkers, or its hook for schemas raises."""
    signature = Signature(function)
    result = Handle()
    assert list(signature.schema()["properties"]) == ["cents"]
    assert signature.result(result) is result
    with pytest.raises(TypeError, match=f"returns {name}, which people cannot answer instead"):
        signature.response()
    with Holdpoint("http://127.0.0.1:9", token="hp_x") as hp:
        assert hp.requires_approval(function).__annotations__["cents"] is int


def test_an_argument_whose_type_is_unknown_is_refused_when_the_function_is_decorated() -> None:
    with pytest.raises(NameError, match="Fraction"):
        Signature(unknown_argument)
