"""Versions of policies are written by approvals.models.versions, which writes their proven events, alone.

The example installation wrote its own as rows: none was vouched for, so no example came to its gate. Tests write rows
too, and are given the events by tests.harness.vouched_policies, which hid it.
"""

from __future__ import annotations

import re

import pytest

from tests.harness.session import ROOT

WRITES = re.compile(r"\bPolicy\.objects\.\w*create\w*\(")
PLACES = ("agents", "approvals", "benchmarks", "checkpoints", "config", "docs", "tests/chaos")


@pytest.mark.parametrize("place", PLACES)
def test_nobody_else_makes_a_policys_row(place: str) -> None:
    found = [str(file) for file in (ROOT / place).rglob("*.py") if WRITES.search(file.read_text())]
    assert found == []
