"""Real terminals beside a real browser: signing in by a code, and the inbox deciding while the gate's page is open."""

from __future__ import annotations

import json
import secrets
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from holdpoint.errors import NotConfigured
from holdpoint.terminal import command_line as exits
from holdpoint.terminal import credentials
from holdpoint.terminal.credentials import Server
from playwright.sync_api import Page, expect

from agents import device_codes
from agents.models import DeviceRequest, Token
from approvals.models import Gate
from tests.clients.terminal.world import COMMAND, PASSWORD, Reviewer, code_in
from tests.factories import bob, decide, make_card, make_gate
from tests.harness.browser_checks import check_each_look, watched
from tests.harness.services import WARM
from tests.harness.session import ROOT
from tests.harness.waiting import PATIENCE, until

NewPage = Callable[..., Page]


@pytest.fixture
def newcomer(web: str, tmp_path: Path) -> Reviewer:
    return Reviewer(web, tmp_path, signed_in=False)


def shown_code(login: subprocess.Popen[str]) -> str:
    """Read what `login` says up to its code."""
    said = ""
    assert login.stderr is not None
    while "valid for" not in said:
        line = login.stderr.readline()
        assert line, said
        said += line
    assert "/device/" in said
    return code_in(said)


def test_whoever_confirms_is_signed_in_at_the_terminal_until_they_sign_out(newcomer: Reviewer) -> None:
    with newcomer.starts("login") as login:
        request = device_codes.find(shown_code(login), by=newcomer.user)
        assert device_codes.confirm(request, by=newcomer.user)
        _, told = login.communicate(timeout=PATIENCE)
    assert (login.returncode, "Signed in as Ann Okafor for" in told) == (0, True)
    kept = newcomer.home / "config/holdpoint/credentials.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    sent = json.loads(kept.read_text())["servers"][newcomer.url]["token"]
    assert str(newcomer.gate.pk) in newcomer.runs("gates").stdout
    token = Token.objects.get(user=newcomer.user)
    assert token.scopes == ["gates:decide", "gates:read", "runs:order", "runs:read"]
    assert newcomer.runs("logout").returncode == 0
    assert sent not in kept.read_text()
    token.refresh_from_db()
    assert token.revoked_by == f"user:{newcomer.user.pk}"
    assert newcomer.runs("gates").returncode == exits.NO_TOKEN
    assert newcomer.runs("gates", env={"HOLDPOINT_TOKEN": sent}).returncode == exits.NO_TOKEN


@pytest.mark.long
def test_the_page_of_a_code_confirms_it_in_a_browser_in_every_look(newcomer: Reviewer, new_page: NewPage) -> None:
    page = new_page(newcomer.user)
    with newcomer.starts("login") as login:
        said = watched(page)
        page.goto(f"/device/?code={shown_code(login)}")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_text("Confirm only what you started yourself")).to_be_visible()
        assert check_each_look(page, "", said) == []
        page.get_by_role("button", name="Confirm who you are").click()
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_role("button", name="Confirm").click()
        expect(page.get_by_text("You confirmed who you are")).to_be_visible()
        page.get_by_role("button", name="Confirm").click()
        expect(page.get_by_role("heading", name="Signed in")).to_be_visible()
        login.communicate(timeout=PATIENCE)
    assert login.returncode == 0


@pytest.mark.long
def test_whoever_is_refused_is_not_signed_in(newcomer: Reviewer) -> None:
    with newcomer.starts("login") as login:
        shown_code(login)
        assert device_codes.refuse(DeviceRequest.objects.latest("pk"), by=newcomer.user)
        _, told = login.communicate(timeout=PATIENCE)
    assert login.returncode == exits.NO_TOKEN
    assert "The request was refused" in told
    assert not Token.objects.filter(user=newcomer.user).exists()
    assert not (newcomer.home / "config/holdpoint/credentials.json").exists()


@pytest.mark.long
def test_what_the_documentation_shows_first_works_as_it_stands(newcomer: Reviewer, tmp_path: Path) -> None:
    text = (ROOT / "docs/frameworks/terminal.md").read_text()
    script = text.partition("```sh\n")[2].partition("```")[0]
    shim = tmp_path / "bin/holdpoint"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {shlex.join(WARM.standing(*COMMAND))} "$@"\n')
    shim.chmod(0o755)
    env = newcomer.env | {"PATH": f"{shim.parent}:{newcomer.env['PATH']}"}
    pipe, command = subprocess.PIPE, ["bash", "-euo", "pipefail", "-c", script]
    with subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True) as shell:
        shown_code(shell)
        assert device_codes.confirm(DeviceRequest.objects.latest("pk"), by=newcomer.user)
        said, told = shell.communicate(timeout=PATIENCE)
    assert shell.returncode == 0, told
    assert "Recorded: approve; the gate is decided." in said
    assert newcomer.gate.decisions.get().user == newcomer.user
    assert "The token is revoked." in told


def test_the_file_is_refused_where_others_can_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("HOLDPOINT_URL", "HOLDPOINT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    place = credentials.keep(Server("https://one.example", "hp_one", "Ann"))
    credentials.keep(Server("https://two.example", "hp_two"))
    assert credentials.server().token == "hp_two"
    assert credentials.server("https://one.example/api/") == Server("https://one.example", "hp_one", "Ann")
    with pytest.raises(NotConfigured, match="no token for https://three"):
        credentials.server("https://three.example")
    monkeypatch.setenv("HOLDPOINT_TOKEN", "hp_given")
    assert credentials.server("https://one.example").token == "hp_given"
    monkeypatch.delenv("HOLDPOINT_TOKEN")
    credentials.forget("https://two.example")
    assert credentials.server().url == "https://one.example"
    assert [each.name for each in place.parent.iterdir()] == ["credentials.json"]
    place.chmod(0o640)
    with pytest.raises(NotConfigured, match="chmod 600"):
        credentials.server("https://one.example")


def test_a_server_elsewhere_is_asked_without_encryption_only_if_told(at: Reviewer) -> None:
    there = at.url.replace("127.0.0.1", "127.1")  # the same server, under a name that is not known to be this machine's
    before = DeviceRequest.objects.count()
    refused = at.runs("login", there)
    assert (refused.returncode, "is not encrypted" in refused.stderr) == (exits.USAGE, True)
    told = at.runs("login", "--plain-http", there)
    assert told.returncode == exits.FAILED
    assert "The answer (400) is not from Holdpoint" in told.stderr
    assert DeviceRequest.objects.count() == before, "the server knows no such name"


class Terminal:
    """A terminal of tmux's, 120 columns wide, that runs one command."""

    def __init__(self, command: str, env: dict[str, str]) -> None:
        self.name = f"hp-{secrets.token_hex(6)}"
        self.env = env
        self.tmux("new-session", "-d", "-x", "120", "-y", "45", command)

    def tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self.name, "-f", "/dev/null", *arguments]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, check=True).stdout

    def types(self, *keys: str) -> None:
        for key in keys:
            self.tmux("send-keys", key)

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def shows(self, words: str) -> None:
        """Wait until it shows these words."""
        until(lambda: words in self.screen, what=f"the terminal shows {words!r}")

    def close(self) -> None:
        self.tmux("kill-server")


@pytest.fixture
def terminal(at: Reviewer) -> Iterator[Terminal]:
    made = Terminal(shlex.join([sys.executable, *COMMAND]), at.env)
    yield made
    made.close()


def test_the_terminal_decides_and_is_told_what_happens_elsewhere(at: Reviewer, terminal: Terminal) -> None:
    terminal.shows("1 gate is open")
    hostile = make_gate(team=at.gate.team, card=make_card(title="\x1b[2J\x1b]2;mine\x07Pay\u202e", risk="low"))
    terminal.shows("2 gates are open")
    terminal.shows("<U+001B>[2J")
    assert terminal.tmux("display-message", "-p", "#{pane_title}").strip() != "mine"
    decide(hostile, bob(at.gate.team))
    terminal.shows("1 gate is open")
    terminal.shows("Refund €120.00 to Marit")
    terminal.shows("▸")  # an action on the card: a key before that would open the gate to be read first
    terminal.types("a")
    terminal.shows("Record the decision")
    terminal.shows("pay runs")
    terminal.types("Enter")
    terminal.shows("approved by Ann Okafor")
    assert Gate.objects.get(pk=at.gate.pk).status == "decided"
    terminal.types("Escape")
    terminal.shows("No gate is open")
