"""The tests of agents that the documents show, run as they tell an author to: by pytest alone, without any server."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.testing.documents import block, blocks
from tests.config.local.started_stack import CLEARED
from tests.harness.services import run
from tests.harness.session import BYTECODE, ROOT
from tests.harness.waiting import PATIENCE

SHOWN = {
    "my_agent.py": ("README.md", "class Greeter"),
    "test_my_agent.py": ("README.md", "Trial(Greeter"),
    "payouts.py": ("docs/agents.md", "class Payouts"),
    "test_payouts.py": ("docs/testing.md", "Trial(Payouts"),
    "test_delivery.py": ("docs/testing.md", "Trial(Delivery"),
    "test_discount.py": ("docs/testing.md", "Trial(Discount"),
}
WARNS = """
import warnings

warnings.warn("This goes.", DeprecationWarning)


def test_nothing():
    pass
"""


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
    assert "8 passed" in done.stdout
    assert "warning" not in done.stdout.lower()


@pytest.mark.parametrize("name", ["test_delivery", "test_discount"])
def test_the_pages_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`wake` and `signal`, validators, observations and a run's settings were on no page."""
    (tmp_path / f"{name}.py").write_text(block(*SHOWN[f"{name}.py"]))
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module(name)
    monkeypatch.delitem(sys.modules, name)
    tests = [each for name, each in vars(module).items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()


@pytest.fixture
def beside() -> Iterator[Path]:
    """A folder under the checkout, as an author's may be."""
    with tempfile.TemporaryDirectory(dir=BYTECODE.parent) as folder:
        yield Path(folder)


@pytest.mark.parametrize(
    ("own", "code"), [pytest.param("", 0, marks=pytest.mark.long), ("[pytest]\nfilterwarnings = error\n", 2)]
)
def test_an_authors_settings_of_pytest_count_and_the_products_do_not(own: str, code: int, beside: Path) -> None:
    """A library's DeprecationWarning failed an author's tests beside manage.py, by the product's settings."""
    (beside / "test_mine.py").write_text(WARNS)
    if own:
        (beside / "pytest.ini").write_text(own)
    env = dict.fromkeys([*CLEARED, "HPTEST_HOME", "DJANGO_SETTINGS_MODULE"], "")
    quick = ["-q", "-p", "no:asyncio", "--collect-only"]  # authors get no such plugin, and no server is started
    command = [sys.executable, "-m", "config.local.trials", *quick, str(beside / "test_mine.py")]
    done = run(*command, env=env, within=2 * PATIENCE)
    assert done.returncode == code, done.stdout + done.stderr
    assert ("DeprecationWarning: This goes." in done.stdout) == bool(own)


def test_make_trial_runs_the_tests_that_it_is_given() -> None:
    recipe = run("make", "-n", "trial", "TESTS=test_my_agent.py", "VENV=/venv").stdout
    assert "/venv/bin/python -m config.local.trials test_my_agent.py" in recipe
    assert 'pytest_plugins = ["config.local.trials"]' in (ROOT / "conftest.py").read_text()


@pytest.mark.parametrize("page", ["README.md", "docs/agents.md", "docs/runs.md", "docs/testing.md"])
def test_every_piece_of_python_in_the_pages_for_authors_can_be_read(page: str) -> None:
    pieces = blocks(page, "python")
    assert pieces
    for each in pieces:
        compile(each, page, "exec")
