"""A web process that is asked to end ends and tells whoever listened; one whose agents changed is replaced meanwhile.

Pages were refused for half a minute at each save of any module beside the agent, such as of its tests.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Origin

from config.local.authoring import Author, list_imported_files
from config.local.console import Console
from config.local.stack import Stack
from tests.factories import MEMBER, ann, make_gate, make_team, make_user
from tests.factories.tokens import make_token
from tests.harness.horizon import reached
from tests.harness.services import Service, free_port
from tests.harness.session import Session
from tests.harness.signed_in_clients import session_of
from tests.harness.waiting import PATIENCE, until


class Listener(threading.Thread):
    """One request in the background, read to its end."""

    def __init__(self, client: httpx.Client, path: str) -> None:
        super().__init__(daemon=True)
        self.client, self.path = client, path
        self.begun = threading.Event()
        self.fault: Exception | None = None
        self.answer = ""
        self.start()

    def run(self) -> None:
        try:
            with self.client.stream("GET", self.path) as response:
                for piece in response.iter_text():
                    self.answer += piece
                    self.begun.set()
        except httpx.HTTPError as error:
            self.fault = error


def test_a_web_process_with_open_streams_polls_and_sockets_ends_at_once_and_tells_each(
    start_web: Callable[..., tuple[Service, str]],
) -> None:
    """It went on for as long as one reader of events stayed, until it was killed."""
    service, base = start_web()
    gate = make_gate(team=make_team(may=MEMBER))
    token = make_token(ann(gate.team), team=gate.team, agent=gate.run.plan.agent)[1]
    reached()
    with httpx.Client(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE) as client:
        stream = Listener(client, f"/api/events/stream?subject=run:{gate.run_id}")
        assert stream.begun.wait(PATIENCE)
        poll = Listener(client, f"/api/gates/{gate.pk}/outcome?wait=60")
        headers = {"Cookie": f"sessionid={session_of(make_user('Sol Socket'))}"}
        with connect(base.replace("http", "ws") + "/ws/", origin=Origin(base), additional_headers=headers) as socket:
            assert socket.ping().wait(PATIENCE)
            poll.join(0.5)
            assert poll.is_alive()
            service.process.send_signal(signal.SIGTERM)
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(PATIENCE)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012  # RFC 6455: the service restarts
        service.process.wait(PATIENCE)
        for listener in (stream, poll):
            listener.join(PATIENCE)
            assert not listener.is_alive()
            assert listener.fault is None, f"{listener.path} was cut: {listener.fault}"
    assert '"status":"open"' in poll.answer.replace(" ", ""), "a poll is answered as if its time were over"
    assert "timeout graceful shutdown exceeded" not in service.log
    assert "Traceback" not in service.log


class Visitors(threading.Thread):
    """People who ask for a page again and again, each on a connection of its own."""

    def __init__(self, base: str) -> None:
        super().__init__(daemon=True)
        self.base, self.over = base, threading.Event()
        self.answers: list[str] = []
        self.start()

    def run(self) -> None:
        with httpx.Client(base_url=self.base, timeout=PATIENCE, headers={"Connection": "close"}) as client:
            while not self.over.wait(0.02):  # the processes that they ask need the processor, too
                try:
                    self.answers.append(str(client.get("/healthz").status_code))
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


def test_pages_are_answered_while_the_web_process_is_replaced_and_where_the_new_one_does_not_come_up(
    own: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    visitors = Visitors(f"http://127.0.0.1:{own.port}")
    [before] = own.children
    lease = own.environment.pop("HOLDPOINT_LEASE", "")
    own.environment["HOLDPOINT_LEASE"] = "soon"
    assert not own.replace_web()
    assert own.children == [before]
    assert "The new web process does not answer: the one before goes on." in capsys.readouterr().out
    own.environment["HOLDPOINT_LEASE"] = lease
    assert own.replace_web()
    [after] = own.children
    assert visitors.answered() == {"200"}
    assert (before.process.poll() is not None, after.process.poll()) == (True, None)
    assert (after.command, after.inherits) == (before.command, before.inherits), "it is started again as any other"


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
    with monkeypatch.context() as full:
        full.setattr(Stack, "replace_web", mock.Mock(side_effect=OSError(12, "Cannot allocate memory")))
        saved(author, "NONE = 0\n")
    assert capsys.readouterr().out.count("Cannot allocate memory") == 1, "which does not end the stack"
    saved(author, "FIRST = 1\n")
    assert restarted == []
    out = capsys.readouterr().out
    assert ("Took up" in out, "The code before is still served; save the file again" in out) == (False, True)
    saved(author, "SECOND = 22\n")
    assert restarted == ["worker", "sweeper"]
    assert "Took up the changed code of my_agent" in capsys.readouterr().out


FILES = {
    "my_agent.py": "import shop, json, unwritten\nfrom helpers.text import clean\nfrom agents import Agent\n",
    "shop.py": "def price():\n    from prices import table\n",
    "prices.py": "import broken\n",
    "broken.py": "def (:\n",
    "helpers/text.py": "from . import words\nfrom .deep import more\n",
    "helpers/words.py": "",
    "helpers/deep.py": "",
    "test_my_agent.py": "import my_agent\n",
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


def test_imports_are_followed_into_functions_past_what_cannot_be_read_and_not_into_the_product(folder: Path) -> None:
    names = {"my_agent.py", "shop.py", "prices.py", "broken.py"}
    assert files_of("my_agent", folder) == names | {f"helpers/{name}.py" for name in ("text", "words", "deep")}
    found = list_imported_files(["my_agent", "next_agent"], [folder], folder)
    unwritten = {folder / "unwritten.py", folder / "next_agent.py", folder / "next_agent" / "__init__.py"}
    assert unwritten <= found, "what is still to be written is waited for"
    beside = {f"agents/examples/{name}.py" for name in ("__init__", "mine", "sandbox")}
    assert files_of("agents.examples.mine", folder) == beside
    (folder / "team" / "__init__.py").write_text("from . import agent\n")
    of_package = {"team/__init__.py", "team/agent.py", "team/steps/__init__.py", "team/steps/first.py"}
    assert files_of("team", folder) == of_package | {"team/prompt.md", "team/steps/table.csv"}, "and none of its tests"
