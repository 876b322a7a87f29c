"""The bundled agent passes its own drill, as the README says that it does; and what it paid is taken back."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from tests.agents.examples.refunds.conftest import World, start_sandbox  # noqa: F401 - a fixture
from tests.factories import ann, make_team
from tests.harness.services import run
from tests.harness.session import ROOT


@pytest.mark.long  # tests/agents/testing/test_readme.py has the same drill, and that it ends well
def test_the_refunds_agent_may_be_killed_anywhere(start_sandbox: Callable[..., World]) -> None:  # noqa: F811
    world, team = start_sandbox(), make_team()
    mail = str(next((ROOT / "agents" / "examples" / "refunds" / "mails").glob("12-*.eml")))
    given = ["--input", mail, "--team", team.name, "--as", ann(team).username, "--yes"]
    told = {"SANDBOX_URL": world.url, "HOLDPOINT_AGENTS": "agents.examples.refunds", "HOLDPOINT_LOG_LEVEL": "ERROR"}
    done = run(sys.executable, "manage.py", "drill", "refunds", *given, env=told, within=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "A person is asked when a worker dies in reply" in done.stdout
    assert done.stdout.endswith("Restartable at every step.\n")
    amounts = {amount for amount, _ in world.refunds()}
    assert len(amounts) == 1  # the same in every run
    assert {status for _, status in world.refunds()} == {"cancelled"}
