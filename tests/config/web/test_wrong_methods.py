"""Opening an address that only takes what a form sends leads on, and is still refused.

A refused decision leaves the browser at `/gates/<id>/decisions/`. Opened again, that was a 405 without a body: the
browser's own error page.
"""

from __future__ import annotations

import pytest
from django.test import Client

from tests.factories import ann, make_gate, make_team
from tests.harness.signed_in_clients import signed_in

HTML = {"Accept": "text/html,application/xhtml+xml"}


def test_a_decisions_address_that_is_opened_leads_to_its_gate() -> None:
    team = make_team()
    gate = make_gate(team=team)
    answer = signed_in(ann(team)).get(f"/gates/{gate.pk}/decisions/", headers=HTML)
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert f'href="/gates/{gate.pk}/"' in answer.content.decode()
    assert "only accepts form submissions. Nothing was changed." in answer.content.decode()


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("/runs/7/checkpoints/2/notes/5/removals/", "/runs/7/"),
        ("/agents/refunds/runs/", "/agents/refunds/"),
        ("/audit/verifications/", "/audit/"),
    ],
)
def test_each_order_leads_to_the_page_it_is_sent_from(address: str, page: str) -> None:
    answer = signed_in(ann(make_team())).get(address, headers=HTML)
    assert answer.status_code == 405
    assert f'href="{page}"' in answer.content.decode()


def test_scripts_and_the_api_get_no_page() -> None:
    client = signed_in(ann(make_team()))
    assert client.get("/audit/verifications/", headers={"Accept": "application/json"}).content == b""
    assert b"<html" not in Client().get("/api/gates/7/decisions/1/", headers=HTML).content
