"""Each hostile string in every place that takes text, looked at in a real browser: nothing runs, nothing is fetched.

A program puts it into all members of a gate that accept it; a person says it, types it, searches for it and is called
by it. The whole list takes some minutes a family.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from playwright.sync_api import Page

from approvals.models import Gate
from tests.agents.remote.outside_program import Program
from tests.factories import MEMBER, make_team, make_user
from tests.harness.browser_checks import watched
from tests.harness.signed_in_clients import form_of, signed_in

from .hostile_strings import FAMILIES
from .test_in_a_browser import PROBE, strayed

NewPage = Callable[..., Page]
BODY: dict[str, Any] = {
    "title": "Wire", "summary": "Due.", "for_whom": "ACME", "amount": "1.00 EUR", "resource": "Invoice",
    "reasons": ["First payment"],
    "actions": [
        {
            "id": "wire", "title": "Wire money", "tool": "wire", "pinned": ["/amount"],
            "arguments": {"amount": "1.00", "to": "a", "note": "x", "lines": [{"label": "y"}], "named": {"z": "z"}},
            "schema": {
                "type": "object", "title": "Wiring", "description": "What is wired",
                "properties": {
                    "amount": {"type": "string", "title": "Amount", "description": "How much", "examples": ["1"]},
                    "to": {"title": "To", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
                    "note": {"type": "string", "format": "date", "default": "x"},
                    "lines": {"type": "array", "items": {"type": "object", "properties": {"label": {"title": "L"}}}},
                    "named": {"type": "object", "additionalProperties": {"type": "string", "title": "N"}},
                },
            },
        }
    ],
    "state": {"mail": {"text": "Pay me."}, "list": ["x", {"deep": ["y"]}]},
    "quotes": [{"label": "Marit", "pointer": "/mail/text", "role": "by mail"}],
    "worker": "box:81",
}  # fmt: skip
KEYS = ("/actions/0/arguments/named", "/state/mail", "/state/list/1")  # objects whose names are anybody's


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_no_string_of_the_list_runs_or_fetches_or_misleads(new_page: NewPage, web: str, family: str) -> None:
    page = new_page(viewport={"width": 1440, "height": 900})
    said, faults = watched(page), list[tuple[str, object]]()
    page.on("dialog", lambda dialog: faults.append(("dialog", dialog.message)))
    page.on("popup", lambda popup: faults.append(("popup", popup.url)))
    page.on("request", lambda request: faults.extend(strayed(request, web)))
    looked = 0
    for text in FAMILIES[family]:
        gate, reader = story(text)
        page.context.clear_cookies()
        page.context.add_cookies([{"name": "sessionid", "value": reader, "url": web}])
        for address in addresses(gate, text):
            answer = page.goto(address)
            assert answer is not None
            assert answer.status in (200, 400, 404, 405), (address, answer.status)
            page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
            faults += [(f"{text[:60]!r} at {address[:60]}", fault) for fault in page.evaluate(PROBE)]
            looked += 1
    assert faults == []
    assert [words for words in said if "status of 40" not in words] == []
    assert looked > 10 * len(FAMILIES[family])


def story(text: str) -> tuple[Gate, str]:
    """(a gate with the text in every place that takes it, the session of somebody who is called by it)."""
    team = make_team(may=MEMBER)
    program = Program(team=team)
    whole, taken = everywhere(program, text)
    posted = program.post("gates", whole)
    assert posted.status_code == 201, (text, posted.content)
    assert taken > 10, f"{text!r} was taken in {taken} places"
    gate = Gate.objects.select_related("run").get(pk=posted.json()["gate"])
    person = make_user("Rita Reader", team)
    named = "".join(char for char in text if char.isprintable())
    person.first_name, person.last_name = named[:150] or "Rita", named[-150:]
    person.save()
    client = signed_in(person)
    speak(client, gate, text)
    return gate, client.cookies["sessionid"].value


def everywhere(program: Program, text: str) -> tuple[dict[str, Any], int]:
    """The body with the text in each place where it is taken, and how many those are."""
    whole, taken = BODY, 0
    spots = [(place, text) for place in leaves(BODY)] + [([*key.split("/")[1:], text], "named by it") for key in KEYS]
    for place, value in spots:
        tried = replaced(whole, place, value)
        if program.post("gates", tried).status_code == 201:
            whole, taken = tried, taken + 1
    return whole, taken


def leaves(value: Any, *at: str | int) -> Iterator[list[str | int]]:
    """The place of each text in a value."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from leaves(each, *at, name)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from leaves(each, *at, number)
    elif isinstance(value, str):
        yield list(at)


def replaced(body: dict[str, Any], place: list[Any], value: str) -> dict[str, Any]:
    """A copy with `value` at that place."""
    made = json.loads(json.dumps(body))
    into = made
    for part in place[:-1]:
        into = into[int(part) if isinstance(into, list) else part]
    into[place[-1]] = value
    return made  # type: ignore[no-any-return]


def speak(client: Client, gate: Gate, text: str) -> None:
    """Say it at the gate, keep it in a draft, and have it previewed."""
    typed = {"comment": text, "args.wire/note": text, "args.wire/amount": text, "reason.wire": text, "feedback": text}
    for address, form in (
        ("remarks/", {"text": text, "key": "k" * 32}),
        ("impacts/", form_of(gate, "edit", **typed)),
        ("drafts/", form_of(gate, "edit", **typed)),
        ("decisions/", form_of(gate, "edit", **typed)),
    ):
        assert client.post(f"/gates/{gate.pk}/{address}", form).status_code < 500, (address, text)


def addresses(gate: Gate, text: str) -> list[str]:
    """The pages on which it stands, and those that are asked for it."""
    run, asked = f"/runs/{gate.run_id}/", quote(text[:500], safe="")
    there = [f"/gates/{gate.pk}/", f"/gates/{gate.pk}/preview/", f"/gates/{gate.pk}/status/", "/", "/?queue=all"]
    there += [
        run,
        f"{run}events/",
        f"{run}checkpoints/1/",
        f"{run}checkpoints/1/edit/",
        "/runs/",
        "/audit/",
        "/tokens/",
    ]
    return [*there, f"/?q={asked}", f"/runs/?q={asked}", f"/audit/?q={asked}", f"/jump/?q={asked}",
            f"/accounts/login/?next={asked}", f"/{asked}"]  # fmt: skip
