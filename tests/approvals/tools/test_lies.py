"""A program called the recipient "Internal note" and the amount "Invoice number", and the page said so as if it were
ours: whatever whoever asks calls things, a reviewer reads the real names and values, and the words as theirs.
"""

from __future__ import annotations

import re
from html import unescape

import pytest

from approvals.models import Gate
from tests.agents.remote.outside_program import STEPS, Program
from tests.factories import MEMBER, ann, make_user
from tests.harness.signed_in_clients import confirmed, form_of, post, signed_in

from .lying_program import TITLE, lied

TAG = re.compile(r"<[^>]+>")
THEIRS = re.compile(r'<q class="theirs[^"]*">(.*?)</q>', re.DOTALL)
PIN = re.compile(r"<dt>(?:(?!<dt>).)*?pin-name(?:(?!</div>).)*", re.DOTALL)
COMMIT = re.compile(r'data-for="approve"[^>]*data-commit>\s*<span id="commit-approve">(.*?)</span>', re.DOTALL)
LIES = ("verified by Holdpoint", "Internal note", "Invoice number", "Amount (EUR)", "ACME Ltd", "€10.00")


def words(html: str) -> str:
    return " ".join(unescape(TAG.sub(" ", html)).split())


def ours(html: str) -> str:
    """What the page says in our own voice: without what is marked as somebody else's words."""
    plain = re.sub(r"<figure class=\"quote\".*?</figure>", "", THEIRS.sub("", html), flags=re.DOTALL)
    plain = re.sub(r"<(?:script|title|ul class=\"look\").*?</(?:script|title|ul)>", "", plain, flags=re.DOTALL)
    return plain.partition('<section class="sheet" aria-labelledby="state"')[0]


@pytest.fixture
def gate() -> Gate:
    return lied()


def page(gate: Gate, part: str = "") -> str:
    answer = signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/{part}")
    assert answer.status_code == 200
    return str(answer.content.decode())


class TestGatePage:
    """What somebody reads who is to decide."""

    def test_what_the_program_calls_things_is_its_words(self, gate: Gate) -> None:
        html = page(gate)
        told = [words(each) for each in THEIRS.findall(html)]
        assert {TITLE, "Internal note", "Invoice number", "Amount (EUR)", "ACME Ltd"} <= set(told)
        assert f"Title by {gate.run.plan.agent}" in words(html)

    @pytest.mark.parametrize("lie", ["Internal note", "Invoice number", "Amount (EUR)"])
    def test_no_label_of_the_program_is_in_our_voice(self, gate: Gate, lie: str) -> None:
        assert lie not in unescape(ours(page(gate)))

    def test_what_is_pinned_has_its_real_name_and_value(self, gate: Gate) -> None:
        [pin] = PIN.findall(page(gate))
        assert '<code class="pin-name"><bdi>amount</bdi></code>' in pin
        assert "99999.00" in words(pin).replace(" ", "")
        assert THEIRS.findall(pin) == ["<bdi>Invoice number</bdi>"]

    def test_every_field_has_its_real_name(self, gate: Gate) -> None:
        html = page(gate)
        for name in ("to", "amount", "ref"):
            assert f'<code class="real"><bdi>{name}</bdi></code>' in html

    def test_a_value_that_goes_by_another_name_is_shown_itself(self, gate: Gate) -> None:
        options = re.findall(r"<option[^>]*>(.*?)</option>", page(gate))
        assert [unescape(each) for each in options if "ACME" in each or "Eve" in each] == [
            "eve-account, which they call “ACME Ltd”",
            "acme-4711, which they call “Eve Evil”",
        ]

    def test_an_amount_that_no_argument_bears_out_is_pointed_at(self, gate: Gate) -> None:
        assert "“€10.00” in the title is not what runs: amount is 99999.00. It appears only in ref." in words(
            page(gate)
        )

    def test_a_recipient_that_no_argument_bears_out_is_pointed_at(self, gate: Gate) -> None:
        assert "“ACME Ltd” in the title is not what runs: to is eve-account." in words(page(gate))

    def test_the_risk_is_the_programs_word(self, gate: Gate) -> None:
        html = page(gate)
        assert f"says {gate.run.plan.agent}" in words(html.partition('<dl class="cells">')[2].partition("</dl>")[0])
        assert "calls the risk low" in words(html)

    def test_the_button_names_the_amount_that_would_run(self, gate: Gate) -> None:
        [said] = COMMIT.findall(page(gate))
        assert "99999.00" in said
        assert not any(lie in unescape(said) for lie in LIES)


class TestElsewhere:
    """Everywhere else that a reviewer reads."""

    @pytest.mark.parametrize("part", ["preview/", "status/"])
    def test_parts_of_the_page(self, gate: Gate, part: str) -> None:
        assert not any(lie in unescape(ours(page(gate, part))) for lie in LIES)

    def test_the_preview_says_what_would_run(self, gate: Gate) -> None:
        said = words(page(gate, "preview/"))
        assert "bank.wire" in said
        assert "amount 99999.00" in said
        assert "is not what runs" in said

    @pytest.mark.parametrize("address", ["/", "/?queue=all", "/runs/", "/jump/?q=wire", "/?queue=decided"])
    def test_lists(self, gate: Gate, address: str) -> None:
        if "decided" in address:
            assert post(ann(gate.team), gate, form_of(gate)).status_code == 303
        html = signed_in(ann(gate.team)).get(address).content.decode()
        assert TITLE in unescape(html)
        assert not any(lie in unescape(ours(html)) for lie in LIES)

    def test_the_audit(self, gate: Gate) -> None:
        auditor = make_user("Audrey", gate.team, may=(*MEMBER, "checkpoints.view_audit"))
        html = signed_in(auditor).get(f"/audit/?run={gate.run_id}").content.decode()
        assert TITLE in [words(each) for each in THEIRS.findall(html)]
        assert not any(lie in unescape(ours(html)) for lie in LIES)

    def test_the_list_of_holds(self, gate: Gate) -> None:
        root = confirmed(make_user("Root", superuser=True))
        html = root.get("/admin/checkpoints/technicalhold/", {"run__id__exact": gate.run_id}).content.decode()
        assert f"<q><bdi>{TITLE}</bdi></q>" in html

    def test_a_row_says_that_the_title_is_not_what_runs(self, gate: Gate) -> None:
        assert "Title differs from what runs" in words(signed_in(ann(gate.team)).get("/").content.decode())

    def test_the_runs_page(self, gate: Gate) -> None:
        html = signed_in(ann(gate.team)).get(f"/runs/{gate.run_id}/").content.decode()
        assert TITLE in [words(each) for each in THEIRS.findall(html)]
        head = html.partition('<section class="sheet" aria-labelledby="state"')[0]
        assert TITLE not in unescape(ours(head.partition('<div class="tree"')[0]))

    def test_the_form_over_a_checkpoint(self, gate: Gate) -> None:
        html = signed_in(ann(gate.team)).get(f"/runs/{gate.run_id}/checkpoints/1/edit/").content.decode()
        assert "Internal note" in html
        assert not any(lie in unescape(ours(html)) for lie in ("Internal note", "Invoice number", "Amount (EUR)"))

    def test_the_decided_page(self, gate: Gate) -> None:
        assert post(ann(gate.team), gate, form_of(gate)).status_code == 303
        html = page(gate)
        assert not any(lie in unescape(ours(html)) for lie in LIES)
        assert '<code class="pin-name"><bdi>amount</bdi></code>' in html


def test_a_step_that_a_program_calls_by_a_title_goes_by_its_name_in_our_sentences() -> None:
    program = Program()
    titled = [{**step, "title": "Send the newsletter"} if step["name"] == "wire" else step for step in STEPS]
    program.register(steps=titled)
    program.run = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}}))["id"]
    program.claim()
    program.draft()
    gate = Gate.objects.get(pk=program.ask()["gate"])
    html = page(gate)
    assert "newsletter" not in html
    assert "wire" in words(html.partition('class="impact"')[2])
