"""Checks a history, the world outside and a dump of the database against each other: plain rows in, sentences out.

A refusal or a lost answer is never wrong by itself. Wrong is what no order of crashes may bring about:

- `doubled`: an effect's key was executed more often than there are intents for it, one grant was used twice, or
  two equal children of one run did the same;
- `unapproved`: an effect without a decision that allowed it, or with other values than were approved;
- `lost`: what was acknowledged is not there, a page never heard of it, or what the database says happened did not
  happen outside, or the reverse;
- `twice`: a decision, a start or a signal counts twice, or two counted where one was asked for;
- `early`: a timer ended before its time, or a run before the children that it counts on;
- `left`: a child that its parent left behind has done something that is neither undone nor named;
- `stuck`: a run has neither ended nor waits for something that can be named;
- `audit`: the stored data do not verify.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from ..history import Line, answered
from . import family_checks, page_checks, rest_checks
from .violation import ENDED, Dump, Rows, Violation, World

GUARDED = {"pay", "reply", "order", "charge", "wire"}
LETS_RUN = {"approved", "edited", "mixed", "answered"}
OF_VERDICT = {"approve": {"approved", "edited"}, "edit": {"edited"}, "reject": {"rejected"},
              "answer": {"answered"}}  # fmt: skip
MOVES = {"run.rewound", "run.edited", "run.cancelled", "run.upcast", "run.taken"}


def violations(history: list[Line], world: World, dump: Dump, audit: str = "") -> list[Violation]:
    """Return everything that is wrong. `audit`: what the verification complained about; empty: nothing."""
    found = [Violation("audit", audit)] if audit else []
    for check in CHECKS:
        found += check(history, world, dump)
    return found


def keys_executed(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """No key was entered twice outside, or sent more often than its intents were recorded."""
    intents = Counter(event["subject"] for event in dump["events"] if event["kind"] == "effect.intended")
    for key, times in Counter(entry["key"] for entry in world["entries"]).items():
        if times > 1:
            yield Violation("doubled", f"the key {key[:8]} was entered {times} times at the provider")
    for row in _sent(dump):
        most, key = intents[f"effect:{row['id']}"], row["key"]
        for told, times in (
            ("requests went out", world["requests"].get(key, 0)),
            ("mails were sent", world["mails"].get(key[:32], 0)),
        ):
            if times > most:
                yield Violation("doubled", f"{row['step']} {key[:8]}: {times} {told} for {most} intents")


def grants_used_once(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """No grant allowed two effects."""
    for grant, times in Counter(row["grant"] for row in dump["effects"] if row["grant"]).items():
        if times > 1:
            yield Violation("doubled", f"grant {grant} was used by {times} effects")


def effects_were_allowed(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """Each guarded effect has a grant of a decision about its own run that lets it run, by people who may."""
    grants, outcomes, gates = _by_id(dump["grants"]), _by_id(dump["outcomes"]), _by_id(dump["gates"])
    decisions, runs = _by_id(dump["decisions"]), _by_id(dump["runs"])
    for row in _sent(dump):
        if row["step"] not in GUARDED:
            continue
        name = f"{row['step']} {row['key'][:8]} of run {row['run']}"
        grant = grants.get(row["grant"])
        if grant is None:
            yield Violation("unapproved", f"{name} has no grant")
            continue
        outcome = outcomes[grant["outcome"]]
        gate = gates[outcome["gate"]]
        deciders = [decisions[each] for each in outcome["decisions"] if each in decisions]
        if grant["effect"] != row["step"] or gate["run"] != row["run"]:
            yield Violation("unapproved", f"{name} used grant {grant['id']}, which is for {grant['effect']}")
        if outcome["kind"] not in LETS_RUN or not outcome["lets_run"]:
            yield Violation("unapproved", f"{name} was allowed by outcome {outcome['id']}, {outcome['kind']}")
        if not deciders:
            yield Violation("unapproved", f"{name} was allowed by outcome {outcome['id']} without a decision")
        if gate["separation"] and any(each["user"] == runs[row["run"]]["starter"] for each in deciders):
            yield Violation("unapproved", f"{name} was approved by whoever started the run")


def quorums_are_kept(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """What lets something run was agreed to by as many people as the policy asks for."""
    decisions, gates = _by_id(dump["decisions"]), _by_id(dump["gates"])
    for outcome in dump["outcomes"]:
        gate = gates[outcome["gate"]]
        agreed = {decisions[each]["user"] for each in outcome["decisions"] if each in decisions}
        if outcome["lets_run"] and len(agreed) < gate["quorum"]:
            yield Violation("unapproved", f"gate {gate['id']} needs {gate['quorum']}, and {len(agreed)} agreed")


def values_are_those_approved(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """What was entered outside belongs to an effect, and has the amount that was approved."""
    rows, grants, outcomes = {row["key"]: row for row in _sent(dump)}, _by_id(dump["grants"]), _by_id(dump["outcomes"])
    for entry in world["entries"]:
        row = rows.get(entry["key"])
        if row is None:
            yield Violation("unapproved", f"{entry['kind']} {entry['id']} has the key {entry['key'][:8]} of no effect")
            continue
        grant = grants.get(row["grant"])
        approved = outcomes[grant["outcome"]]["arguments"] if grant else {}
        for amount in (each["amount"] for name, each in approved.items() if _about(grant, name, each)):
            if Decimal(str(amount)) != Decimal(str(entry["amount"])):
                yield Violation("unapproved", f"{row['step']} {row['key'][:8]}: {entry['amount']} for {amount}")


def world_agrees(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """What the database says happened did, and what it says did not happen did not."""
    made = {entry["key"]: entry for entry in world["entries"]}
    # A paused worker's request may go out after a person has looked: the product asks somebody to look again.
    told = {event["subject"] for event in dump["events"] if event["kind"] == "effect.contradicted"}
    for row in _sent(dump):
        key, status = row["key"], row["status"]
        if f"effect:{row['id']}" in told:
            continue
        stands = key in made and made[key]["stands"]
        there = world["mails"].get(key[:32], 0) > 0 if row["step"] == "reply" else stands
        if status == "done" and not there and not row["empty"]:
            yield Violation("lost", f"{row['step']} {key[:8]} of run {row['run']} is done, and is not there")
        if status in ("undone", "failed") and there:
            yield Violation("lost", f"{row['step']} {key[:8]} of run {row['run']} is {status}, and is there")


def decisions_are_kept(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """Each acknowledged decision is a row, as it was given; where one person decides, its gate ended by it.

    Where several have to agree, a vote may lapse: by somebody's edit, or because that person decides otherwise.
    """
    rows, outcomes = _by_id(dump["decisions"]), {row["gate"]: row for row in dump["outcomes"]}
    gates = _by_id(dump["gates"])
    replaced = {event["subject"] for event in dump["events"] if event["kind"] in ("gate.edited", "gate.lapsed")}
    for line in answered(history, "decide"):
        row = rows.get(line["id"])
        name = f"decision {line['id']} of {line['by']} at gate {line['gate']}"
        if line.get("habit") == "stale":
            yield Violation("unapproved", f"{name} was about another proposal, and was taken")
        elif row is None or row["gate"] != line["gate"]:
            yield Violation("lost", f"{name} was acknowledged, and is not there")
        elif row["verdict"] != line["verdict"]:
            yield Violation("lost", f"{name} was {line['verdict']}, and is {row['verdict']}")
        elif gates[line["gate"]]["quorum"] > 1:
            mine = [each for each in dump["decisions"] if (each["gate"], each["user"]) == (row["gate"], row["user"])]
            if not row["counts"] and f"gate:{line['gate']}" not in replaced and row["id"] == mine[-1]["id"]:
                yield Violation("lost", f"{name} does not count, and nothing replaced what it was about")
        else:
            outcome = outcomes.get(line["gate"])
            kinds = OF_VERDICT[line["verdict"]]
            if outcome is None or line["id"] not in outcome["decisions"] or outcome["kind"] not in kinds:
                yield Violation("lost", f"{name} closed nothing: {outcome['kind'] if outcome else 'the gate is open'}")


def decisions_count_once(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """One key is one decision, and a gate for one person's decision has one that counts."""
    by_key: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for line in answered(history, "decide"):
        by_key[line["by"], line["key"]].add(line["id"])
    for (who, key), ids in by_key.items():
        if len(ids) > 1:
            yield Violation("twice", f"{who}'s decision under {key} was recorded as {sorted(ids)}")
    quorum = {gate["id"]: gate["quorum"] for gate in dump["gates"]}
    for gate, times in Counter(row["gate"] for row in dump["decisions"] if row["counts"]).items():
        if times > quorum[gate]:
            yield Violation("twice", f"{times} decisions count at gate {gate}, which needs {quorum[gate]}")


def refused_left_nothing(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """Each decision in the database was sent by that person, in a request that was not refused."""
    sent: set[tuple[int, int]] = set()
    for type in ("ok", "unknown"):
        sent |= {(line["gate"], line["user"]) for line in answered(history, "decide", type)}
    ended = {line["op"] for line in history if line["type"] != "invoke"}
    sent |= {
        (line["gate"], line["user"])
        for line in history
        if line["f"] == "decide" and line["type"] == "invoke" and line["op"] not in ended
    }
    for row in dump["decisions"]:
        if (row["gate"], row["user"]) not in sent:
            yield Violation("twice", f"decision {row['id']} at gate {row['gate']} was refused or never sent")


def outcomes_are_applied_once(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """A decided review is saved by its run exactly once, unless a person moved or ended the run meanwhile.

    That of a gate from which the run went on is saved where the run is by then.
    """
    answered_later = Counter((row["run"], row["step"]) for row in dump["checkpoints"] if row["kind"] == "answered")
    saved = Counter(row["parent"] for row in dump["checkpoints"] if row["kind"] in ("gate", "recovery"))
    moved: defaultdict[int, int] = defaultdict(int)
    for event in dump["events"]:
        if event["kind"] in MOVES:
            moved[event["run"]] = event["id"]
    closed = {event["subject"]: event["id"] for event in dump["events"] if event["kind"] == "gate.closed"}
    runs = _by_id(dump["runs"])

    def moved_since(gate: dict[str, Any]) -> bool:
        return bool(moved[gate["run"]] > closed.get(f"gate:{gate['id']}", 0))

    decided = [gate for gate in dump["gates"] if gate["status"] == "decided" and gate["kind"] == "review"]
    for gate in sorted(decided, key=moved_since):  # what is excused takes no answer that another gate needs
        times, later = saved[gate["checkpoint"]], (gate["run"], gate["step"])
        if times == 0 and answered_later[later]:
            answered_later[later] -= 1
            times = 1
        if times > 1:
            yield Violation("twice", f"the outcome of gate {gate['id']} was applied {times} times")
        if times == 0 and not moved_since(gate) and runs[gate["run"]]["status"] in ENDED:
            yield Violation("lost", f"gate {gate['id']} was decided, and its run {gate['run']} ended without it")
    for (run, step), left in answered_later.items():
        if left > 0 and not moved[run]:
            yield Violation("twice", f"answers at {step} of run {run} were applied {left} times more than given")


def starts_are_kept(history: list[Line], world: World, dump: Dump) -> Iterator[Violation]:
    """Each acknowledged run or fork is there, and one key is one run."""
    there = {run["id"] for run in dump["runs"]}
    for f in ("start", "fork"):
        by_key: defaultdict[str, set[int]] = defaultdict(set)
        for line in answered(history, f):
            by_key[line["key"]].add(line["id"])
            if line["id"] not in there:
                yield Violation("lost", f"run {line['id']} was acknowledged, and is not there")
        for key, ids in by_key.items():
            if len(ids) > 1:
                yield Violation("twice", f"one {f} under {key} made the runs {sorted(ids)}")


Check = Callable[[list[Line], World, Dump], Iterator[Violation]]
CHECKS: tuple[Check, ...] = (
    keys_executed,
    grants_used_once,
    effects_were_allowed,
    quorums_are_kept,
    values_are_those_approved,
    world_agrees,
    decisions_are_kept,
    decisions_count_once,
    refused_left_nothing,
    outcomes_are_applied_once,
    starts_are_kept,
    rest_checks.runs_rest,
    *family_checks.CHECKS,
    *page_checks.CHECKS,
)


def _sent(dump: Dump) -> Rows:
    """Return the effects that were performed for a run, not undos and not results that were taken over."""
    return [row for row in dump["effects"] if row["undoes"] is None and row["taken_from"] is None]


def _by_id(rows: Rows) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in rows}


def _about(grant: dict[str, Any] | None, action: str, arguments: Any) -> bool:
    """Tell whether these arguments are those of the grant's effect; a grant without an action is of all."""
    named = grant is not None and grant["action"] in ("", action)
    return named and isinstance(arguments, dict) and "amount" in arguments
