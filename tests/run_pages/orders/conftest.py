"""The agents of the tests of rewinds are registered, so that states can be checked and runs driven."""

from __future__ import annotations

from tests.rewinds.conftest import _only_these_agents, ledger

__all__ = ["_only_these_agents", "ledger"]
