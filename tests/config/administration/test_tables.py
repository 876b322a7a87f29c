"""No column of the administration's lists is out of sight: at 1,440 pixels all are there, on a phone rows fold."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.urls import reverse
from playwright.sync_api import Page

from tests.factories import make_gate, make_policy, make_team, make_user, unique
from tests.harness.browser_checks import ONCE_MORE, TAGS, check, each_look, watched

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


@pytest.mark.long
@pytest.mark.examples
@pytest.mark.whole_database  # the lists' filters name every team and policy
def test_no_column_of_a_list_is_cut(new_page: Callable[..., Page], web: str) -> None:
    """Policies had four columns behind the edge at 1,440 pixels, with nothing that told of them."""
    page, made = new_page(make_user("Root", superuser=True)), rows()
    said, faults, rules = watched(page), list[str](), TAGS
    for width, scheme in each_look(page):  # loaded in each: Django's own colours change slowly, without motion too
        faults += check(page, f"{web}{reverse('admin:index')}", said, rules)
        for name, words in made.items():
            faults += check(page, f"{web}{reverse(f'admin:{name}_changelist')}?q={words}", said, rules)
            shown, hidden = page.locator("#result_list tbody tr").count(), page.evaluate(OUT_OF_SIGHT)
            faults += [] if shown else [f"{name}: nothing is found by {words}"]
            faults += [f"{name}, {width} {scheme}: {hidden} cells out of sight or without a label"] if hidden else []
        rules = ONCE_MORE
    assert faults == []
