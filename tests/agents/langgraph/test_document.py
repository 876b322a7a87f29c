"""The document's first example, as it stands."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from agents.testing import Trial
from tests.agents.testing.documents import block

DOCUMENT = "docs/frameworks/langgraph.md"


def test_the_first_example_asks_before_it_books_and_says_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "support.py").write_text(block(DOCUMENT, "class Support"))
    monkeypatch.syspath_prepend(tmp_path)
    run = Trial(
        import_module("support").Support, messages=[{"role": "user", "content": "A berth for the Aurora, please."}]
    )
    sys.modules.pop("support")
    [action] = run.card.actions
    assert action.arguments == {"vessel": "Aurora", "berth": "North 1", "date": "2027-05-01"}
    run.approve()
    assert run.status == "completed", run.reason
    assert "Aurora has North 1 on 2027-05-01, paid under " in run.state["messages"][-1]["content"]
