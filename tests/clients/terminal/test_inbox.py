"""The inbox by its keys, against the real server: gates, forms, consequences, decisions, runs, rewinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from holdpoint import Ask
from holdpoint.terminal.app.base import ReviewApp
from holdpoint.terminal.app.deciding import Confirm
from holdpoint.terminal.app.inbox import GateScreen, InboxScreen
from holdpoint.terminal.credentials import Server
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, RadioButton, Select, Static, TextArea

from approvals.models import Gate
from tests.approvals.cards.preconditions.offering_gates import OBSERVING, make_precondition
from tests.clients.terminal.world import WIRE, Reviewer
from tests.factories import bob, decide, edit_amount, make_card, make_gate
from tests.factories.runs import make_plan, make_run, make_spec
from tests.harness.waiting import PATIENCE

Session = Pilot[Any]


@asynccontextmanager
async def inbox(at: Reviewer) -> AsyncIterator[Session]:
    app = ReviewApp(Server(at.url, at.token, "Ann Okafor"), InboxScreen())
    async with app.run_test(size=(120, 45)) as pilot:
        await shows(pilot, "live")
        yield pilot


def has_looked(screen: Any) -> bool:
    """Tell whether the card of the inbox's chosen gate is shown: a key decides only on what is."""
    return not isinstance(screen, InboxScreen) or not screen.chosen or str(screen.looked_at.get("id")) == screen.chosen


def screen_text(pilot: Session) -> str:
    told = [str(each.render()) for each in pilot.app.screen.query(Static)]
    for table in pilot.app.screen.query(DataTable):
        told += [str(cell) for row in table.rows for cell in table.get_row(row)]
    return "\n".join(told)


async def when(pilot: Session, condition: Callable[[], Any], what: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            await pilot.pause()
            try:
                if condition():
                    return
            except Exception:  # noqa: BLE001, S110 - the screen is not there yet
                pass
            await asyncio.sleep(0.02)


async def shows(pilot: Session, *words: str) -> None:
    for each in words:
        await when(pilot, lambda each=each: each in screen_text(pilot), each)  # type: ignore[misc]
    await when(pilot, lambda: has_looked(pilot.app.screen), "the chosen gate")


async def on(pilot: Session, screen: type[Any]) -> Any:
    await when(pilot, lambda: isinstance(pilot.app.screen, screen), screen.__name__)
    return pilot.app.screen


async def record(pilot: Session, *words: str) -> None:
    """Record the decision once the screen that confirms it says these words."""
    await on(pilot, Confirm)
    await shows(pilot, *words)
    await pilot.press("enter")
    await on(pilot, GateScreen)


def conditional(at: Reviewer) -> Gate:
    """A gate that offers two conditions, of which one is ticked."""
    offered = [make_precondition(), make_precondition("mood", observes="mood", value="calm", preselected=True)]
    run = make_run(team=at.gate.team, plan=make_plan(make_spec(steps=OBSERVING)))
    return make_gate(run=run, card=make_card(preconditions=offered, risk="critical"))


async def gate_of(at: Reviewer, gate: Gate | None = None) -> Gate:
    found: Gate = await sync_to_async(Gate.objects.select_related("outcome").get)(pk=(gate or at.gate).pk)
    return found


async def test_approving_shows_first_what_it_does_and_records_it_by_enter(at: Reviewer) -> None:
    async with inbox(at) as pilot:
        await shows(pilot, "1 gate is open", "Refund €120.00 to Marit", "She is right.")
        screen = pilot.app.screen
        assert isinstance(screen, InboxScreen)
        screen.looked_at["digest"] = "another"
        await pilot.press("a")
        await on(pilot, GateScreen)
        await shows(pilot, "You have not seen this proposal yet", "If you approve", "pay runs", "0 of 1 approved")
        await pilot.press("a")
        await on(pilot, Confirm)
        await shows(pilot, f"Gate {at.gate.pk}  Refund €120.00 to Marit", "You decide: approve", "pay runs")
        assert (await gate_of(at)).status == "open"
        await pilot.press("enter")
        await on(pilot, GateScreen)
        await shows(pilot, "approved by Ann Okafor")
    assert (await gate_of(at)).status == "decided"


@pytest.mark.long
async def test_a_rejection_takes_a_reason_and_says_where_the_run_goes(at: Reviewer) -> None:
    async with inbox(at) as pilot:
        await shows(pilot, "1 gate is open")
        await pilot.press("r")
        await when(pilot, lambda: pilot.app.screen.query_one("#reason", TextArea), "the reason")
        # The step that the gate itself names is chosen, never the end of the run.
        assert [each.name for each in pilot.app.screen.query(RadioButton) if each.value] == ["propose"]
        await pilot.press("ctrl+s")
        await shows(pilot, "/comment")
        pilot.app.screen.query_one("#reason", TextArea).text = "Not like this."
        await pilot.press("ctrl+s")
        await record(pilot, "propose runs")
        await shows(pilot, "rejected by Ann Okafor")
    outcome = (await gate_of(at)).outcome
    assert (outcome.then, outcome.back_to) == ("back", "propose")


async def test_an_edit_is_a_form_and_shows_what_changes_before_it_counts(at: Reviewer) -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "string"}, "speed": {"enum": ["slow", "[b]fast"]}}}
    gate = await sync_to_async(at.posted)(risk="critical", schema=schema, arguments={"speed": "slow"})
    async with inbox(at) as pilot:
        await shows(pilot, "2 gates are open", "Pay invoice 7")
        await pilot.press("e")
        await when(pilot, lambda: pilot.app.screen.query(".value"), "the form")
        await pilot.press("ctrl+s")
        await shows(pilot, "Nothing is changed yet.")
        [amount] = [each for each in pilot.app.screen.query(Input) if each.value == "120.00"]
        amount.value = "100.00"
        [speed] = pilot.app.screen.query(Select)
        assert speed.value == "slow"
        speed.value = "[b]fast"
        await pilot.pause()
        await pilot.press("ctrl+s")
        await record(pilot, "- 120.00", "+ 100.00", "+ [b]fast", "then the run ends")
        await shows(pilot, "edited by Ann Okafor")
    action = (await sync_to_async((await gate_of(at, gate)).standing)()).card.action("wire")
    assert action is not None
    assert action.arguments == {"to": "ACME", "amount": "100.00", "urgent": False, "speed": "[b]fast"}


@pytest.mark.long
async def test_one_of_several_actions_is_edited_in_the_form_of_the_page_and_the_other_rejected(at: Reviewer) -> None:
    gate = await sync_to_async(at.posted_each)(Ask("wire", WIRE), Ask("mail", {"to": "ACME"}))
    async with inbox(at) as pilot:
        await shows(pilot, "2 gates are open")
        pilot.app.push_screen(GateScreen(gate.pk))
        await shows(pilot, "If you approve")
        await pilot.press("p")
        await when(pilot, lambda: len(pilot.app.screen.query(".verdict")) == 2, "the verdicts")
        for select, verdict in zip(pilot.app.screen.query(".verdict").results(Select), ("edit", "reject"), strict=True):
            select.value = verdict
        [amount] = [each for each in pilot.app.screen.query(Input) if each.value == "120.00"]
        amount.value = "100.00"
        [_, reason] = pilot.app.screen.query(".words").results(Input)
        reason.value = "Once is enough."
        await pilot.pause()
        await pilot.press("ctrl+s")
        await record(pilot, "- 120.00", "+ 100.00")
    decision = await sync_to_async(gate.decisions.get)()
    assert decision.by_action == {"wire": "edit", "mail": "reject"}


@pytest.mark.long
async def test_what_others_change_meanwhile_is_told_and_markup_in_a_question_means_nothing(at: Reviewer) -> None:
    asks = await sync_to_async(make_gate)(team=at.gate.team, kind="recovery")
    async with inbox(at) as pilot:
        await shows(pilot, "2 gates are open")
        pilot.app.push_screen(GateScreen(asks.pk))
        await shows(pilot, "Did the payment happen?")
        screen = pilot.app.screen
        assert isinstance(screen, GateScreen)
        screen.gate["card"]["question"]["choices"][3]["label"] = "[red]Stop[/red] \x1b[2J"
        await pilot.press("w")
        await when(pilot, lambda: len(pilot.app.screen.query(RadioButton)) == 4, "the answers")
        labels = [str(each.label) for each in pilot.app.screen.query(RadioButton)]
        assert labels[3] == "[red]Stop[/red] <U+001B>[2J"
        await pilot.press("ctrl+s")
        await shows(pilot, "Choose an answer.")
        pilot.app.screen.query(RadioButton).last().value = True
        await pilot.pause()
        await pilot.press("ctrl+s")
        await record(pilot)
        await shows(pilot, "by Ann Okafor")
        pilot.app.push_screen(GateScreen(at.gate.pk))
        await shows(pilot, "She is right.", "If you approve")
        await pilot.press("a")
        await on(pilot, Confirm)
        other = await sync_to_async(bob)(at.gate.team)
        arguments = await sync_to_async(edit_amount)(await gate_of(at), "5.00")
        await sync_to_async(decide)(at.gate, other, "edit", arguments=arguments)
        await pilot.press("enter")
        await shows(pilot, "Bob Lindqvist already decided this")
        await pilot.press("escape", "escape")
        await on(pilot, GateScreen)
        await shows(pilot, "This gate is closed")
    assert (await gate_of(at, asks)).status == "decided"
    assert await sync_to_async(at.gate.decisions.count)() == 1
