"""What the forms of a run's page send, read from the pages as a browser would."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from checkpoints.models import Run
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, decide, make_run
from tests.harness.signed_in_clients import signed_in


def booked(ledger: str, **input: Any) -> Run:
    """A finished booking: plan, ask, then book, pay and tell, the last of which is final."""
    run = advance_to_rest(make_run("booking", ledger=ledger, **input))
    decide(run)
    assert advance_to_rest(run).status == "completed"
    return run


def member(run: Run) -> Client:
    """Somebody of the run's team, who may rewind it."""
    return signed_in(ann(run.team))


def page_of(client: Client, address: str) -> str:
    """The page, as text."""
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of a page's forms, but for the token."""
    found = re.findall(r'<input type="hidden" name="([\w.]+)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in found if name != "csrfmiddlewaretoken"}


class Inputs(HTMLParser):
    """What a browser would post of a page's inputs, by name."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self.inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An input, a choice's chosen option, the beginning of a text area."""
        held = dict(attrs)
        if tag in ("input", "textarea", "select") and held.get("name"):
            self.inside = str(held["name"]) if tag != "input" else ""
            self.found[str(held["name"])] = held.get("value") or ""
        elif tag == "option" and self.inside and "selected" in held:
            self.found[self.inside] = held.get("value") or ""

    def handle_data(self, data: str) -> None:
        """The text of a text area, less the line break that its tag swallows."""
        if self.inside and self.lasttag == "textarea":
            self.found[self.inside] += data if self.found[self.inside] else data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        """Where a text area or a choice ends."""
        if tag in ("textarea", "select"):
            self.inside = ""


def texts(page: str) -> dict[str, str]:
    """The inputs of the form of a state, by name."""
    return {name: text for name, text in Inputs(page).found.items() if re.match(r"state[/!]|state$", name)}


def said(page: str) -> str:
    """What a reader reads."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


def ask(client: Client, run: Run, kind: str, **form: Any) -> str:
    """The preview of an order, as a script fetches it."""
    answer = client.post(f"/runs/{run.pk}/impacts/", {"kind": kind, **form}, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return answer.content.decode()


def panel_of(client: Client, run: Run, at: int) -> str:
    """The run's page with what a rewind at a checkpoint would do, as it comes without a script."""
    assert 'id="rewind-ask"' in page_of(client, f"/runs/{run.pk}/?at={at}")
    answer = client.post(f"/runs/{run.pk}/impacts/", {"kind": "rewind", "at": at, "panel": 1})
    assert answer.status_code == 200
    return answer.content.decode()


def order(client: Client, run: Run, noun: str, **form: Any) -> Any:
    """POST an order."""
    return client.post(f"/runs/{run.pk}/{noun}/", form)


def someone(run: Run, name: str = "Rita Reader") -> User:
    """Somebody of the team."""
    from tests.factories import make_user

    return make_user(name, run.team)
