"""What the forms of a run's page send, read from the pages as a browser would."""

from __future__ import annotations

import html
import re
from typing import Any

from bs4 import BeautifulSoup
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
    return signed_in(ann(run.team))


def page_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of a page's forms, but for the token."""
    found = re.findall(r'<input type="hidden" name="([\w.]+)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in found if name != "csrfmiddlewaretoken"}


def texts(page: str) -> dict[str, str]:
    """What a browser would post of the inputs of the form of a state, by name."""
    found = {}
    for each in BeautifulSoup(page, "html.parser").select("input, textarea, select"):
        chosen = each.select_one("option[selected]") if each.name == "select" else each
        text = each.text.removeprefix("\n") if each.name == "textarea" else (chosen and chosen.get("value")) or ""
        if re.match(r"state[/!]|state$", name := str(each.get("name", ""))):
            found[name] = str(text)
    return found


def said(page: str) -> str:
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
    return client.post(f"/runs/{run.pk}/{noun}/", form)
