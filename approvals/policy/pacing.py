"""Limits how often an agent may ask: a number of gates an hour, and a pause after the same was rejected twice.

People who are asked without end stop reading. Requests beyond the cap are not lost: an external program is told when to
come again, and a run of this server's agents waits in the queue until then.

*The same* is the same tool with the same arguments, asked by the same agent in the same team; see
approvals.cards.likeness. What the same step of a run, or of one of its forks, asks after a rejection counts as another
attempt, until something else was decided there, but needs no pause. Nor does a request that a person sent back, since
that person wants it again.

It also warns a policy's author before its rules count: of fields that no gate has, and of rules that stay unclear.

Read from the last gates of its name, and where it has had none from the schemas of the team's registered tools.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.cards.likeness import attempt_digests
from approvals.errors import AskedTooOften, AskedTooSoon
from approvals.models import Decision, Gate, Outcome, Policy, Tool
from approvals.schema import walk
from checkpoints.models import Run
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.postgresql.sql import run_sql

from . import required
from .requirements import Rule, Unclear
from .rules import expressions, facts

HOUR = timedelta(hours=1)
REJECTED, MIXED = Outcome.Kind.REJECTED, Outcome.Kind.MIXED
AGREED = (Outcome.Kind.APPROVED, Outcome.Kind.EDITED, Outcome.Kind.ANSWERED, MIXED)
REMEMBERED = timedelta(days=30)  # for which a rejection is counted
COUNTED = 19  # rejections of the same that are read
PAUSED_AT = 2  # rejections after which the same is asked only after a pause
NEAR = 132  # gates below the cap from which simultaneous requests are counted in turn; one opens a hundred at most
_unpaced: ContextVar[bool] = ContextVar("unpaced", default=False)
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_OPENED = """
SELECT gate.opened_at, clock_timestamp() FROM approvals_gate gate
JOIN checkpoints_run run ON run.id = gate.run_id JOIN checkpoints_plan plan ON plan.id = run.plan_id
WHERE gate.team_id = $1 AND plan.agent = $2 AND gate.opened_at > clock_timestamp() - interval '1 hour'
ORDER BY gate.opened_at DESC LIMIT $3
"""
_REJECTED_ALIKE = """
SELECT DISTINCT found FROM approvals_gate gate JOIN approvals_outcome outcome ON outcome.gate_id = gate.id
CROSS JOIN unnest(gate.likeness) AS found
WHERE gate.likeness && $2::text[]::varchar[] AND gate.team_id = $1 AND found = ANY($2::text[])
  AND outcome.kind = ANY($4::text[]) AND outcome.created_at >= statement_timestamp() - $3::interval
"""


@dataclass(frozen=True)
class RejectedBefore:
    """The earlier rejections of the same."""

    attempt: int  # the number of this attempt, from 1
    gate: int | None  # the last gate that was rejected


@contextmanager
def unpaced() -> Iterator[None]:
    """Lift the limits, for a drill, whose gates nobody has to read."""
    token = _unpaced.set(True)
    try:
        yield
    finally:
        _unpaced.reset(token)


def lifted() -> bool:
    """Tell whether the limits are lifted here."""
    return _unpaced.get()


def check_cap(policy: Policy, *, team: int, agent: str, more: int = 1) -> None:
    """Raise AskedTooOften where `more` gates would exceed the policy's number for the agent within an hour.

    Runs in the transaction that opens the gates: near the cap, and for several, simultaneous requests are counted one
    after the other. `more` is at most the policy's number.
    """
    most = policy.hourly
    if most is None or _unpaced.get():
        return
    opened = run_sql(_OPENED, [team, agent, most])
    if (more > 1 or len(opened) > most - NEAR) and connection.in_atomic_block:
        run_sql(_LOCK, [f"gates of {agent} in {team}"])
        opened = run_sql(_OPENED, [team, agent, most])
    if len(opened) > most - more:
        oldest, now = opened[most - more]  # until this one is older than an hour
        raise AskedTooOften(agent, most, policy.name, now=now, until=oldest + HOUR)


def rejected_alike(team: int, likeness: Collection[str]) -> set[str]:
    """Return those of these digests that a gate of the team has which people lately rejected, wholly or in part."""
    values = [team, sorted(likeness), REMEMBERED, [REJECTED.value, MIXED.value]]
    return {found for (found,) in run_sql(_REJECTED_ALIKE, values)}


def before(policy: Policy, run: Run, step: str, likeness: Sequence[str]) -> RejectedBefore:
    """Count how often the same was rejected. Raises AskedTooSoon where the policy's pause is not over."""
    looked_at = _recently_rejected(run.team_id, run.lineage, step, list(likeness))
    found = [(each, _refused(each)) for each in looked_at]
    found = [(each, refused) for each, refused in found if each.kind == REJECTED or refused & set(likeness)]
    if not found:
        return RejectedBefore(1, None)
    alike = [each for each, refused in found if refused & set(likeness)]
    if policy.pause and not _unpaced.get() and len(alike) >= PAUSED_AT:
        last = alike[0]
        until = last.created_at + policy.pause
        sent_back = last.gate.run_id == run.pk and last.then == Decision.Then.BACK
        if not sent_back and until > last.now:
            raise AskedTooSoon(last.gate_id, len(alike), now=last.now, until=until)
    return RejectedBefore(len(found) + 1, next(iter(alike), found[0][0]).gate_id)


@prepared_statement
def _recently_rejected(team: Any, root: Any, step: Any, alike: Any) -> QuerySet[Any]:
    of_step = Q(gate__run__in=Run.objects.of_lineage(root).values("pk"), gate__step=step)
    later = Outcome.objects.filter(of_step, kind__in=AGREED, pk__gt=OuterRef("pk"))  # in a loop, of something else
    same = Q(gate__likeness__overlap=alike, kind__in=(REJECTED, MIXED))
    recent = Outcome.objects.filter(
        (of_step & Q(kind=REJECTED) & ~Exists(later)) | same, gate__team=team, created_at__gte=Now() - REMEMBERED
    )
    known = recent.select_related("gate__run__plan", "proposal").annotate(now=Now())
    return known.order_by("-created_at")[:COUNTED]


def _refused(outcome: Outcome) -> set[str]:
    """Return the likeness of a rejected gate; of a mixed decision, that of its rejected actions."""
    gate = outcome.gate
    if outcome.kind == REJECTED:
        return set(gate.likeness)
    refused = [action for action in gate.asked.actions if outcome.refused(action.id)]
    return set(attempt_digests(gate.run.plan.agent, refused))


LOOKED_AT = 50
NAMED = 20  # fields or tools that a warning names
_BOUND = re.compile(r"(\bactions\s*)?\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*(\w+)\s*,")
_ASKED_FOR = re.compile(r"\bhas\s*\([^()]*\)")  # true or false without the field too
_FIELD = r"(\w+)(?!\w*\s*\()"  # a name that is no function's
_OF_ACTION = {"id", *facts.STANDARD}  # the names that an action has beside its arguments


def warnings(policy: Policy) -> list[str]:
    """Say which fields of its rules no gate had lately, and which rules cannot be evaluated for some actions."""
    rules = required.rules_of(policy.rules)
    gates = list(_facts_lately(policy)) if rules else []
    tools = list(Tool.objects.filter(team=policy.team_id).in_use().order_by("name")) if rules and not gates else []
    known = sorted({field for gate in gates for field in facts.fields_of(gate)})
    found = []
    for rule in rules:
        unknown = [name for name in _fields_read(rule.when) if not _had(name, known)] if known else []
        found += [_no_gate_had(rule, name, known) for name in unknown]
        if not unknown and (unclear := _unclear_lately(rule, gates) or _unclear_tools(rule, tools)):
            found.append(_stays_unclear(rule, unclear))
    return found


def _facts_lately(policy: Policy) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yield the facts of each action of the last gates of a policy of this team and name, in any version."""
    gates = Gate.objects.filter(policy__team=policy.team_id, policy__name=policy.name, kind=Gate.Kind.REVIEW)
    for gate in gates.select_related("run__plan", "run__started_by", "asked_by").order_by("-pk")[:LOOKED_AT]:
        known = required.gate_facts(gate.run, gate.step, asked_by=gate.asked_by, attempt=gate.attempt)
        yield facts.of_proposal(gate.asked, known)


def _no_gate_had(rule: Rule, name: str, known: Sequence[str]) -> str:
    there = ", ".join([each for each in known if each not in facts.STANDARD][:NAMED]) or "no fields of their own"
    words = (
        f"The rule “{rule.name}” reads “{name}”, which none of the last gates had. Where it is "
        f"missing, the strictest that the rule may ask is required. They had: {there}."
    )
    return words


def _stays_unclear(rule: Rule, unclear: Mapping[str, str]) -> str:
    actions = ", ".join([f"{tool} ({why})" if tool else why for tool, why in unclear.items()][:NAMED])
    words = (
        f"The rule “{rule.name}” cannot be evaluated for actions like these: {actions}. A proposal "
        "with one of them needs the strictest that the rule may ask. If the rule is about one tool, "
        f'name it: tool == "…" && ({" ".join(rule.when.split())}).'
    )
    return words


def _unclear_lately(rule: Rule, gates: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """Return why a rule was unclear for the actions of the last gates, by their tools; "" where a gate had none."""
    found = dict[str, str]()
    for action in (each for gate in gates for each in gate):
        try:
            required.matches(rule, action)
        except Unclear as why:
            found.setdefault(action.get("tool", ""), str(why))
    return found


def _unclear_tools(rule: Rule, tools: Sequence[Tool]) -> dict[str, str]:
    """Return why a rule would be unclear for registered tools, by their names: their schemas lack what it reads."""
    found, read = dict[str, str](), sorted(_arguments_read(rule.when))
    for tool in tools:
        parts = walk.list_parts([tool.schema], tool.schema)
        lacking = [name for name in read if not any(walk.parts_within(part, name) for part in parts)]
        action = Action(id="a", tool=tool.name, arguments={}, schema=tool.schema, irreversible=tool.irreversible)
        card = Card(title=tool.title, risk=tool.risk, actions=[action])
        try:
            if lacking:
                required.matches(rule, facts.of_proposal(card, facts.GateFacts(agent="", step=""))[0])
        except Unclear:
            names = ", ".join(f"“{name}”" for name in lacking)
            found[tool.name] = f"there is no {names}"
    return found


def _arguments_read(when: str) -> set[str]:
    """Return the arguments that an expression reads: by their own names, or as those of `arguments` or an action."""
    bare = _ASKED_FOR.sub("", expressions.without_strings(when))
    actions = "|".join({"action", *(name for of_actions, name in _BOUND.findall(bare) if of_actions)})
    arguments = re.findall(rf"(?<![\w.])(?:(?:{actions})\.)?arguments\.{_FIELD}", bare)
    of_action = re.findall(rf"(?<![\w.])(?:{actions})\.{_FIELD}", bare)
    return {*_names_read(when), *arguments, *({*of_action} - _OF_ACTION)}


def _names_read(when: str) -> frozenset[str]:
    """Return the arguments that an expression reads by their own names."""
    bound = {name for _, name in _BOUND.findall(expressions.without_strings(when))}
    return expressions.checked(when).names - bound - {*facts.STANDARD}


def _fields_read(when: str) -> list[str]:
    """List the fields that an expression reads: `amount`, `customer.tier`."""
    bare, names = expressions.without_strings(when), sorted(_names_read(when))
    found = (re.findall(rf"(?<![\w.]){name}(?:\.[A-Za-z_]\w*(?!\w*\s*\())*", bare) for name in names)
    return list(dict.fromkeys(each for paths in found for each in paths))


def _had(name: str, known: Sequence[str]) -> bool:
    return any(each == name or each.startswith(f"{name}.") or name.startswith(f"{each}.") for each in known)
