"""The fields that the last gates under a policy had, so that a rule about others is noticed before it counts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.utils.translation import gettext as _

from approvals.models import Gate, Policy

from . import required
from .requirements import Rule
from .rules import expressions, facts

LOOKED_AT = 50
NAMED = 20  # fields that a warning names
_BOUND = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*(\w+)\s*,")


def fields_lately(policy: Policy) -> list[str]:
    """List the fields of the last gates of a policy of this team and name, in any version."""
    gates = Gate.objects.filter(policy__team=policy.team_id, policy__name=policy.name, kind=Gate.Kind.REVIEW)
    read = gates.select_related("run__plan", "run__started_by", "asked_by").order_by("-pk")[:LOOKED_AT]
    found: set[str] = set()
    for gate in read:
        known = required.gate_facts(gate.run, gate.step, asked_by=gate.asked_by, attempt=gate.attempt)
        found |= set(facts.fields_of(facts.of_proposal(gate.asked, known)))
    return sorted(found)


def warnings(rules: Sequence[Rule], known: Sequence[str]) -> list[str]:
    """Warn for each rule that reads fields which none of the last gates had; [] where there were no gates."""
    if not known:
        return []
    there = ", ".join([each for each in known if each not in facts.STANDARD][:NAMED]) or _("no fields of their own")
    words = _(
        "The rule “%(rule)s” reads “%(field)s”, which none of the last gates had. Where it is missing, the strictest "
        "that the rule may ask is required. They had: %(there)s."
    )
    return [
        words % {"rule": rule.name, "field": name, "there": there}
        for rule in rules
        for name in _read(rule.when)
        if not _had(name, known)
    ]


def _read(when: str) -> list[str]:
    """List the fields that an expression reads: `amount`, `customer.tier`."""
    bare = expressions.without_strings(when)
    names = expressions.checked(when).names - set(_BOUND.findall(bare)) - {*facts.STANDARD}
    found = (re.findall(rf"(?<![\w.]){name}(?:\.[A-Za-z_]\w*(?!\w*\s*\())*", bare) for name in sorted(names))
    return list(dict.fromkeys(each for paths in found for each in paths))


def _had(name: str, known: Sequence[str]) -> bool:
    return any(each == name or each.startswith(f"{name}.") or name.startswith(f"{each}.") for each in known)
