"""People who decide gates: they approve, edit, send back, click twice, decide on what they saw long ago, and race.

A question after a fault is answered truthfully: whoever answers has looked at the provider and into the mailbox.
"""

from __future__ import annotations

import random
import secrets
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from typing import Any

import httpx

from ..outside import Outside
from .api import Answer, Person

Gate = dict[str, Any]
PAUSE = 0.15  # seconds between two decisions of one person
MOST_SENT_BACK = 2  # of one run
MOST_RETRIED = 3  # of one step of a run: then it is given up
APPROVE = {"verdict": "approve"}
# How often each is done, at a review.
HABITS = {"approve": 44, "edit": 16, "back": 10, "stop": 3, "twice": 10, "stale": 8, "race": 9}


class Reviewer:
    def __init__(self, me: Person, other: Person, outside: Outside, seed: str) -> None:
        self.me, self.other, self.outside = me, other, outside
        self.rng = random.Random(f"{seed} {me.name}")
        self.sent_back = Counter[int]()
        self.retried = Counter[tuple[int, str]]()
        self.seen: defaultdict[tuple[int, str], list[str]] = defaultdict(list)  # digests of a run's step, oldest first
        self.draining = threading.Event()

    def work(self, stop: threading.Event) -> None:
        while not stop.is_set():
            found = self.me.get("gates?limit=100")
            gates = (found or {}).get("items", [])
            if not gates:
                stop.wait(0.5)
                continue
            self.decide(self.rng.choice(gates)["id"])
            stop.wait(PAUSE)

    def decide(self, number: int) -> None:
        gate = self.me.get(f"gates/{number}")
        if gate is None or gate["status"] != "open":
            return
        if gate["digest"] not in (known := self.seen[gate["run"], gate["step"]]):
            known.append(gate["digest"])
        if gate["card"].get("question"):
            body = self._answer(gate)
            if body is not None:
                self._said(gate, body, "answer")
            return
        habits = dict(HABITS)
        if self.draining.is_set() or self.sent_back[gate["run"]] >= MOST_SENT_BACK:
            habits |= {"back": 0, "stale": 0}
        habit = self.rng.choices(list(habits), list(habits.values()))[0]
        then = "back" if gate["agent"] != "teller" else "stop"
        plain: dict[str, dict[str, Any]] = {
            "approve": APPROVE,
            "edit": edited(gate) or APPROVE,
            "back": {"verdict": "reject", "then": then, "comment": "with less, please"},
            "stop": {"verdict": "reject", "then": "stop", "comment": "not at all"},
        }
        if habit in plain:
            self.sent_back[gate["run"]] += habit == "back"
            self._said(gate, plain[habit], habit)
        else:
            {"twice": self.click_twice, "stale": self.decide_blindly, "race": self.race}[habit](gate)

    def click_twice(self, gate: Gate) -> None:
        """Send one decision twice at the same moment, under one key."""
        key = secrets.token_hex(12)
        self._at_once([lambda: self._once(self.me, gate, APPROVE, key, "twice")] * 2)

    def decide_blindly(self, gate: Gate) -> None:
        """Agree to a proposal that is not what stands: to an earlier one of this step, or to one that never was."""
        earlier = [each for each in self.seen[gate["run"], gate["step"]] if each != gate["digest"]]
        old = earlier[-1] if earlier else secrets.token_hex(32)
        about = {"gate": gate["id"], "habit": "stale", "seen": old, "outdated": bool(earlier)}
        self.me.post("decide", f"gates/{gate['id']}/decisions", {"verdict": "approve", "seen": old}, **about)

    def race(self, gate: Gate) -> None:
        """Two people decide at the same moment: one approves, the other edits or rejects."""
        against = self.rng.choice([edited(gate), {"verdict": "reject", "then": "stop", "comment": "no"}]) or APPROVE
        sides = ((self.me, APPROVE), (self.other, against))
        self._at_once([partial(self._once, who, gate, body, secrets.token_hex(12), "race") for who, body in sides])

    def _said(self, gate: Gate, body: dict[str, Any], habit: str) -> Answer:
        body = {"seen": gate["digest"], **body}
        about = {"gate": gate["id"], "run": gate["run"], "habit": habit, "verdict": body["verdict"]}
        path = f"gates/{gate['id']}/decisions"
        answer = self.me.insist("decide", path, body, **about)
        if answer.code == "needs_confirmation":
            confirm = repeats(self.me, gate["id"], body)
            answer = self.me.insist("decide", path, body | {"confirm": confirm}, **about)
        return answer

    def _once(self, person: Person, gate: Gate, body: dict[str, Any], key: str, habit: str) -> Answer:
        about = {"gate": gate["id"], "run": gate["run"], "habit": habit, "verdict": body["verdict"]}
        body = {"seen": gate["digest"], **body}
        return person.post("decide", f"gates/{gate['id']}/decisions", body, key, **about)

    def _at_once(self, calls: list[Callable[[], object]]) -> None:
        start = threading.Barrier(len(calls))

        def do(call: Callable[[], object]) -> None:
            start.wait(30)
            call()

        with ThreadPoolExecutor(len(calls)) as pool:
            list(pool.map(do, calls))

    def _answer(self, gate: Gate) -> dict[str, Any] | None:
        question = gate["card"]["question"]
        offered = {choice["id"] for choice in question["choices"]}
        tried = self.retried[gate["run"], gate["step"]]
        self.retried[gate["run"], gate["step"]] += 1
        if tried >= MOST_RETRIED and {"retry", "stop"} <= offered:
            return {"verdict": "answer", "answer": {"choice": "stop"}}
        answer = truthful(question, offered, gate, self.outside)
        return None if answer is None else {"verdict": "answer", "answer": answer}


def truthful(question: dict[str, Any], offered: set[str], gate: Gate, outside: Outside) -> dict[str, Any] | None:
    """Say what somebody says who has looked; None where that cannot be told yet."""
    for choice in ("pay", "undo_again", "take"):
        if choice in offered:
            return {"choice": choice}
    for yes, no in (("happened", "not_happened"), ("was_done", "was_not_done"), ("gave", "stop")):
        if yes in offered:
            result = outside.result_of(question.get("effect", ""), gate["step"])
            return {"choice": no} if result is None else {"choice": yes, "value": result}
    for choice in ("retry", "do_again", "stop"):
        if choice in offered:
            return {"choice": choice}
    return None


def edited(gate: Gate) -> dict[str, Any] | None:
    """Return an edit that takes one off the first amount that an action has; None where there is none."""
    for action in gate["card"]["actions"]:
        arguments = action.get("arguments")
        if isinstance(arguments, dict) and Decimal(str(arguments.get("amount", 0))) > 2:
            smaller = f"{Decimal(str(arguments['amount'])) - 1:.2f}"
            return {"verdict": "edit", "arguments": {action["id"]: {**arguments, "amount": smaller}}}
    return None


def repeats(person: Person, gate: int, body: dict[str, Any]) -> list[int]:
    try:
        found = person.http.post(f"/api/gates/{gate}/impacts", json=body).json()
    except (ValueError, OSError, httpx.HTTPError):
        return []
    impact = found.get("impact") if isinstance(found, dict) else None
    return [each["effect"] for each in (impact or {}).get("repeats", [])]
