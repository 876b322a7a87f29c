"""Code that changed under a waiting run: its run stands still and says why, and everything else goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from django.utils import timezone

from agents.definition.registered import queue_of
from agents.ringing import doorbell
from checkpoints.models import Run
from tests.conftest import Starter
from tests.factories import ann, make_run, make_team, unique
from tests.harness import services
from tests.harness.signed_in_clients import session_of
from tests.harness.waiting import PATIENCE, until

Web = Callable[..., tuple[services.Service, str]]
MINE = """
from pydantic import BaseModel

from agents import Action, Agent, Card, gate, step


class KeptBack(Agent):
    name, version = "{name}", "{version}"

    class State(BaseModel):
        said: str = ""

    @step
    def say(self):
        return {{"said": "{says}"}}

    @gate()
    def ask(self, said: str) -> Card:
        return Card(title=said, actions=[Action(id="go", title="Go on", tool="go", arguments={{"said": said}})])
"""

UPCASTER = """
    @upcast("1")
    @classmethod
    def from_1(cls, state):
        return state
"""


class Author:
    """Somebody with two modules of agents of their own, and the processes that serve them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mine, self.other = unique("mine").replace("-", "_"), unique("other").replace("-", "_")
        self.team = make_team()
        self.env = {"HOLDPOINT_AGENTS": f"{self.mine},{self.other}", "PYTHONPATH": str(folder)}
        self.write(self.mine, says="once")
        self.write(self.other, says="hello")

    def write(self, name: str, *, says: str, version: str = "1", more: str = "") -> None:
        text = MINE.format(name=name, says=says, version=version) + more
        (self.folder / f"{name}.py").write_text(text)

    def import_also(self, name: str, what: str) -> None:
        path = self.folder / f"{name}.py"
        path.write_text(path.read_text().replace("gate, step", f"gate, step, {what}"))

    def raise_version(self, *, says: str) -> None:
        self.write(self.mine, says=says, version="2", more=UPCASTER)
        self.import_also(self.mine, "upcast")

    def sweep(self) -> None:
        assert self.manage("sweeper", "--once")[0] == 0

    def manage(self, *arguments: str) -> tuple[int, str]:
        done = services.run(*services.manage(*arguments), env=self.env)
        return done.returncode, done.stdout + done.stderr

    def start(self, name: str, *more: str) -> tuple[int, str]:
        return self.manage("run_agent", name, "--input", "{}", "--team", self.team.name, *more)

    def run(self, name: str) -> Run:
        """The newest run of the agent that nobody cancelled, once it waits."""
        runs = Run.objects.filter(plan__agent=name).exclude(status="cancelled").order_by("-pk")

        def waiting() -> Run | None:
            newest = runs.first()
            return newest if newest and newest.status == "waiting" else None

        return until(waiting, what=f"the newest run of {name} waits") or Run()


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Author:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # two texts of one length within one second look the same
    return Author(tmp_path)


def test_a_worker_and_the_pages_go_on_where_code_changed_under_a_waiting_run(
    author: Author, celery_worker: Starter, start_web: Web
) -> None:
    """The worker ended, and with it all that `make run` had started; each page that looked for code answered 500."""
    before = celery_worker(env=author.env)
    assert author.start(author.mine)[0] == 0
    stuck = author.run(author.mine)
    before.stop()
    author.write(author.mine, says="another time")

    worker = celery_worker(env=author.env)
    told = (
        f"The code of {author.mine} 1 changed while 1 of its runs is under way (R-{stuck.pk}); that run waits for "
        "the code it began with, and no other is started. Put that code back, or give the class another version "
        '(with an @upcast("1") it takes it over), or cancel the run: '
    )
    assert told in worker.log
    assert f"manage.py cancel {stuck.pk}\n" in worker.log
    assert worker.log.count("The code of") == 1

    assert author.start(author.other)[0] == 0
    served = author.run(author.other)
    refused = author.start(author.mine)
    assert refused[0] == 1
    assert told in refused[1]

    _, base = start_web(env=author.env)
    reader = ann(author.team)
    with httpx.Client(base_url=base, cookies={"sessionid": session_of(reader)}, timeout=PATIENCE) as pages:
        gates = [run.gates.get().pk for run in (stuck, served)]
        paths = ["/", "/agents/", f"/agents/{author.mine}/", f"/runs/{stuck.pk}/", *(f"/gates/{pk}/" for pk in gates)]
        answers = {path: pages.get(path) for path in paths}
        assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(paths, 200)
        for path in (f"/runs/{stuck.pk}/", f"/gates/{gates[0]}/"):
            assert "that code back" in answers[path].text, path
            assert "@upcast" in answers[path].text, path
            assert "or cancel the run" in answers[path].text, path
        assert f"R-{stuck.pk}" in answers[f"/agents/{author.mine}/"].text

    code, said = author.manage("cancel", f"R-{stuck.pk}", "--reason", "Its code is gone.")
    assert (code, said) == (0, f"R-{stuck.pk} is cancelled.\n")
    stuck.refresh_from_db()
    assert (stuck.status, stuck.reason) == ("cancelled", "Its code is gone.")
    assert author.start(author.mine)[0] == 0
    assert author.run(author.mine).gates.get().standing().content["title"] == "another time"
    assert worker.alive


def test_a_new_version_with_an_upcaster_takes_the_run_over(author: Author, celery_worker: Starter) -> None:
    before = celery_worker(env=author.env)
    assert author.start(author.mine)[0] == 0
    stuck = author.run(author.mine)
    before.stop()
    author.raise_version(says="another time")
    worker = celery_worker(env=author.env)
    assert "The code of" not in worker.log

    def upgraded() -> bool:
        author.sweep()  # as a sweeper does each second: at the first time the run may not be due yet
        return Run.objects.get(pk=stuck.pk).plan.version == "2"

    until(upgraded, what="the run is of version 2")


@pytest.mark.long
def test_a_run_waits_while_the_code_of_the_version_that_takes_it_over_changed(
    author: Author, celery_worker: Starter
) -> None:
    """The older run ended as failed, though nothing was wrong with it."""
    first = celery_worker(env=author.env)
    assert author.start(author.mine)[0] == 0
    older = author.run(author.mine)
    first.stop()
    author.raise_version(says="another time")
    second = celery_worker(env=author.env)
    assert author.start(author.mine)[0] == 0
    newer = author.run(author.mine)
    assert newer.plan.version == "2"
    second.stop()

    author.raise_version(says="a third time")
    third = celery_worker(env=author.env)
    author.sweep()
    told = f"The code of {author.mine} 2 changed while runs of it are under way"
    until(lambda: Run.objects.get(pk=older.pk).reason == told, what="the older run says why it waits")
    assert Run.objects.get(pk=older.pk).status == "queued"

    assert author.manage("cancel", str(newer.pk))[0] == 0

    def taken_over() -> bool:
        Run.objects.filter(pk=older.pk, status="queued").update(wake_at=timezone.now())
        doorbell.ring(older.pk, queue_of(author.mine, "2"))  # a sweep rings for the oldest of all tests first
        time.sleep(0.2)
        return Run.objects.get(pk=older.pk).plan.version == "2"

    try:
        until(taken_over, what="the older run is of version 2")
    except AssertionError as error:
        error.add_note(f"{Run.objects.filter(pk=older.pk).values()}\n{third.log}")
        raise
    assert author.run(author.mine).pk == older.pk


def test_while_an_agent_is_written_its_changed_code_is_served_at_once(author: Author, celery_worker: Starter) -> None:
    author.env["HOLDPOINT_DEVELOPMENT"] = "1"
    before = celery_worker(env=author.env)
    assert author.start(author.mine)[0] == 0
    stuck = author.run(author.mine)
    before.stop()
    author.write(author.mine, says="another time")
    worker = celery_worker(env=author.env)
    assert f"(R-{stuck.pk}); that run waits for the code it began with, and new runs start with the" in worker.log
    assert author.start(author.mine)[0] == 0
    newest = author.run(author.mine)
    assert newest.pk != stuck.pk
    assert newest.gates.get().standing().content["title"] == "another time"
    assert author.manage("cancel", str(stuck.pk), str(newest.pk)) == (
        0,
        f"R-{stuck.pk} is cancelled.\nR-{newest.pk} is cancelled.\n",
    )
    again = author.manage("cancel", str(stuck.pk))
    assert again == (1, f"CommandError: R-{stuck.pk} had already ended: it is cancelled.\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{other}", "is not a run; give its number, such as 7 or R-7. Nothing was cancelled."),
        ("R-999999999", "There is no run R-999999999. Nothing was cancelled."),
    ],
)
def test_a_mistyped_run_cancels_none_of_the_others(author: Author, text: str, told: str) -> None:
    run = make_run()
    code, said = author.manage("cancel", str(run.pk), text.format(other=author.other))
    assert (code, told in said) == (1, True), said
    run.refresh_from_db()
    assert run.status == "queued"


# What a module holds, None for a module that is not there; and what is said of it.
UNUSABLE = (
    (None, "There is no module {mine}, which HOLDPOINT_AGENTS names: put {mine}.py beside manage.py, or the folder"),
    ("def (:", "{mine} cannot be imported: SyntaxError: invalid syntax ({mine}.py, line 1). Correct it"),
    ("import no_such_library", "{mine} cannot be imported: ModuleNotFoundError: No module named 'no_such_library'."),
    ("raise SystemExit(3)", "{mine} cannot be imported: SystemExit: 3 ({folder}/{mine}.py, line 1)."),
    ("x = 1 / 0", "{mine} cannot be imported: ZeroDivisionError: division by zero ({folder}/{mine}.py, line 1)."),
    ("x = 1", "{mine} declares no agent: write a class of `agents.Agent` in it that has a `name`"),
    (
        MINE.format(name="Bad Name", version="1", says=""),
        "{mine}.KeptBack cannot be used: The agent KeptBack needs a",
    ),
)


def test_each_module_that_cannot_be_used_is_one_sentence_and_the_others_are_served(
    author: Author, celery_worker: Starter
) -> None:
    """`run_agent`, the worker and every page that looked for code ended in a traceback."""
    told = []
    for text, sentence in UNUSABLE:
        name = unique("unusable").replace("-", "_")
        if text is not None:
            (author.folder / f"{name}.py").write_text(text)
        author.env["HOLDPOINT_AGENTS"] += f",{name}"
        told.append(sentence.format(mine=name, folder=author.folder))
    for command in (["agents"], ["run_agent", name, "--input", "{}"], ["drill", name, "--input", "{}"]):
        code, said = author.manage(*command)
        assert (code, "Traceback" in said) == (1, False), said
        assert [each for each in told if each not in said] == [], said
    worker = celery_worker(env=author.env)
    assert [each for each in told if each not in worker.log] == [], worker.log
    assert "Traceback" not in worker.log
    assert author.start(author.other)[0] == 0
    assert author.run(author.other).status == "waiting"


def test_an_unknown_agent_and_a_missing_team_say_the_way_out(author: Author) -> None:
    code, said = author.start("nobody")
    assert (code, said) == (
        1,
        f"CommandError: There is no agent named nobody; known: {', '.join(sorted([author.mine, author.other]))}. "
        "Name the module that declares it in HOLDPOINT_AGENTS, or in `make run AGENTS=…`.\n",
    )
    code, said = author.manage("run_agent", author.mine, "--input", "{}")
    assert code == 1
    assert said.startswith(
        "CommandError: Say which team the run belongs to: --team NAME, or `team` in the class; known: "
    )
    assert author.team.name in said
    code, said = author.manage("run_agent", author.mine, "--input", "{}", "--team", "Nobody")
    assert "There is no team named Nobody; known: " in said
