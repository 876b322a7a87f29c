"""What the page says of a word on each action while it is being chosen."""

from __future__ import annotations

from pathlib import Path

from tests.agents.pages.test_run_page import text_of
from tests.factories import ann
from tests.factories.driven_runs import open_gate
from tests.harness.signed_in_clients import form_of, signed_in

from .verdict_forms import make_three


def panel(ledger: Path, **verdicts: str) -> str:
    """The words of the panel for these verdicts, none of which says why."""
    run = make_three(ledger)
    gate = open_gate(run)
    form = form_of(gate, "each", **{f"verdict.{name}": verdict for name, verdict in verdicts.items()})
    answer = signed_in(ann(run.team)).post(f"/gates/{gate.pk}/impacts/", form, headers={"HX-Request": "true"})
    return text_of(answer.content.decode().partition('id="edit-impact"')[2].partition("</hx-partial>")[0])


def test_what_is_answered_for_is_not_called_rejected(ledger: Path) -> None:
    """Two that are passed by were told under the word of the first."""
    told = panel(ledger, a="approve", b="reject", c="respond")
    assert "Skipped Do two ; rejected" in told
    assert "Skipped Do three ; answered instead" in told


def test_what_is_rejected_does_not_run_though_another_is_not_decided_yet(ledger: Path) -> None:
    told = panel(ledger, a="approve", b="reject")
    assert "Skipped Do two ; rejected" in told
