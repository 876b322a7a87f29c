"""The assistant stays in its folder, whatever it or a reviewer names, and a write can be taken back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agents.examples.assistant import tools
from agents.moves import rewind
from tests.approvals.cards.verdicts.test_loops import seq_of
from tests.approvals.cards.verdicts.verdict_forms import edit, say
from tests.factories import ann, make_user
from tests.factories.driven_runs import advance_to_rest, decide, effects, open_gate, state

from .assistant_runs import DONE, WRITE, begun, calling
from .endpoint import Endpoint

OUTSIDE = ["../secret", "/etc/passwd", "~/x", "a/../../secret", "link", "linked/secret", "..", "a\0b"]


@pytest.fixture(autouse=True)
def surroundings(folder: Path) -> None:
    """A secret beside the folder, and links to it from within."""
    (folder.parent / "secret").write_text("s3cret")
    (folder / "link").symlink_to(folder.parent / "secret")
    (folder / "linked").symlink_to(folder.parent)


def test_no_path_leads_out_of_the_folder_and_the_model_is_told_so(endpoint: Endpoint, folder: Path) -> None:
    before = sorted(folder.parent.iterdir())
    for path in OUTSIDE:
        with pytest.raises(OSError, match=r"folder|link"):
            tools.read_text(str(folder), path)
        with pytest.raises(OSError, match=r"folder|link"):
            tools.write_file(str(folder), path, "x", was={"before": None, "made": []}, shown=None, key="k" * 64)
    calls = [("read_file", {"path": path}) for path in OUTSIDE[:5]]
    calls += [("write_file", {"path": path, "content": "x"}) for path in OUTSIDE[:5]]
    assert begun(endpoint, calling(*calls), DONE).status == "completed"  # nobody is asked
    assert ["Nothing was done." in told and "s3cret" not in told for told in endpoint.told()] == [True] * 10
    assert sorted(folder.parent.iterdir()) == before
    assert (folder.parent / "secret").read_text() == "s3cret"
    os.mkfifo(folder / "pipe")
    with pytest.raises(OSError, match="is no file"):  # and it holds nobody up
        tools.read_text(str(folder), "pipe")


def test_a_write_and_its_undo_come_to_the_same_however_often_workers_died_in_them(folder: Path) -> None:
    key = "k" * 64
    (folder / f".{key[:24]}.part").write_text("half of it")  # which such a worker left
    before: dict[str, Any] = {"before": None, "made": []}
    first, again = (tools.write_file(str(folder), "notes.md", "new", was=before, shown=None, key=key) for _ in range(2))
    assert (first, (folder / "notes.md").read_text()) == (again, "new")
    assert not list(folder.glob(".*.part"))
    for _ in range(2):
        tools.put_back(str(folder), first, key=key)
    assert not (folder / "notes.md").exists()


def test_a_reviewer_cannot_lead_a_write_out_of_the_folder_either(endpoint: Endpoint, folder: Path) -> None:
    run = begun(endpoint, calling(WRITE), DONE)
    [action] = open_gate(run).asked.actions
    say(run, each={action.id: edit(run, action.id, path="../secret")})
    assert advance_to_rest(run).status == "completed"
    assert "leads out of the folder" in endpoint.told()[0]
    assert (folder.parent / "secret").read_text() == "s3cret"


def test_a_link_that_takes_a_files_place_meanwhile_is_not_written_through(endpoint: Endpoint, folder: Path) -> None:
    run = begun(endpoint, calling(WRITE), DONE)
    (folder / "notes.md").symlink_to(folder.parent / "secret")
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert "links are not followed" in endpoint.told()[0]
    assert (folder.parent / "secret").read_text() == "s3cret"


def test_a_file_that_changed_since_it_was_shown_is_not_written_over(endpoint: Endpoint, folder: Path) -> None:
    (folder / "notes.md").write_text("before")
    run = begun(endpoint, calling(WRITE), DONE)
    [quote] = open_gate(run).asked.quotes
    assert (quote.label, state(run)["replaced"][0]["text"]) == ("notes.md", "before")
    (folder / "notes.md").write_text("somebody else's")
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert "was changed after a person had looked at it" in endpoint.told()[0]
    assert (folder / "notes.md").read_text() == "somebody else's"


@pytest.mark.parametrize("before", [None, "what was there"])
def test_a_rewind_over_a_write_puts_back_what_was_there(before: str | None, endpoint: Endpoint, folder: Path) -> None:
    target = folder / "deep" / "er" / "notes.md"
    if before is not None:
        target.parent.mkdir(parents=True)
        target.write_text(before)
        target.chmod(0o4640)
    run = begun(endpoint, calling(("write_file", {"path": "deep/er/notes.md", "content": "new"})), DONE)
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert target.read_text() == "new"
    rewind.rewind(run, to=seq_of(run, "begin"), by=make_user("Bob Lindqvist", run.team))
    advance_to_rest(run)
    decide(run, "reject", then="stop", comment="No more.")
    assert advance_to_rest(run).status == "cancelled"
    assert [row.status for row in effects(run) if row.undoes_id is None] == ["undone"]
    if before is None:
        assert not (folder / "deep").exists()
    else:
        assert (target.read_text(), target.stat().st_mode & 0o7777) == (before, 0o640)  # and nobody else's rights


def test_what_somebody_changed_since_is_not_put_back_and_a_person_is_asked(endpoint: Endpoint, folder: Path) -> None:
    run = begun(endpoint, calling(WRITE), DONE)
    decide(run)
    advance_to_rest(run)
    (folder / "notes.md").write_text("worth keeping")
    rewind.rewind(run, to=seq_of(run, "begin"), by=make_user("Bob Lindqvist", run.team))
    advance_to_rest(run)
    decide(run, "reject", by=ann(run.team), then="stop", comment="No more.")
    assert advance_to_rest(run).status == "waiting"
    assert "was changed since it was written" in str(open_gate(run).asked.to_json())
    assert (folder / "notes.md").read_text() == "worth keeping"


def test_a_run_whose_folder_is_not_the_settings_any_more_does_nothing(
    endpoint: Endpoint, folder: Path, settings: Any, tmp_path: Path
) -> None:
    run = begun(endpoint, calling(WRITE), DONE)
    settings.HOLDPOINT_ASSISTANT_FOLDER = str(tmp_path / "another")
    decide(run)
    assert advance_to_rest(run).status == "waiting"
    assert open_gate(run).kind == "recovery"
    assert not list((tmp_path / "another").iterdir())
