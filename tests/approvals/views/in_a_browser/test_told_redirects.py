"""A script that asks is told where a form leads: the page there is drawn once, and the one before it no more."""

from __future__ import annotations

import re
from collections.abc import Callable
from time import sleep

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, Request, Route

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


@pytest.mark.long
def test_a_page_that_is_left_fetches_nothing_more(new_page: NewPage) -> None:
    team = make_team()
    policy = make_policy(team)
    first, second = make_gate(policy=policy), make_gate(policy=policy)
    page = new_page(ann(team))
    page.goto(reverse("gate", args=[first.pk]))
    page.wait_for_selector("hp-live[data-live=on]")
    page.wait_for_load_state("networkidle")
    asked: list[str] = []

    def arrives(route: Route) -> None:
        sleep(1)  # for longer than a fact of the decision takes to be fetched
        route.continue_()

    page.route(re.compile(rf"/gates/{second.pk}/($|\?)"), arrives)
    page.on("request", lambda request: asked.append(request.url))
    page.keyboard.press("a")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/gates/{second.pk}/**")
    assert not [url for url in asked if f"/gates/{first.pk}/status/" in url]
