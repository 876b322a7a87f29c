"""What the check of words in Python finds, and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import python_words


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        ('title = "Your decision was not sent."', 1, "Your decision was not sent."),
        ('def told():\n    return f"{name} decided"', 2, "{} decided"),
        ('said = ("Nothing " "was sent")', 1, "Nothing was sent"),
        ('field = Field(label="Team")', 1, "Team"),
        ('class Status(models.TextChoices):\n    OPEN = "open", "Open"', 2, "Open"),
        ('said = _(f"Sent by {name}")', 1, "no f-string"),
        ('said = gettext("Sent " + name)', 1, "no f-string"),
        ('raise Refused("Look once more.")', 1, "Look once more."),
        ('said = "Not sent"  # not translated:', 1, "Not sent"),
    ],
)
def test_words_that_nobody_could_translate_are_found(source: str, line: int, said: str) -> None:
    [(at, what)] = python_words.faults(source)
    assert at == line
    assert said in what


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring of words."""\ndef told():\n    """Another docstring."""',
        'said = _("Not sent"), gettext("Not sent"), gettext_lazy("Not sent"), translation.pgettext("a b", "Not sent")',
        'said = ngettext("%(count)s gate", "%(count)s gates", count) % {"count": count}',
        'field = Field(name="Team", label=_("Team"))\nkind = "decided"',
        'class Status(models.TextChoices):\n    OPEN = "open", _("Open")',
        'raise ValueError("not a digest")',
        'raise Http404("No such gate")',
        'log.info("run %s ended", run)',
        'sql = "SELECT a FROM b WHERE c"\nmore = "\\n  UPDATE gate SET a = b"',
        'guard = "id = $1 AND token = $2"\nmoved = f"{lease}, attempts = 0, wake_at = NULL"\ncolumns = "id, team_id"',
        'rule = "(s.apart AND (g.by IS NULL OR EXISTS (SELECT FROM run)))"\norder = "opened_at DESC, id DESC"',
        'class Gate:\n    permissions = [("decide", "May decide")]',
        'class Gate:\n    def __str__(self):\n        return f"gate {self.pk}"',
        'said = "Not sent"  # not translated: an event keeps it',
        'said = {  # not translated: an event keeps it\n    "a": "Not sent",\n}',
        'def said():  # not translated: an event keeps it\n    return "Not sent"',
        'shape = format_html("<b>{}</b> and {}", a, b)',
    ],
)
def test_what_is_marked_or_not_read_is_left_alone(source: str) -> None:
    assert python_words.faults(source) == []


def test_the_command_says_what_to_do_where_and_fails(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "bad.py").write_text('\nsaid = "Not sent"')
    (tmp_path / "good.py").write_text('said = _("Not sent")')
    command = [sys.executable, "-m", "tests.house.python_words"]
    run = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout == f"{tmp_path}/inner/bad.py:2: mark for translation: “Not sent”\n"
    run = subprocess.run([*command, str(tmp_path / "good.py")], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "")


def test_the_rooms_that_speak_to_people_have_no_fault() -> None:
    assert python_words.check(python_words.ROOT / room for room in python_words.ROOMS) == []
