"""LangGraph's own tests of everything that takes a checkpointer, with HoldpointSaver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.langgraph.own_suite.refused import REFUSED
from tests.clients.langgraph.own_suite.sdist import unpacked
from tests.factories import MEMBER, make_team
from tests.harness.session import ROOT

TAKEN = 646  # tests that take a checkpointer, each with all of its parameters
PLUGINS = ("anyio", "pytest_mock", "syrupy")


def outcomes(folder: Path, *, team: str) -> dict[str, str]:
    """Run LangGraph's tests; return how each ended: passed, failed or skipped."""
    tests = [each for each in sorted(folder.glob("tests/test_*.py")) if "sync_checkpointer" in each.read_text()]
    report = folder / "ended.json"
    env = {name: value for name, value in os.environ.items() if name != "DJANGO_ALLOW_ASYNC_UNSAFE"} | {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "LANGGRAPH_STRICT_MSGPACK": "true",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": os.pathsep.join((str(ROOT / "clients" / "python" / "src"), str(ROOT))),
        "TEAM": team,
    }  # fmt: skip
    env.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short"]
    command += [f"-p{plugin}" for plugin in PLUGINS]
    with (folder / "log").open("w") as log:
        subprocess.run([*command, *map(str, tests)], cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT)
    assert report.exists(), (folder / "log").read_text()[-3000:]
    ended: dict[str, str] = json.loads(report.read_text())
    return ended


@pytest.mark.long
def test_langgraphs_own_tests_pass_but_for_those_that_are_refused_by_design(tmp_path: Path) -> None:
    folder = unpacked(tmp_path)
    ended = outcomes(folder, team=make_team(may=MEMBER).name)
    assert len(ended) == TAKEN
    failed = {name for name, how in ended.items() if how != "passed"}
    assert sorted(failed - REFUSED.keys()) == [], (folder / "log").read_text()[-20_000:]
    assert sorted(REFUSED.keys() - failed) == [], "these pass now: take them off the list"
