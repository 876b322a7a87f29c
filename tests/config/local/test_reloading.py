"""Agents that are being written are reloaded while pages are answered, where what they import has changed.

The web process ended before the next one began to load: pages were refused for half a minute at each save of any module
beside the agent, such as of its tests.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from config.local import authoring
from config.local.authoring import Author, list_imported_files
from config.local.console import Console
from config.local.stack import Stack
from tests.agents.testing.documents import block
from tests.config.local import started_stack
from tests.config.local.started_stack import START, started_before
from tests.harness.services import free_port
from tests.harness.session import Session
from tests.harness.waiting import PATIENCE, until

GREETER = block("README.md", "class Greeter")


class Visitors(threading.Thread):
    """People who ask for a page again and again, each on a connection of its own."""

    def __init__(self, base: str) -> None:
        super().__init__(daemon=True)
        self.base, self.over = base, threading.Event()
        self.answers: list[str] = []
        self.start()

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self.answers.append(str(httpx.get(f"{self.base}/healthz", timeout=PATIENCE).status_code))
            except httpx.HTTPError as error:
                self.answers.append(repr(error))

    def answered(self) -> set[str]:
        """Return the different answers, once there were more."""
        many = len(self.answers) + 20
        until(lambda: len(self.answers) >= many, what="more answers")
        self.over.set()
        self.join(PATIENCE)
        return set(self.answers)


@pytest.fixture
def own(tmp_path: Path, servers: Session) -> Iterator[Stack]:
    """A stack with a web process alone."""
    home: Any = SimpleNamespace(path=tmp_path)
    stack = Stack(home, Console(), free_port())
    stack.environment = dict(os.environ)
    stack.listen()
    stack.start_web()
    stack.wait_for_pages(stack.check_children)
    yield stack
    stack.stop()


def test_pages_are_answered_while_the_web_process_is_replaced(own: Stack) -> None:
    visitors = Visitors(f"http://127.0.0.1:{own.port}")
    [before] = own.children
    assert own.replace_web()
    [after] = own.children
    assert visitors.answered() == {"200"}
    assert before.process.poll() is not None
    assert after.process.poll() is None
    assert (after.command, after.inherits) == (before.command, before.inherits), "it is started again as any other"


def test_a_web_process_that_does_not_come_up_leaves_the_one_before(
    own: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    [before] = own.children
    own.environment["HOLDPOINT_LEASE"] = "soon"
    assert not own.replace_web()
    assert own.children == [before]
    assert httpx.get(f"http://127.0.0.1:{own.port}/healthz").status_code == 200
    assert "The new web process does not answer: the one before goes on." in capsys.readouterr().out


def test_only_what_the_agent_imports_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_agent.py").write_text("import my_words\n")
    (tmp_path / "my_words.py").write_text("")
    stack: Any = SimpleNamespace(environment={"PYTHONPATH": str(tmp_path)})
    author, taken = Author(stack, ["my_agent"]), []
    monkeypatch.setattr(Author, "take_up", lambda self: taken.append(set(self.taken)))
    author.begin()

    def save(name: str, text: str) -> int:
        (tmp_path / name).write_text(text)
        for _ in range(2):  # it changes, and it is settled
            author.looked = -1e9
            author.look()
        return len(taken)

    assert save("test_my_agent.py", "import my_agent\n") == 0
    assert save("scratch.py", "import my_agent\n") == 0
    assert save("my_words.py", "import my_others\n") == 1
    assert save("my_others.py", "GREETING = 'Hello'\n") == 2, "it had still to be written"
    assert save("my_agent.py", "class (:\n") == 3
    assert save("my_agent.py", "import my_words, my_others\n") == 4
    assert save("test_my_agent.py", "import my_others\n") == 4


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Author:
    """An author of code that can be used, whose file has changed; nothing is started."""
    (tmp_path / "my_agent.py").write_text("")
    home: Any = SimpleNamespace(path=tmp_path)
    stack = Stack(home, Console(), 0)
    stack.environment = {"PYTHONPATH": str(tmp_path)}
    monkeypatch.setattr(Author, "read", lambda self: (0, ""))
    made = Author(stack, ["my_agent"])
    made.begin()
    return made


def saved(author: Author, text: str) -> None:
    for path in author.files():
        path.write_text(text)
    for _ in range(3):  # it changes, it is settled, and nothing is new
        author.looked = -1e9
        author.look()


def test_the_other_processes_stay_where_the_new_web_process_fails(
    author: Author, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They took the new code up beside pages of the old one, and "Took up the changed code" was said all the same."""
    restarted, ready = list[str](), [False, True]
    monkeypatch.setattr(Stack, "restart", lambda self, name: restarted.append(name))
    monkeypatch.setattr(Stack, "replace_web", lambda self: ready.pop(0))
    saved(author, "FIRST = 1\n")
    assert restarted == []
    out = capsys.readouterr().out
    assert "Took up" not in out
    assert "The code before is still served; save the file again" in out
    saved(author, "SECOND = 22\n")
    assert restarted == ["worker", "sweeper"]
    assert "Took up the changed code of my_agent" in capsys.readouterr().out


def test_what_changes_while_the_pages_are_replaced_is_read_before_it_is_taken_up(
    author: Author, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Workers loaded a fault that nobody had read, and the console said that it took up the code."""
    restarted = list[str]()
    monkeypatch.setattr(Stack, "restart", lambda self, name: restarted.append(name))

    def replace_web(self: Stack) -> bool:
        for path in author.files():
            path.write_text("a fault, as long as it is")
        monkeypatch.setattr(Stack, "replace_web", lambda self: True)
        return True

    monkeypatch.setattr(Stack, "replace_web", replace_web)
    author.looked = -1e9
    for path in author.files():
        path.write_text("FIRST = 1\n")
    author.begin()
    author.take_up()
    assert restarted == []
    assert "Took up" not in capsys.readouterr().out
    monkeypatch.setattr(Author, "read", lambda self: (1, "a fault"))
    for _ in range(2):
        author.looked = -1e9
        author.look()
    assert restarted == []
    assert "a fault" in capsys.readouterr().out


def test_a_module_whose_import_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authoring, "READ_WITHIN", 0.01)
    stack: Any = SimpleNamespace(environment=dict(os.environ))
    assert Author(stack, ["my_agent"]).read() == (1, "my_agent cannot be imported within 0 s. Correct it.")


def test_too_little_memory_for_another_process_does_not_end_the_stack(
    author: Author, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(self: Stack, *more: str) -> bool:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(Stack, "replace_web", full)
    saved(author, "FIRST = 1\n")
    assert capsys.readouterr().out.count("Cannot allocate memory") == 1


@pytest.mark.long
def test_an_author_saves_beside_a_stack_that_answers_all_the_time(tmp_path: Path, servers: Session) -> None:
    """On one stack, since each start takes half a minute of a processor."""
    file = tmp_path / "my_agent.py"
    file.write_text(GREETER)
    home = started_before(tmp_path / "home", servers)
    stack = started_stack.Stack(tmp_path, "my_agent", home=home, PYTHONPATH=str(tmp_path))
    try:
        stack.wait()
        visitors = Visitors(stack.base)
        first = stack.child("-m config.web").pid
        file.write_text(GREETER.replace("class State(BaseModel):", "class State(BaseModel)"))
        stack.service.says("The code before is still served; save the file again when it is mended.", within=START)
        assert stack.child("-m config.web").pid == first
        (tmp_path / "test_my_agent.py").write_text("def test_nothing():\n    pass\n")
        file.write_text(GREETER.replace("Good morning", "Good day"))
        stack.service.says("Took up the changed code of my_agent", within=START)
        assert visitors.answered() == {"200"}
        assert stack.child("-m config.web").pid != first
    finally:
        stack.interrupt(within=START)
        stack.service.kill()


FILES = {
    "my_agent.py": "import shop, json, unwritten\nfrom helpers.text import clean\nfrom agents import Agent\n",
    "shop.py": "def price():\n    from prices import table\n",
    "prices.py": "import broken\n",
    "broken.py": "def (:\n",
    "helpers/text.py": "from . import words\nfrom .deep import more\n",
    "helpers/words.py": "",
    "helpers/deep.py": "",
    "helpers/other.py": "",
    "test_my_agent.py": "import my_agent, only_of_tests\n",
    "only_of_tests.py": "",
    "scratch.py": "import my_agent\n",
    "agents/__init__.py": "import agents.definition\n",
    "agents/definition.py": "",
    "agents/examples/__init__.py": "",
    "agents/examples/mine.py": "from agents import definition\nfrom . import sandbox\n",
    "agents/examples/sandbox.py": "",
    "team/__init__.py": "",
    "team/agent.py": "from .. import outside\nfrom .steps import first\n",
    "team/steps/__init__.py": "",
    "team/steps/first.py": "",
    "team/prompt.md": "",
    "team/steps/table.csv": "",
    "team/.git/index": "",
    "team/tests/test_agent.py": "",
    "team/tests/golden.json": "",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def files_of(name: str, folder: Path) -> set[str]:
    """Those that are there."""
    found = list_imported_files([name], [folder], folder)
    return {str(path.relative_to(folder)) for path in found if path.is_file()}


def test_a_modules_imports_are_followed_into_functions_and_past_what_cannot_be_read(folder: Path) -> None:
    names = {"my_agent.py", "shop.py", "prices.py", "broken.py"}
    assert files_of("my_agent", folder) == names | {f"helpers/{name}.py" for name in ("text", "words", "deep")}


def test_what_is_still_to_be_written_is_waited_for(folder: Path) -> None:
    found = list_imported_files(["my_agent", "next_agent"], [folder], folder)
    assert {folder / "unwritten.py", folder / "next_agent.py", folder / "next_agent" / "__init__.py"} <= found


def test_a_package_has_its_own_data_and_none_of_its_tests(folder: Path) -> None:
    (folder / "team.py").unlink(missing_ok=True)
    (folder / "team" / "__init__.py").write_text("from . import agent\n")
    of_package = {"team/__init__.py", "team/agent.py", "team/steps/__init__.py", "team/steps/first.py"}
    assert files_of("team", folder) == of_package | {"team/prompt.md", "team/steps/table.csv"}


def test_the_product_itself_is_not_followed_but_what_lies_beside_a_module_in_it_is(folder: Path) -> None:
    found = files_of("agents.examples.mine", folder)
    assert found == {f"agents/examples/{name}.py" for name in ("__init__", "mine", "sandbox")}
