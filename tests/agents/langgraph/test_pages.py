"""A graph's run on its pages: what its tools did is not called nothing, and its own record stays in the background."""

from __future__ import annotations

import re

from checkpoints.models import Run
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, reject, say
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest
from tests.harness.signed_in_clients import signed_in

from .test_approvals import asking, ids
from .test_once_approved import paid, seq


def page(run: Run, query: str = "") -> str:
    """The run's page in one line."""
    return " ".join(signed_in(ann(run.team)).get(f"/runs/{run.pk}/{query}").content.decode().split())


def test_the_page_does_not_say_that_a_run_whose_tools_acted_changed_nothing() -> None:
    shown = page(paid())
    assert "Not recorded" in shown
    assert "What they changed is not recorded, and nothing undoes it." in shown
    assert "Called pay." in shown
    assert "No effects" not in shown


def test_what_langgraph_keeps_for_itself_is_folded_behind_what_the_graph_changed() -> None:
    run = paid()
    shown = page(run, f"?at={seq(run, step='go', next_step='go')}")
    first, kept = (
        "".join(re.findall(r'<th scope="row">.*?</th>', part))
        for part in shown.split("in what the framework keeps for itself", 1)
    )
    assert "messages" in first
    assert "langgraph" not in first
    assert "langgraph" in kept


def test_the_timeline_names_the_tools_that_were_decided_about() -> None:
    run = asking("batched")
    pay, write = ids(run)
    say(run, each={pay: APPROVE, write: reject("No letter.")})
    assert "approved 1 pay; rejected 2 write" in page(advance_to_rest(run))
