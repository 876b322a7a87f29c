"""Legal holds are listed apart from those that the product makes, and each says what it holds in words."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from checkpoints import actors
from checkpoints.models import Hold
from checkpoints.runs import holds
from tests.agents.views.run_page.test_run_page import text_of
from tests.factories import make_gate, make_user
from tests.harness.signed_in_clients import confirmed


@pytest.fixture(scope="module")
def root() -> Any:
    return confirmed(make_user("Root", superuser=True))


def text(client: Any, name: str, run: int) -> str:
    address = reverse(f"admin:checkpoints_{name}_changelist")
    return text_of(client.get(address, {"run__id__exact": run}).content.decode())


def test_legal_holds_are_not_among_those_of_open_gates(root: Any) -> None:
    """One legal hold was looked for among hundreds of open gates."""
    gate, by = make_gate(), actors.of_user(make_user("Lena Law"))
    run, seq = gate.run, gate.run.seq
    holds.name(run, seq, "Before the refund", by=by)
    held = holds.hold(run, seq, "Lawsuit 12/26", by=by)
    legal, technical = text(root, "hold", run.pk), text(root, "technicalhold", run.pk)
    assert "Lawsuit 12/26" in legal
    assert "Lena Law" in legal
    assert f"checkpoint {seq} “Before the refund”" in legal
    assert gate.title not in legal
    assert f"Open gate {gate.title}" in technical
    assert "Lawsuit" not in technical
    for kind in ("hold", "technicalhold"):
        page = root.get(reverse(f"admin:checkpoints_{kind}_changelist"), {"run__id__exact": run.pk}).content.decode()
        assert str(held.checkpoint) not in page
        assert held.checkpoint is not None
        assert held.checkpoint.hex not in page
    assert root.get(reverse("admin:checkpoints_technicalhold_change", args=[held.pk])).status_code == 302


def test_technical_holds_are_only_read(root: Any) -> None:
    gate = make_gate()
    held = Hold.objects.get(run=gate.run, kind="gate")
    address = reverse("admin:checkpoints_technicalhold_change", args=[held.pk])
    assert "Free this hold" not in root.get(address).content.decode()
    assert root.post(address, {"reason": "x"}).status_code == 403
    assert root.get(reverse("admin:checkpoints_technicalhold_add")).status_code == 403
    assert root.post(reverse("admin:checkpoints_hold_releases", args=[held.pk])).status_code == 404
    held.refresh_from_db()
    assert held.freed_at is None
