"""A test's retention policies count for its own runs alone, as in the tests of retention."""

from __future__ import annotations

from tests.checkpoints.retention.conftest import no_policies

__all__ = ["no_policies"]
