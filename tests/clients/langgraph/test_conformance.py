"""LangGraph's own conformance tests, all of them, with both backends."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from holdpoint.langgraph import HoldpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate

from tests.clients.langgraph.savers import BACKENDS, savers

# Counted in the package: its report says FULL even where it found nothing to test.
TESTS = {
    "put": 17, "put_writes": 10, "get_tuple": 10, "list": 16, "delete_thread": 5, "delete_for_runs": 7,
    "copy_thread": 8, "prune": 8,
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
async def test_every_capability_passes_every_test(web: str, backend: str) -> None:
    with savers(backend, web) as make:

        @checkpointer_test(name=f"HoldpointSaver {backend}")
        async def made() -> AsyncGenerator[HoldpointSaver, None]:
            yield make()

        report = await validate(made)
    report.print_report()  # pytest -s shows it
    found = report.to_dict()
    failures = {name: each["failures"] for name, each in found["results"].items() if each["failures"]}
    assert failures == {}
    assert {name: each["tests_passed"] for name, each in found["results"].items()} == TESTS
    assert sum(TESTS.values()) == 81
    assert report.passed_all()
    assert all(each.detected for each in report.results.values())
    assert found["conformance_level"] == "FULL"
