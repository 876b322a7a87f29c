"""No column of the administration's lists is out of sight: at 1,440 pixels all are there, on a phone rows fold."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.urls import reverse
from playwright.sync_api import Page

from tests.factories import make_gate, make_policy, make_team, make_user
from tests.harness.browser_checks import check, watched

pytestmark = pytest.mark.whole_database

LISTS = ("approvals_policy", "approvals_gate", "checkpoints_technicalhold", "checkpoints_run", "auth_user")
OUT_OF_SIGHT = """() => [...document.querySelectorAll("#result_list tbody :is(th, td)")]
  .filter(cell => cell.getBoundingClientRect().right > innerWidth || !cell.dataset.label).length"""


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_no_column_of_a_list_is_cut(new_page: Callable[..., Page], web: str, width: int, scheme: str) -> None:
    """Policies had four columns behind the edge at 1,440 pixels, with nothing that told of them."""
    team = make_team("Customer service")
    make_gate(policy=make_policy(team, deadline=dt.timedelta(days=2)))
    page = new_page(make_user("Root", superuser=True), viewport={"width": width, "height": 900}, color_scheme=scheme)
    said, faults = watched(page), check(page, f"{web}{reverse('admin:index')}", [])
    for name in LISTS:
        faults += check(page, f"{web}{reverse(f'admin:{name}_changelist')}?q=", said)
        hidden = page.evaluate(OUT_OF_SIGHT)
        faults += [f"{name}: {hidden} cells out of sight or without a label"] if hidden else []
    assert faults == []
