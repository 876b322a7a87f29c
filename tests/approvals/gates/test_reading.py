"""Reads a gate with what its readers need."""

from __future__ import annotations

import pytest

from approvals.gates.reading import read
from approvals.models import Proposal


@pytest.mark.parametrize("number", [0, 2**62, 2**63])
def test_a_gate_that_does_not_exist_is_an_error_that_is_answered_with_404(number: int) -> None:
    with pytest.raises(Proposal.DoesNotExist):
        read(number)
