"""Code that changed under a waiting run: its run stands still and says why, and everything else goes on."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agents.definition import registry
from agents.serving.sweeper import Sweeper
from checkpoints.models import Run
from tests.conftest import Starter
from tests.factories import ann, make_run, make_team, unique
from tests.factories.driven_runs import advance, advance_to_rest, open_gate
from tests.harness.signed_in_clients import signed_in
from tests.harness.waiting import until

MINE = """
from pydantic import BaseModel

from agents import Action, Agent, Card, gate, step, upcast


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
    """Somebody with modules of agents of their own, which are read anew whenever one is written."""

    def __init__(self, folder: Path, settings: Any) -> None:
        self.folder, self.settings, self.modules = folder, settings, list[str]()
        self.mine, self.other = unique("mine").replace("-", "_"), unique("other").replace("-", "_")
        self.team = make_team()
        self.write(self.mine, says="once")
        self.write(self.other, says="hello")

    def write(self, name: str, *, says: str, version: str = "1", more: str = "") -> None:
        self.save(name, MINE.format(name=name, says=says, version=version) + more)

    def save(self, name: str, text: str | None) -> None:
        if text is not None:
            (self.folder / f"{name}.py").write_text(text)
        self.settings.HOLDPOINT_AGENTS = self.modules = list(dict.fromkeys([*self.modules, name]))
        self.forget()

    def forget(self) -> None:
        for name in self.modules:
            sys.modules.pop(name, None)
        registry.forget()

    def env(self) -> dict[str, str]:
        return {"HOLDPOINT_AGENTS": ",".join(self.modules), "PYTHONPATH": str(self.folder)}

    def start(self, name: str) -> Run:
        manage("run_agent", name, "--input", "{}", "--team", self.team.name)
        return Run.objects.filter(plan__agent=name).latest("pk")


def manage(*arguments: str) -> str:
    """What the command says; CommandError has what it cannot do, and anything else would be a traceback."""
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def author(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Author]:
    # Two texts of one length within one second look the same.
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    author = Author(tmp_path, settings)
    yield author
    author.forget()


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


def test_a_worker_and_the_pages_go_on_where_code_changed_under_a_waiting_run_and_modules_cannot_be_used(
    author: Author, celery_worker: Starter
) -> None:
    """The worker ended, and with it all that `make run` had started; each page that looked for code answered 500.

    What cannot be used is one sentence each: there was a traceback.
    """
    stuck = advance_to_rest(author.start(author.mine))
    author.write(author.mine, says="another time")
    sentences = []
    for text, sentence in UNUSABLE:
        name = unique("unusable").replace("-", "_")
        author.save(name, text)
        sentences.append(sentence.format(mine=name, folder=author.folder))
    for command in (["agents"], ["run_agent", name, "--input", "{}"], ["drill", name, "--input", "{}"]):
        with pytest.raises(CommandError) as failed:
            manage(*command)
        assert [each for each in sentences if each not in str(failed.value)] == []

    worker = celery_worker("-c", "1", env=author.env())
    told = (
        f"The code of {author.mine} 1 changed while 1 of its runs is under way (R-{stuck.pk}); that run waits for "
        "the code it began with, and no other is started. Put that code back, or give the class another version "
        '(with an @upcast("1") it takes it over), or cancel the run: '
    )
    assert f"{told}.venv/bin/python manage.py cancel {stuck.pk}\n" in worker.log
    assert worker.log.count("The code of") == 1
    assert [each for each in sentences if each not in worker.log] == [], worker.log
    served = author.start(author.other)
    until(lambda: Run.objects.get(pk=served.pk).status == "waiting", what="the other agent is served")
    with pytest.raises(CommandError) as refused:
        author.start(author.mine)
    assert told in str(refused.value)

    reader = signed_in(ann(author.team))
    gates = [f"/gates/{open_gate(run).pk}/" for run in (stuck, served)]
    paths = ["/", "/agents/", f"/agents/{author.mine}/", f"/runs/{stuck.pk}/", *gates]
    answers = {path: reader.get(path) for path in paths}
    assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(paths, 200)
    for path in (f"/runs/{stuck.pk}/", gates[0]):
        for words in ("that code back", "@upcast", "or cancel the run"):
            assert words in answers[path].content.decode(), path
    assert f"R-{stuck.pk}" in answers[f"/agents/{author.mine}/"].content.decode()

    said = manage("cancel", f"R-{stuck.pk}", "--reason", "Its code is gone.")
    assert said == f"R-{stuck.pk} is cancelled.\n"
    stuck.refresh_from_db()
    assert (stuck.status, stuck.reason) == ("cancelled", "Its code is gone.")
    again = author.start(author.mine)
    until(lambda: Run.objects.get(pk=again.pk).status == "waiting", what="its new code is served")
    assert open_gate(again).asked.title == "another time"
    assert (worker.alive, "Traceback" in worker.log) == (True, False)


def test_a_new_version_takes_the_run_over_and_not_while_its_own_code_changed_under_another(author: Author) -> None:
    """The older run ended as failed, though nothing was wrong with it."""
    older = advance_to_rest(author.start(author.mine))
    author.write(author.mine, says="another time", version="2", more=UPCASTER)
    assert registry.changed() == []
    newer = advance_to_rest(author.start(author.mine))
    assert newer.plan.version == "2"
    author.write(author.mine, says="a third time", version="2", more=UPCASTER)
    Sweeper().sweep_once()
    older = advance(older)
    told = f"The code of {author.mine} 2 changed while runs of it are under way"
    assert (older.status, older.reason, older.plan.version) == ("queued", told, "1")
    manage("cancel", str(newer.pk))
    assert (advance_to_rest(older).plan.version, open_gate(older).asked.title) == ("2", "once")


def test_while_an_agent_is_written_its_changed_code_is_served_at_once(author: Author) -> None:
    author.settings.HOLDPOINT_DEVELOPMENT = True
    stuck = advance_to_rest(author.start(author.mine))
    author.write(author.mine, says="another time")
    [told] = registry.changed()
    assert f"(R-{stuck.pk}); that run waits for the code it began with, and new runs start with the" in told
    newest = advance_to_rest(author.start(author.mine))
    assert open_gate(newest).asked.title == "another time"
    said = manage("cancel", str(stuck.pk), str(newest.pk))
    assert said == f"R-{stuck.pk} is cancelled.\nR-{newest.pk} is cancelled.\n"
    with pytest.raises(CommandError, match=f"R-{stuck.pk} had already ended: it is cancelled"):
        manage("cancel", str(stuck.pk))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mine", "is not a run; give its number, such as 7 or R-7. Nothing was cancelled."),
        ("R-999999999", "There is no run R-999999999. Nothing was cancelled."),
    ],
)
def test_a_mistyped_run_cancels_none_of_the_others(text: str, told: str) -> None:
    run = make_run()
    with pytest.raises(CommandError, match=told):
        manage("cancel", str(run.pk), text)
    run.refresh_from_db()
    assert run.status == "queued"
