"""No column of the administration's lists is out of sight: at 1,440 pixels all are there, on a phone rows fold."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.urls import reverse
from playwright.sync_api import Page

from tests.factories import make_gate, make_policy, make_team, make_user, unique
from tests.harness.browser_checks import check_each_look, each_look, watched

OUT_OF_SIGHT = """() => [...document.querySelectorAll("#result_list tbody :is(th, td)")]
  .filter(cell => cell.getBoundingClientRect().right > innerWidth || !cell.dataset.label).length"""


def rows() -> dict[str, str]:
    """Make a row of each list that is hard to fit in; return what finds it there, by the list's name."""
    team, others = make_team("Customer service"), [make_team("Accounts receivable of the north") for _ in range(3)]
    policy = make_policy(team, name=unique("r" * 50)[:60], groups=tuple(others), deadline=dt.timedelta(days=2))
    gate = make_gate(policy=policy)
    person = make_user("Root" * 20, team)
    return {
        "approvals_policy": team.name,
        "approvals_gate": gate.title,
        "checkpoints_technicalhold": str(gate.run.pk),
        "checkpoints_run": str(gate.run.pk),
        "auth_user": person.username,
    }


@pytest.mark.examples
def test_no_column_of_a_list_is_cut(new_page: Callable[..., Page], web: str) -> None:
    """Policies had four columns behind the edge at 1,440 pixels, with nothing that told of them."""
    page = new_page(make_user("Root", superuser=True))
    said, faults = watched(page), check_each_look(page, f"{web}{reverse('admin:index')}", [])
    for name, words in rows().items():
        faults += check_each_look(page, f"{web}{reverse(f'admin:{name}_changelist')}?q={words}", said)
        faults += [] if page.locator("#result_list tbody tr").count() else [f"{name}: nothing is found by {words}"]
        for width, _ in each_look(page):
            hidden = page.evaluate(OUT_OF_SIGHT)
            faults += [f"{name}: {hidden} cells out of sight or without a label at {width}"] if hidden else []
    assert faults == []
