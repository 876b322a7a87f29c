"""Warns a policy's author before its rules count: of fields that no gate has, and of rules that stay unclear.

Read from the last gates of its name, and where it has had none from the schemas of the team's registered tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.models import Gate, Policy, Tool
from approvals.schema import walk

from . import required
from .requirements import Rule, Unclear
from .rules import expressions, facts

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
