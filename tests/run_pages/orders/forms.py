"""What the forms of a run's page send, read from the pages as a browser would."""

from __future__ import annotations

import html
import re
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from checkpoints.models import Run
from tests.agents.driving import advance_to_rest, decide, make_run
from tests.factories import ann
from tests.pages.clients import signed_in


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


def texts(page: str) -> dict[str, str]:
    """The text areas of a page, by name."""
    found = re.findall(r'<textarea [^>]*name="([\w.]+)"[^>]*>\n?(.*?)</textarea>', page, re.S)
    return {name: html.unescape(text) for name, text in found}


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
