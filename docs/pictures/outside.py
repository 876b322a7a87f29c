"""The external part of the story: programs that ask over the API, and a model with tools.

A program's payment is edited to a lower amount and wired; two of its payments wait, one under a policy that requires
the password. The assistant asks about four calls of one turn. Ann has a token of her own, and the team a webhook.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, expect

from tests.agents.examples.assistant import endpoint
from tests.agents.examples.assistant.endpoint import Reply
from tests.config.local.started_stack import Stack, environment
from tests.harness.waiting import PATIENCE

from .acting import DEMO, make_decision, sign_in_browser, wait_for_words

TURN = [
    ("write_file", {"path": "notes.md", "content": "# Oslo\n\nRain until noon, dry in the evening.\n"}),
    ("run_command", {"argv": ["wc", "-l", "notes.md"]}),
    ("run_command", {"argv": ["rm", "drafts.txt"]}),
    ("http_get", {"url": "https://weather.example/oslo"}),
]
SCRIPT = [
    Reply("I look at what is there first.", [("list_files", {"path": "."})]),
    Reply("I write the notes, count their lines, remove the drafts and look at the weather in Oslo.", TURN),
]
TASK = "Write down what the weather in Oslo means for the picnic, and tidy the folder."
SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "title": "To"},
        "iban": {"type": "string", "title": "IBAN"},
        "amount": {"type": "string", "title": "Amount", "format": "money", "pattern": r"^[0-9]+\.[0-9]{2}$"},
    },
    "required": ["to", "iban", "amount"],
    "additionalProperties": False,
}
LARGE, HELD, TOGETHER = "large-wire", "held-wire", "two-teams"


@dataclass(frozen=True)
class Outside:
    """Addresses: a run that a program completed, with its gate; gates: one that waits, with a question and its answer,
    one that needs a password, one whose approval may be undone, one that two teams approve, the assistant's."""

    paid: str
    receipt: str
    asking: str
    large: str
    undoable: str
    together: str
    assistant: str


@contextmanager
def model(folder: Path) -> Iterator[dict[str, Any]]:
    """Serve a model's endpoint; yield the environment with which the assistant uses it, in a folder."""
    folder.mkdir()
    (folder / "drafts.txt").write_text("Oslo: sun?\n")
    with endpoint.running() as served:
        served.script = list(SCRIPT)
        yield {
            "OPENAI_BASE_URL": served.url,
            "OPENAI_API_KEY": endpoint.KEY,
            "HOLDPOINT_ASSISTANT_FOLDER": str(folder),
        }


def make(browser: Browser, stack: Stack) -> Outside:
    """Play the external part of the story."""
    ann, bob, admin = (
        sign_in_browser(browser, stack.base, 1440, "light", who=who).new_page() for who in ("ann", "bob", "admin")
    )
    _policy(admin, LARGE, step_up=True)
    _policy(admin, HELD, undo_window="1 d")
    _policy(admin, TOGETHER, stages="1 of Finance and 1 of Support")
    _webhook(admin)
    _token(ann)
    with httpx.Client(base_url=f"{stack.base}/api", headers=_bearing(stack), timeout=PATIENCE) as program:
        paid, receipt = _paid(program, ann)
        asking = _ask(program, title="Pay invoice 1017 of ACME", to="ACME Ltd", amount="1120.00")
        _answered(program, ann, asking["gate"])
        large = _ask(program, title="Pay invoice 1020 of Nordlys", to="Nordlys AS", amount="48000.00", policy=LARGE)
        undoable = _ask(program, title="Pay invoice 1021 of Bergen", to="Bergen Print", amount="75.00", policy=HELD)
        ann.goto(f"/gates/{undoable['gate']}/")
        make_decision(ann, "approve")
        two = _ask(program, title="Pay invoice 1022 of ACME", to="ACME Ltd", amount="1180.00", policy=TOGETHER)
    gates = [f"/gates/{posted['gate']}/" for posted in (asking, large, undoable, two)]
    played = Outside(paid, receipt, gates[0], gates[1], gates[2], gates[3], _assistant(bob))
    for page in (ann, bob, admin):
        page.context.close()
    return played


def _bearing(stack: Stack) -> dict[str, str]:
    """Return the header with a token for bob's payouts, made as an operator makes one."""
    command = [sys.executable, "manage.py", "token", "payouts", "--owner", "bob", "--team", "Support"]
    printed = subprocess.run(
        command, env=environment(stack.home, stack.port), check=True, capture_output=True, text=True
    ).stdout  # fmt: skip
    return {"Authorization": f"Bearer {printed.split()[-1]}"}


def _answered(program: httpx.Client, ann: Page, gate: int) -> None:
    """Ask the program a question at its gate, and answer it."""
    ann.goto(f"/gates/{gate}/")
    ann.fill("#ask", "Why is it more than last month?")
    ann.get_by_role("button", name="Ask the agent", exact=True).click()
    expect(ann.locator("#ask")).to_have_value("")
    [question] = _ok(program.get(f"/gates/{gate}/questions"))["items"]
    words = "The order names 14 boxes in place of 12, and the delivery note agrees."
    _ok(program.post(f"/gates/{gate}/answers", json={"question": question["id"], "text": words}))


def _ask(program: httpx.Client, *, title: str, to: str, amount: str, policy: str = "") -> dict[str, Any]:
    """Post a gate about one payment."""
    payment = {"to": to, "iban": "DE02120300000000202051", "amount": amount}
    action = {
        "id": "wire", "tool": "bank.wire", "title": f"Wire {amount} EUR to {to}", "arguments": payment,
        "schema": SCHEMA, "pinned": ["/amount", "/iban"], "undo": "recall_wire",
    }  # fmt: skip
    body = {
        "title": title, "summary": "The delivery note and the order agree with the invoice.", "for_whom": to,
        "amount": f"{amount} EUR", "risk": "high", "reasons": ["The first payment to this account"],
        "actions": [action], "state": {"invoice": {"of": to, "due": "2026-12-01"}}, "policy": policy,
        "worker": "billing-2:4181", "deferred": True,
    }  # fmt: skip
    return _ok(program.post("/gates", json=body))


def _paid(program: httpx.Client, ann: Page) -> tuple[str, str]:
    """Have a payment edited to a lower amount, wired and reported; return the addresses of its run and its gate."""
    asked = _ask(program, title="Pay invoice 1016 of ACME", to="ACME Ltd", amount="120.00")
    ann.goto(f"/gates/{asked['gate']}/")
    ann.locator("input[data-type=money], input[name$='amount']").first.fill("100.00")
    make_decision(ann, "edit")
    run = f"/runs/{asked['run']}"
    token = _ok(program.post(f"{run}/claims", json={"worker": "billing-2:4202"}))["token"]
    effect = _ok(program.post(f"{run}/effects", json={"token": token, "step": "wire"}))["next"]["effect"]["id"]
    done = {"token": token, "status": "done", "writes": {"wire_result": {"id": "tx_20931"}}}
    _ok(program.post(f"{run}/effects/{effect}/results", json=done))
    wait_for_words(ann, f"{run}/", "Completed")
    return f"{run}/", f"/gates/{asked['gate']}/"


def _ok(answer: httpx.Response) -> dict[str, Any]:
    answer.raise_for_status()
    body: dict[str, Any] = answer.json()
    return body


def _policy(admin: Page, name: str, *, step_up: bool = False, undo_window: str = "", stages: str = "") -> None:
    admin.goto("/admin/approvals/policy/add/")
    admin.locator("[name=team]").select_option(label="Support")
    admin.locator("[name=name]").fill(name)
    admin.locator("[name=step_up]").set_checked(step_up)
    admin.locator("[name=undo_window]").fill(undo_window)
    admin.locator("[name=stages]").fill(stages)
    admin.locator("[name=_save]").click()
    expect(admin.locator(".messagelist, .success").first).to_be_visible()


def _webhook(admin: Page) -> None:
    admin.goto("/admin/approvals/webhook/add/")
    admin.locator("[name=team]").select_option(label="Support")
    admin.locator("[name=url]").fill("https://erp.example/holdpoint")
    admin.locator("[name=_save]").click()


def _token(ann: Page) -> None:
    ann.goto("/tokens/")
    ann.locator("[name=name]").fill("nightly export")
    ann.locator("[name=scopes]").first.check()
    ann.locator("button.commit").click()
    ann.locator("[name=password]").fill(DEMO)
    ann.locator("[name=password]").press("Enter")
    ann.locator("button.commit:visible").click()
    ann.wait_for_selector(".token-made")


def _assistant(bob: Page) -> str:
    """Give the assistant a task; return the address of the gate at which it asks."""
    bob.goto("/agents/assistant/")
    bob.get_by_label("Task").fill(TASK)
    bob.locator("button.commit:visible").click()
    bob.wait_for_url("**/runs/*/")
    wait_for_words(bob, bob.url, "Held at")
    return bob.locator("main a[href^='/gates/']").first.get_attribute("href") or ""
