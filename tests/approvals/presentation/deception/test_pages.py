"""No page carries a character that a reader cannot see, but in the fields that give a value back as it is."""

from __future__ import annotations

import re

import pytest

from approvals.presentation.text import unseen_characters
from approvals.schema.walk import sanitise_schema
from tests.factories import make_user
from tests.harness.signed_in_clients import signed_in

from .attacked_pages import addresses, stories
from .trickster_agent import Trick

# What an input carries is what comes back from it; what it holds is shown beside it with badges.
CARRIED = re.compile(r'(?:value|data-was)="[^"]*"|<textarea.*?</textarea>', re.DOTALL)
TAGS = ("<img", "<iframe", "onload=alert(2)>", 'javascript:alert(3)"')
LINK = re.compile(r'\s(?:href|src|action)="((?![/#?])[^"]*)"')  # that leaves the product


def test_no_page_carries_what_cannot_be_seen_or_a_tag_of_the_agents() -> None:
    asked, question, run = stories()
    reader = signed_in(make_user("Rita Reader", asked.team, may=("checkpoints.view_run",)))
    decider = signed_in(make_user("Ann Okafor", asked.team, may=("checkpoints.rewind_run", "approvals.decide_gate")))
    faults, seen = [], 0
    for client in (reader, decider):
        for address in addresses(asked, question, run):
            answer = client.get(address)
            if answer.status_code in (403, 404):
                continue
            assert answer.status_code == 200, address
            page = CARRIED.sub("", answer.content.decode())
            seen += "evil.invalid" in page
            faults += [(address, f"U+{ord(char):04X}", around(page, char)) for char in hidden(page)]
            faults += [(address, tag, "") for tag in TAGS if tag in page]
            faults += [(address, "a link", link) for link in LINK.findall(page)]
    assert faults == []
    assert seen > 20


def hidden(page: str) -> list[str]:
    return sorted({char for char in page if unseen_characters.is_hidden(char) and char != "\ufe0f"})


def around(page: str, char: str) -> str:
    at = page.index(char)
    return page[max(at - 120, 0) : at + 20]


def test_the_schema_of_the_attack_says_what_it_says() -> None:
    assert sanitise_schema(Trick.model_json_schema())["properties"]["text"]["title"]


@pytest.mark.parametrize("name", ["p\u0430y", "pay\u202e", "\uff50ay"])
def test_a_name_that_only_looks_like_another_is_refused(name: str) -> None:
    from approvals.cards.card import IDENTIFIER

    assert not IDENTIFIER.fullmatch(name)
