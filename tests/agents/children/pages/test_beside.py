"""A child that goes on beside an open gate is held by it only where it waits for that gate."""

from __future__ import annotations

from pathlib import Path

from checkpoints.models import Run
from tests.factories.driven_runs import make_run, open_gate

from ..families import child, to_rest
from .test_page import page, part


def shown(tmp_path: Path, **modes: str) -> tuple[Run, str]:
    """A child that has asked and goes on, and what the page of its parent shows of it."""
    run = to_rest(make_run("chief", ledger=str(tmp_path / "ledger"), modes=modes))
    return child(run, "a"), part(page(run), "children")


def test_one_that_waits_for_something_else_says_for_what(tmp_path: Path) -> None:
    """It was shown as held at the gate, and nothing said that it waited for a signal, or for its own children."""
    made, said = shown(tmp_path, wait="")
    assert open_gate(made).step == "agree"
    assert "Held at a gate" not in said
    assert "Waiting Agreed? Waits for the signal go" in said
    _, said = shown(tmp_path, x="sleep")
    assert "Waiting Agreed? Waits for 1 run that it started" in said


def test_one_that_has_come_to_what_the_gate_holds_up_is_held(tmp_path: Path) -> None:
    _, said = shown(tmp_path)
    assert "Held at a gate Agreed?" in said
    assert "waits for the decision" not in said
