"""The inbox in a real terminal decides while a real browser watches the same gate."""

from __future__ import annotations

import secrets
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from approvals.models import Gate
from tests.factories import bob, decide, make_card, make_gate
from tests.harness.browser_checks import is_live
from tests.harness.waiting import until

from .world import COMMAND, Reviewer


class Terminal:
    """A terminal of tmux's, 120 columns wide, that runs one command."""

    def __init__(self, command: str, env: dict[str, str]) -> None:
        self.name = f"hp-{secrets.token_hex(6)}"
        self.env = env
        self.tmux("new-session", "-d", "-x", "120", "-y", "45", command)

    def tmux(self, *arguments: str) -> str:
        """Call tmux, on a server of this terminal's own."""
        command = ["tmux", "-L", self.name, "-f", "/dev/null", *arguments]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, check=True).stdout

    def types(self, *keys: str) -> None:
        """Press keys."""
        for key in keys:
            self.tmux("send-keys", key)

    @property
    def screen(self) -> str:
        """What it shows."""
        return self.tmux("capture-pane", "-p")

    def shows(self, words: str) -> None:
        """Wait until it shows these words; fail with what it shows instead."""
        try:
            until(lambda: words in self.screen, what=f"the terminal shows {words!r}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it shows\n{self.screen}") from error

    def close(self) -> None:
        """End it."""
        self.tmux("kill-server")


@pytest.fixture
def at(web: str, tmp_path: Path) -> Reviewer:
    """Ann at a terminal."""
    return Reviewer(web, tmp_path)


@pytest.fixture
def terminal(at: Reviewer) -> Iterator[Terminal]:
    """Her inbox."""
    made = Terminal(shlex.join([sys.executable, *COMMAND]), at.env)
    yield made
    made.close()


def test_the_terminal_decides_and_the_browser_is_told(
    at: Reviewer, terminal: Terminal, new_page: Callable[..., Page]
) -> None:
    page = new_page(bob(at.gate.team))
    page.goto(f"/gates/{at.gate.pk}/")
    is_live(page)
    terminal.shows("1 gate is open")
    terminal.shows("● live")
    terminal.shows("Refund €120.00 to Marit")
    terminal.shows("▸")  # an action on the card: a key before that would open the gate to be read first
    terminal.types("a")
    terminal.shows("Record the decision")
    terminal.shows("pay runs")
    terminal.types("Enter")
    expect(page.locator("#gate-head")).to_contain_text("Approved by Ann Okafor")
    terminal.shows("approved by Ann Okafor")
    terminal.types("Escape")
    terminal.shows("No gate is open")


def test_what_happens_elsewhere_comes_to_the_terminal(at: Reviewer, terminal: Terminal) -> None:
    terminal.shows("1 gate is open")
    hostile = make_gate(team=at.gate.team, card=make_card(title="\x1b[2J\x1b]2;mine\x07Pay\u202e", risk="low"))
    terminal.shows("2 gates are open")
    terminal.shows("<U+001B>[2J")
    assert terminal.tmux("display-message", "-p", "#{pane_title}").strip() != "mine"
    decide(hostile, bob(at.gate.team))
    terminal.shows("1 gate is open")
    assert Gate.objects.get(pk=at.gate.pk).status == "open"
