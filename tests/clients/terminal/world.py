"""The command `holdpoint` as people start it, with a token of theirs."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from django.contrib.auth.models import User
from holdpoint import Ask, Holdpoint, command

from approvals.models import Gate
from tests.factories import MEMBER, make_gate, make_team, make_user, unique
from tests.factories.tokens import make_token
from tests.harness.services import WARM
from tests.harness.session import ROOT

COMMAND = ["-m", "holdpoint.command"]  # of Python
WIRE = {"to": "ACME", "amount": "120.00", "urgent": False}
PASSWORD = "open sesame again"


@dataclass
class Reviewer:
    """Somebody at a terminal: a home of their own, and a token unless they sign in by themselves."""

    url: str
    home: Path
    scopes: tuple[str, ...] = ()
    signed_in: bool = True
    user: User = field(init=False)
    gate: Gate = field(init=False)

    def __post_init__(self) -> None:
        team = make_team(may=MEMBER)
        self.user = make_user("Ann Okafor", team, password=PASSWORD)
        self.gate = make_gate(team=team)
        self.token = make_token(self.user, *self.scopes)[1] if self.signed_in else ""

    @property
    def env(self) -> dict[str, str]:
        # Processes of pytest-xdist have COLUMNS and LINES, which would count more than the terminal's own size.
        left = ("HOLDPOINT_", "DJANGO_", "COLUMNS", "LINES")
        plain = {name: each for name, each in os.environ.items() if not name.startswith(left)}
        mine = {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / "config"), "HOLDPOINT_URL": self.url}
        paths = [str(ROOT / "clients/python/src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        token = {"HOLDPOINT_TOKEN": self.token} if self.token else {}
        return plain | mine | token | {"PYTHONPATH": ":".join(paths), "TERM": "xterm-256color"}

    def posted_each(self, *asks: Ask) -> Gate:
        """A gate of a program elsewhere, with several actions."""
        with Holdpoint(self.url, self._owner_token()) as hp:
            return Gate.objects.get(pk=hp.approve_each.defer(list(asks), title="Pay and tell").id)

    def _owner_token(self) -> str:
        owner = make_user("Olga Owner", self.gate.team)
        return make_token(owner, team=self.gate.team, agent=unique("teller"))[1]

    def posted(self, **more: Any) -> Gate:
        """A gate of a program elsewhere, whose arguments can be edited."""
        with Holdpoint(self.url, self._owner_token()) as hp:
            arguments = {**WIRE, **more.pop("arguments", {})}
            asked = hp.approve.defer(
                "wire", arguments, title="Pay invoice 7", pinned=["amount"], **{"risk": "high", **more}
            )
        return Gate.objects.get(pk=asked.id)

    def runs(
        self, *arguments: object, env: dict[str, str] | None = None, typed: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, in this process: starting another takes longer than most commands."""
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, self.env | (env or {}), clear=True),
            mock.patch.object(sys, "stdin", io.StringIO(typed)),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            try:
                code = command.main([str(word) for word in arguments])
            except SystemExit as end:
                code = int(end.code or 0)
        return subprocess.CompletedProcess([*map(str, arguments)], code, out.getvalue(), err.getvalue())

    def starts(self, *arguments: object) -> subprocess.Popen[str]:
        words, out = WARM.standing(*COMMAND, *map(str, arguments)), subprocess.PIPE
        return subprocess.Popen(words, env=self.env, stdout=out, stderr=out, text=True)


def code_in(said: str) -> str:
    found = re.search(r"\b[B-Z]{4}-[B-Z]{4}\b", said)
    assert found is not None, said
    return found.group()
