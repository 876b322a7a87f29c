"""What docs/frameworks/langgraph.md shows, and its command with threads of a real PostgresSaver."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import holdpoint.langgraph as package
import pytest
from holdpoint.langgraph.importing import main
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command

from checkpoints.models import Run
from tests.clients.langgraph.graphs import asker, config, counter, talker
from tests.clients.langgraph.savers import Made, savers, verified
from tests.clients.world import World
from tests.factories import unique
from tests.harness.altered_rows import owner
from tests.harness.services import run as run_command
from tests.harness.session import ROOT
from tests.harness.waiting import PATIENCE

TEXT = (ROOT / "docs/frameworks/langgraph.md").read_text()
PART = TEXT[TEXT.index("## A checkpointer") :]


@pytest.fixture
def source() -> Iterator[str]:
    """The URL of a PostgreSQL schema in which PostgresSaver has its tables."""
    schema, url = unique("langgraph").replace("-", "_"), os.environ["DATABASE_OWNER_URL"]
    named = f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{schema}"
    with owner() as made:
        made.execute(f"CREATE SCHEMA {schema}".encode())
        with PostgresSaver.from_conn_string(named) as saver:
            saver.setup()
        yield named
        made.execute(f"DROP SCHEMA {schema} CASCADE".encode())


@pytest.fixture
def make(web: str) -> Iterator[Made]:
    with savers("over HTTP", web) as made:
        yield made


def bring(make: Made, *arguments: str) -> Any:
    assert make.world is not None
    command = [sys.executable, "-m", "holdpoint.langgraph", "import", *arguments]
    return run_command(*command, env=make.world.python_env, within=4 * PATIENCE)


def test_threads_of_postgres_saver_are_as_they_were_and_go_on(make: Made, source: str) -> None:
    talk, asked, counted = unique("chat"), unique("chat"), unique("chat")
    with PostgresSaver.from_conn_string(source) as saver:
        for words in ("one", "two"):
            talker(saver).invoke({"messages": [HumanMessage(words)]}, config(talk))
        asker(saver, []).invoke({"question": "Pay?", "done": [], "answer": ""}, config(asked))
        counter(saver).invoke({"items": ["first"], "upto": 25}, config(counted) | {"recursion_limit": 100})
        before = {
            thread: list(graph.get_state_history(config(thread)))
            for thread, graph in ((talk, talker(saver)), (asked, asker(saver, [])), (counted, counter(saver)))
        }
    done = bring(make, source, talk)
    assert done.returncode == 0, done.stderr
    assert f"{talk}: {len(before[talk])} checkpoints" in done.stdout
    done = bring(make, source, "--all")  # though one is there already
    assert done.returncode == 1
    assert f"{talk}: The thread '{talk}' has checkpoints here." in done.stderr
    assert f"{asked}: {len(before[asked])} checkpoints" in done.stdout
    here = make()
    graphs = {talk: talker(here), asked: asker(here, []), counted: counter(here)}
    for thread, graph in graphs.items():
        now = list(graph.get_state_history(config(thread)))
        assert [(each.config, each.values, each.next, each.interrupts) for each in now] == [
            (each.config, each.values, each.next, each.interrupts) for each in before[thread]
        ]
    assert len(graphs[talk].invoke({"messages": [HumanMessage("three")]}, config(talk))["messages"]) == 6
    assert graphs[asked].invoke(Command(resume="yes"), config(asked))["answer"] == "yes"
    more = graphs[counted].invoke({"items": ["more"], "upto": 30}, config(counted) | {"recursion_limit": 100})
    assert more["items"][: len(before[counted][0].values["items"])] == before[counted][0].values["items"]
    for thread in graphs:
        verified(thread)


def test_the_first_example_is_complete(web: str, tmp_path: Path) -> None:
    world, script = World(web), tmp_path / "graph.py"
    script.write_text(re.findall(r"```python\n(.*?)```", PART, re.S)[0])
    for lines in (2, 4):
        done = run_command(sys.executable, str(script), env=world.python_env)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("You said:") == lines
    kept = Run.objects.get(thread="chat-1207", team=world.team)
    assert kept.plan.agent == world.agent


def test_every_name_and_command_in_the_page_is_there_and_a_wrong_one_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in re.findall(r"`(Thread\w+|Tampered|HoldpointSaver|import_thread)`", PART):
        assert hasattr(package, name)
    commands = re.findall(r"^python -m holdpoint\.langgraph (.*)$", PART, re.M)
    assert commands
    for command in commands:
        with pytest.raises(SystemExit):
            main([*command.split(), "--help"])
        assert "--all" in capsys.readouterr().out
    monkeypatch.setenv("HOLDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("HOLDPOINT_TOKEN", "hp_a")
    assert main(["import", "postgresql://127.0.0.1:1/nothing", "x"]) == 1
    assert "Traceback" not in capsys.readouterr().err
    with pytest.raises(SystemExit, match="--allow nothing:Here"):
        main(["import", "postgresql://127.0.0.1:1/nothing", "x", "--allow", "nothing:Here"])
