"""Starting the assistant from the command line."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from agents import AgentError
from agents.examples.assistant import Assistant
from checkpoints.models import Run
from tests.factories import make_team
from tests.harness.session import ROOT

from .endpoint import Endpoint

TASKS = ROOT / "agents" / "examples" / "assistant" / "tasks"


def test_a_folder_of_texts_is_a_task_each(tmp_path: Path) -> None:
    [summary] = Assistant.inputs_from(TASKS)
    assert summary["task"].startswith("Summarise what is in the folder")
    (tmp_path / "b.txt").write_text("Second.")
    (tmp_path / "a.md").write_text("First.")
    (tmp_path / "c.bin").write_text("Neither.")
    assert Assistant.inputs_from(tmp_path) == [{"task": "First."}, {"task": "Second."}]
    assert Assistant.inputs_from(tmp_path / "c.bin") == [{"task": "Neither."}]
    with pytest.raises(AgentError, match=r"no .md or .txt file"):
        Assistant.inputs_from(TASKS.parent.parent / "refunds" / "mails")


@pytest.mark.parametrize("key", ["", "sk-some"])
def test_the_command_starts_a_run_and_says_where_a_key_is_missing(key: str, endpoint: Endpoint, settings: Any) -> None:
    settings.OPENAI_API_KEY = key
    team, said, warned = make_team(), StringIO(), StringIO()
    call_command("run_agent", "assistant", "--input", '{"task": "Look around."}', "--team", team.name, stdout=said,
                 stderr=warned)  # fmt: skip
    run = Run.objects.get(team=team)
    assert (run.title, run.status) == ("Look around.", "queued")
    assert f"/runs/{run.pk}/" in said.getvalue()
    assert ("set OPENAI_API_KEY" in warned.getvalue()) == (not key)
