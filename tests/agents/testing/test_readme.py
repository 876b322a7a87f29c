"""The README as a newcomer follows it, on the stack that it tells them to start."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.agents.testing.documents import block, blocks, commands
from tests.config.local.started_stack import START, Stack, environment, started_before
from tests.harness.services import manage, run
from tests.harness.session import Session
from tests.harness.waiting import PATIENCE, until

GREETER = block("README.md", "class Greeter")
ONE_MAIL = "agents/examples/refunds/mails/12-one-sheet-creased.eml"
OTHERS = [each for each in commands("README.md") if "greeter" not in each]  # that agent is written here


class Author:
    """A newcomer with a file of their own beside a stack that runs."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.file = folder / "my_agent.py"
        self.file.write_text("class Greeter(:\n")
        self.stack = Stack(folder, "my_agent", home=home, seeded=True, PYTHONPATH=str(folder))
        self.taken = 0

    def manage(self, *arguments: str, within: float = 2 * PATIENCE) -> tuple[int, str]:
        variables = environment(self.stack.home, self.stack.port, PORT="", PYTHONPATH=str(self.file.parent))
        done = run(*manage(*arguments), env=variables, within=within)
        return done.returncode, done.stdout + done.stderr

    def save(self, text: str) -> None:
        """Save the file; wait until it is taken up."""
        self.file.write_text(text)
        self.taken += 1
        until(lambda: self.stack.service.log.count("Took up the changed code of my_agent") == self.taken, within=START)

    def start(self) -> tuple[int, int]:
        """Start a run by the README's own command; (run, gate)."""
        [typed] = [each for each in commands("README.md") if each[:2] == ["run_agent", "greeter"]]
        code, said = self.manage(*typed)
        assert code == 0, said
        found = re.search(r"R-(\d+) asks: http://localhost:\d+/gates/(\d+)/", said)
        assert found is not None, said
        return int(found[1]), int(found[2])

    def pid(self, words: str) -> int:
        return int(self.stack.child(words).pid)


@pytest.fixture
def author(tmp_path: Path, servers: Session) -> Iterator[Author]:
    """One stack, seeded, with a file in which nothing works yet."""
    author = Author(tmp_path, started_before(tmp_path / "home", servers))
    author.stack.wait()
    yield author
    if author.stack.service.alive:
        author.stack.interrupt()
    author.stack.service.kill()


@pytest.mark.long
def test_a_newcomer_writes_an_agent_and_runs_every_command_there_is(author: Author) -> None:
    """On one stack: each start takes half a minute of a processor."""
    takes_an_agent_up_while_it_is_written_and_an_error_stops_nothing_else(author)
    sends_what_was_approved_and_shows_it_in_the_console(author)
    for typed in OTHERS:
        if typed[0] != "drill":
            works_as_it_stands(author, typed)


@pytest.mark.long  # what a drill does is tried on smaller agents each time: this one takes half a minute
@pytest.mark.parametrize("typed", [each for each in OTHERS if each[0] == "drill"], ids=" ".join)
def test_the_readmes_drill_works_as_it_stands(author: Author, typed: list[str]) -> None:
    works_as_it_stands(author, typed)


def takes_an_agent_up_while_it_is_written_and_an_error_stops_nothing_else(author: Author) -> None:
    """A run that waited on the code before stopped the whole stack; so did a module that could not be imported."""
    stack = author.stack
    sentence = r"my_agent cannot be imported: SyntaxError: invalid syntax \(my_agent\.py, line 1\)\. Correct it\."
    stack.service.says(sentence)
    assert stack.get("/healthz").status_code == 200

    author.save(GREETER)
    first, _ = author.start()

    author.save(GREETER.replace("Good morning", "Good day"))
    stack.service.says(rf"The code of greeter 1 changed while 1 of its runs is under way \(R-{first}\); that run waits")
    second, gate = author.start()
    assert second != first

    worker = author.pid("manage.py worker")
    author.file.write_text(GREETER.replace("class State(BaseModel):", "class State(BaseModel)"))
    stack.service.says(r"SyntaxError: expected ':' \(my_agent\.py, line 12\)\. Correct it\.", within=START)
    stack.service.says("The code before is still served; save the file again when it is mended.")
    assert author.pid("manage.py worker") == worker
    code, said = author.manage("run_agent", "greeter", "--input", "{}")
    assert (code, "There is no agent named greeter; known: " in said, "line 12" in said) == (1, True, True), said
    code, said = author.manage("run_agent", "refunds", "--input", ONE_MAIL, "--wait")
    assert (code, "is waiting" in said) == (0, True), said

    author.save(GREETER.replace("Good morning", "Good day"))
    assert author.manage("cancel", str(first)) == (0, f"R-{first} is cancelled.\n")
    with signed_in(stack) as client:
        for path in ("/", "/agents/", "/agents/greeter/", f"/runs/{first}/", f"/gates/{gate}/"):
            assert client.get(path).status_code == 200, path
        assert "Good day, Ada" in client.get(f"/gates/{gate}/").text
    assert "Traceback" not in stack.service.log


def sends_what_was_approved_and_shows_it_in_the_console(author: Author) -> None:
    author.save(GREETER)
    run_id, gate = author.start()
    decide = (
        "from django.contrib.auth.models import User; from approvals.models import Gate; "
        "from approvals.decisions.deciding import decide; from approvals.decisions.submission import Submission; "
        f"gate = Gate.objects.get(pk={gate}); seen = bytes(gate.standing().digest); "
        "decide(gate, Submission(verdict='edit', arguments={'send': 'Good evening, Ada'}, seen=seen, "
        f"key='{secrets.token_hex(8)}'), by=User.objects.get(username='ann'))"
    )
    code, said = author.manage("shell", "-c", decide)
    assert code == 0, said
    author.stack.service.says(r"SENT Good evening, Ada \([0-9a-f]{8}\)")
    with signed_in(author.stack) as client:
        until(lambda: "Completed" in client.get(f"/runs/{run_id}/").text, what=f"R-{run_id} is completed")


def works_as_it_stands(author: Author, typed: list[str]) -> None:
    code, said = author.manage(*typed, within=300)
    assert (code, "Traceback" in said) == (0, False), f"{typed}: {said}"


def test_every_command_of_the_readme_is_one_that_is_run_here() -> None:
    shell = "\n".join(blocks("README.md", "sh"))
    made = re.findall(r"(?m)^make (\w+)", shell)
    assert set(made) == {"run", "test", "trial"}  # the stack above, this test, and tests/agents/testing/test_trials.py
    assert re.findall(r"make run (\S+)", shell) == ["AGENTS=my_agent"]
    assert {each[0] for each in commands("README.md")} == {"run_agent", "drill", "token"}


@contextmanager
def signed_in(stack: Stack) -> Iterator[httpx.Client]:
    """A client with ann's session, by the password that was printed."""
    password = re.search(r"the password of each is (\S+)", stack.service.log)
    assert password is not None
    with httpx.Client(base_url=stack.base, follow_redirects=True, timeout=PATIENCE) as client:
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', client.get("/accounts/login/").text)
        assert token is not None
        form = {"csrfmiddlewaretoken": token[1], "login": "ann", "password": password[1]}
        assert client.post("/accounts/login/", data=form, headers={"Referer": stack.base}).url.path == "/"
        yield client
