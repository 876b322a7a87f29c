"""The kit for authors, and the documents' tests of agents: run by pytest alone, without any server."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.definition import registry
from agents.errors import AgentError, InputRefused
from agents.testing import Trial, TrialStuck
from approvals.errors import DecisionRefused
from tests.agents.testing import trial_agents
from tests.agents.testing.documents import block, blocks
from tests.agents.testing.trial_agents import SENT, Apart, Later, Letters, Wrong
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
NO = {"verdict": "reject", "reason": "No."}
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


@pytest.fixture(autouse=True)
def nothing_sent() -> None:
    SENT.clear()


def test_what_a_run_asks_is_read_and_answered() -> None:
    run = Trial(Letters, to="Ada")
    assert (run.status, run.asks, run.title) == ("waiting", "review", "trial-letters")
    assert [each.id for each in run.card.actions] == ["first", "second"]
    assert run.state["first"] == {"text": "Dear Ada"}
    assert run.approve().status == "completed"
    assert SENT == ["Dear Ada", "Yours"]
    assert [(each.step, each.status, each.wrote) for each in run.effects] == [
        ("send_first", "done", {}),
        ("send_second", "done", {"told": "sent"}),
    ]
    assert run.steps == ["draft", "review", "send_first", "send_second", "end"]
    with pytest.raises(TrialStuck, match=r"The run asks nothing\. It is completed\."):
        run.approve()


@pytest.mark.parametrize(
    ("answer", "status", "sent", "wrote"),
    [
        (lambda run: run.edit("first", text="Hello"), "completed", ["Hello", "Yours"], {"told": "sent"}),
        (lambda run: run.decide({"first": NO, "second": {"verdict": "approve"}}), "completed", ["Yours"], {}),
        (lambda run: run.respond("second", "I rang."), "completed", ["Dear Ada"], {"told": "I rang."}),
        (lambda run: run.reject("No."), "cancelled", [], {}),  # there is no way back
        (lambda run: run.stop("No."), "cancelled", [], {}),
        (lambda run: run.expire(), "completed", [], {"expired": True}),
    ],
)
def test_each_answer_takes_the_run_to_its_end(answer: Any, status: str, sent: list[str], wrote: dict[str, Any]) -> None:
    run = answer(Trial(Letters, to="Ada"))
    assert (run.status, SENT, run.state | wrote) == (status, sent, run.state)


def test_a_quorum_is_of_different_people() -> None:
    run = Trial(Letters, to="Ada", quorum=2).approve(by="ann")
    assert run.status == "waiting"
    with pytest.raises(DecisionRefused):
        run.approve(by="ann")
    assert run.approve(by="mira").status == "completed"


def test_a_failure_asks_and_is_answered() -> None:
    run = Trial(Letters, to="nobody")
    assert run.asks == "draft"
    assert run.failures == ["draft: nobody is no address"]
    run.answer("stop")
    assert run.status == "failed"


def test_another_version_takes_the_run_over_and_asks_anew() -> None:
    run = Trial(Letters, to="Ada").upgrade(Later)
    assert (run.version, run.asks) == ("2", "review")
    assert run.card.actions[1].arguments == {"text": "Kind regards"}
    run.approve()
    assert SENT == ["Dear Ada", "Kind regards"]
    with pytest.raises(
        TrialStuck, match=r"Version 3 does not take the run over\. It is waiting at review; asks: Write to Ada\."
    ):
        Trial(Letters, to="Ada").upgrade(Apart)


def test_fields_called_as_an_option_and_a_configuration_are_given() -> None:
    run = Trial(Letters, {"team": "Blue"}, to="Ada", config={"greeting": "Hi"})
    assert (run.state["team"], run.state["first"]) == ("Blue", {"text": "Hi Ada"})


def test_what_cannot_be_tried_is_said() -> None:
    refused = r"Wrong cannot be used: The effect wrong\.act has no undo and is not declared irreversible"
    with pytest.raises(AgentError, match=refused):
        Trial(Wrong)
    with pytest.raises(InputRefused, match="/to: This is needed"):
        Trial(Letters)
    with pytest.raises(TrialStuck, match="asks about no action third; its actions: first, second"):
        Trial(Letters, to="Ada").edit("third", text="x")


def test_a_trial_changes_nothing_that_others_in_its_process_know() -> None:
    before = set(registry.agents())
    Trial(Letters, to="Ada").approve()
    assert set(registry.agents()) == before
    assert ("trial-letters", "1") not in registry.agents()
    assert trial_agents.__name__ not in str(registry.faults())
