"""The calls of one turn of a framework's agent take turns, and none waits for one that never began."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from holdpoint import Invalid, StaleToken
from holdpoint.errors import CannotResume
from holdpoint.tool_runs import driving
from holdpoint.tool_runs.driving import ToolRun
from holdpoint.tool_runs.plan import Verdict, Words

from tests.harness.waiting import PATIENCE

REFUSED = Invalid(422, {"detail": "The state is too large."})
LOST = StaleToken(409, {"detail": "Somebody else has the run."})


class Standing:
    """A run whose server refuses the first request of one kind."""

    def __init__(self, refuses: str, calls: list[dict[str, Any]]) -> None:
        self.refuses = refuses
        self.state: dict[str, Any] = {"calls": calls}
        self.begun: list[str] = []

    async def save(self, step: str, *, set: dict[str, Any], next_step: str | None) -> None:
        """Keep the state."""
        self.refuse("save", REFUSED)
        self.state |= set

    async def begin(self, step: str) -> Any:
        """Begin the call at which it stands."""
        self.refuse("begin", REFUSED)
        self.begun.append(self.state["calling"])
        return SimpleNamespace(id=len(self.begun))

    async def unknown(self, effect: Any, error: str) -> None:
        """Take the report."""

    def check(self) -> None:
        """Tell that the claim is lost."""
        self.refuse("check", LOST)

    def refuse(self, what: str, error: Exception) -> None:
        """Raise the error, once."""
        if self.refuses == what:
            self.refuses = ""
            raise error


def verdict(id: str) -> Verdict:
    """An approved call."""
    return Verdict(id=id, tool="pay", call=id, kind="approve", arguments={}, asked={})


@pytest.mark.parametrize("refuses", ["save", "begin", "check"])
def test_a_call_that_cannot_begin_lets_the_others_of_its_turn_begin(refuses: str) -> None:
    """Where the save or the beginning failed, the turn stayed this call's, and the others waited for ever."""

    async def turn() -> list[str]:
        calls: list[dict[str, Any]] = [{"id": each, "tool": "pay", "arguments": {}} for each in ("first", "second")]
        run = Standing(refuses, calls)
        hp, standing, framework = cast(Any, (SimpleNamespace(), run, SimpleNamespace(agent="teller")))
        made: ToolRun[Any] = ToolRun(hp, standing, framework, Words())
        with pytest.raises((Invalid, StaleToken)):
            await made.begin(verdict("first"), "pay", {})
        second = await asyncio.wait_for(made.begin(verdict("second"), "pay", {}), PATIENCE)
        await second.unknown()
        return run.begun

    assert asyncio.run(turn())[-1] == "second"


def test_a_call_at_which_the_run_stands_and_that_is_not_made_again_ends_the_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its process had died, and its tool took other arguments by now: the next call waited for ever."""
    monkeypatch.setattr(driving, "COMES_WITHIN", 0.05)

    async def turn() -> None:
        run = Standing("", [])
        hp, standing, framework = cast(Any, (SimpleNamespace(), run, SimpleNamespace(agent="teller")))
        made: ToolRun[Any] = ToolRun(hp, standing, framework, Words())
        made._at = "first"
        with pytest.raises(CannotResume, match="stands at first, which the agent did not call again"):
            await asyncio.wait_for(made.begin(verdict("second"), "pay", {}), PATIENCE)
        assert run.begun == []

    asyncio.run(turn())
