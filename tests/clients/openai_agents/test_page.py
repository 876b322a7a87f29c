"""The first example of the page, as it stands: decided in a browser, killed while it waits, started again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.clients.framework_programs import first_example, program
from tests.clients.scripted_model import Call, scripted
from tests.clients.world import World, ended
from tests.conftest import Starter
from tests.factories import ann

REFUND: Call = ("refund", {"order": "7", "amount": "20.00"})


@pytest.mark.long
def test_it_is_approved_in_a_browser(
    web: str, start_service: Starter, tmp_path: Path, new_page: Callable[..., Page]
) -> None:
    world, file = World(web), first_example("openai-agents", tmp_path)
    with scripted([REFUND], "You have your money back.") as model:
        first = program(start_service, world, model, file)
        gate = world.gate()
        first.kill()
        page = new_page(ann(world.team))
        page.goto(f"/gates/{gate.pk}/")
        expect(page.locator("main")).to_contain_text("This framework cannot change a call")
        expect(page.locator("main")).to_contain_text("20.00")
        page.locator("label[data-choice='approve']").first.click()
        page.locator(".commit:visible").click()
        expect(page.locator("#gate-line")).to_contain_text("Approved by Ann Okafor")
        second = program(start_service, world, model, file)
        second.says("You have your money back")
        assert second.log.count("Paying back 20.00 for order 7") == 1
    assert ended(gate.run_id)["output"] == "You have your money back."
