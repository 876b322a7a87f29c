"""The tests of agents that the documents show, run as they tell an author to: by pytest alone, without any server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.agents.testing.documents import block
from tests.config.local.started_stack import CLEARED
from tests.harness.services import run
from tests.harness.session import ROOT

SHOWN = {
    "my_agent.py": ("README.md", "class Greeter"),
    "test_my_agent.py": ("README.md", "Trial(Greeter"),
    "payouts.py": ("docs/agents.md", "class Payouts"),
    "test_payouts.py": ("docs/agents.md", "Trial(Payouts"),
}


@pytest.mark.long
def test_the_documents_agents_pass_the_documents_tests(tmp_path: Path) -> None:
    for name, words in SHOWN.items():
        (tmp_path / name).write_text(block(*words))
    # What an author has in their shell must not matter: a trial writes into no database of theirs.
    env = dict.fromkeys([*CLEARED, "HPTEST_HOME", "DJANGO_SETTINGS_MODULE"], "") | {
        "DATABASE_URL": "postgres://mine@127.0.0.1:9/mine"
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "config.local.trials", "--rootdir", str(tmp_path)]
    done = run(*command, *(str(tmp_path / name) for name in SHOWN if name.startswith("test_")), env=env, within=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    assert "warning" not in done.stdout.lower()


def test_make_trial_runs_the_tests_that_it_is_given(tmp_path: Path) -> None:
    recipe = run("make", "-n", "trial", "TESTS=test_my_agent.py", "VENV=/venv").stdout
    assert "/venv/bin/python -m pytest test_my_agent.py" in recipe
    assert 'pytest_plugins = ["config.local.trials"]' in (ROOT / "conftest.py").read_text()


def test_every_piece_of_python_in_the_page_for_authors_can_be_read() -> None:
    from tests.agents.testing.documents import blocks

    for each in [*blocks("docs/agents.md", "python"), *blocks("README.md", "python")]:
        compile(each, "the page", "exec")
