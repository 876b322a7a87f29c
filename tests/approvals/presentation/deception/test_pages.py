"""No page carries a character that a reader cannot see, but in the fields that give a value back as it is."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from holdpoint import unseen_characters

from approvals.models import Gate
from checkpoints.models import Checkpoint, Run
from tests.approvals.presentation.deception.trickster_agent import ATTACK, SCRIPT, SHORT
from tests.factories import make_user
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate
from tests.harness.signed_in_clients import signed_in

# What an input carries is what comes back from it; what it holds is shown beside it with badges.
CARRIED = re.compile(r'(?:value|data-was)="[^"]*"|<textarea.*?</textarea>', re.DOTALL)
TAGS = ("<img", "<iframe", "onload=alert(2)>", 'javascript:alert(3)"')
LINK = re.compile(r'\s(?:href|src|action)="((?![/#?])[^"]*)"')  # that leaves the product


def test_no_page_carries_what_cannot_be_seen_or_a_tag_of_the_agents() -> None:
    asked, question, run = stories()
    reader = make_user("Rita Reader", asked.team, may=("checkpoints.view_run",))
    decider = make_user("Ann Okafor", asked.team, may=("checkpoints.rewind_run", "approvals.decide_gate"))
    for person in (reader, decider):
        person.first_name = f"{SHORT} <img src=x>".replace("\x1b", "")[:150]
        person.save()
    faults, seen, everywhere = [], 0, addresses(asked, question, run)
    for client, places in ((signed_in(reader), everywhere[4:8]), (signed_in(decider), everywhere)):
        for address in places:
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
    return sorted(char for char in set(page) - {"\ufe0f"} if unseen_characters.is_hidden(char))


def around(page: str, char: str) -> str:
    at = page.index(char)
    return page[max(at - 120, 0) : at + 20]


@pytest.mark.parametrize("name", ["p\u0430y", "pay\u202e", "\uff50ay"])
def test_a_name_that_only_looks_like_another_is_refused(name: str) -> None:
    from approvals.cards.card import IDENTIFIER

    assert not IDENTIFIER.fullmatch(name)


PARTS = ("status/", "preview/", "values/?at=/trick/text", "values/?at=/said")


def stories() -> tuple[Gate, Gate, Run]:
    """(a gate that asks about an action, one that asks a question, the run of the second)."""
    waiting = advance_to_rest(make_run("trickster"))
    through = advance_to_rest(make_run("trickster", team=waiting.team))
    standing = open_gate(through).standing().card.action("do")
    assert standing is not None
    edited = {**standing.arguments, "text": ATTACK + " edited", "amount": SHORT + "1"}
    decide(through, "edit", arguments={"do": edited}, comment=ATTACK)
    advance_to_rest(through)
    return open_gate(waiting), open_gate(through), through


def addresses(asked: Gate, question: Gate, run: Run) -> list[str]:
    gates = [f"/gates/{pk}/" for pk in Gate.objects.filter(team=asked.team).values_list("pk", flat=True)]
    last = Checkpoint.objects.filter(run=run).latest("seq").seq
    runs = [f"/runs/{asked.run_id}/", f"/runs/{run.pk}/", f"/runs/{run.pk}/?at=2"]
    searched = [f"{page}?q={quote(SHORT + SCRIPT)}" for page in ("/", "/runs/", "/audit/", "/jump/")]
    checkpoint = f"/runs/{run.pk}/checkpoints/{last}/"
    more = [checkpoint, *(f"{checkpoint}{what}" for what in ("edit/", "fork/", "value?at=/trick", "value/trick"))]
    more += [f"/runs/{run.pk}/{what}" for what in ("events/", "timeline/", "comparisons/?a=1&b=2")]
    return ["/", "/?queue=all", "/?queue=decided", "/runs/", *gates, *(g + part for g in gates for part in PARTS),
            *runs, *more, "/audit/", *searched]  # fmt: skip
