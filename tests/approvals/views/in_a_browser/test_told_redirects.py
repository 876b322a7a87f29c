"""A script that asks is told where a form leads, so that the page there is drawn once."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, Request

from approvals.models import Decision
from tests.factories import ann, make_gate, make_policy, make_team

NewPage = Callable[..., Page]


def test_a_redirect_is_told_to_who_asks_and_followed_by_who_does_not() -> None:
    asked = Client().get("/", headers={"X-Tell-Redirect": "yes"})
    assert (asked.status_code, asked.content) == (204, b"")
    assert "Location" not in asked.headers
    followed = Client().get("/")
    assert (followed.status_code, followed.headers["Location"]) == (302, asked.headers["X-Redirect-To"])


def test_the_page_after_a_decision_is_loaded_once(new_page: NewPage) -> None:
    team = make_team()
    reviewer = ann(team)
    policy = make_policy(team)
    first, second = make_gate(policy=policy), make_gate(policy=policy)
    page = new_page(reviewer)
    page.goto(reverse("gate", args=[first.pk]))
    page.wait_for_load_state("networkidle")
    loaded: list[str] = []

    def note(request: Request) -> None:
        if request.url.split("?")[0].endswith(f"/gates/{second.pk}/"):
            loaded.append(request.resource_type)

    page.on("request", note)
    page.keyboard.press("a")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/gates/{second.pk}/**")
    page.wait_for_load_state("networkidle")
    assert loaded == ["document"]
    assert Decision.objects.get(gate=first).user == reviewer
