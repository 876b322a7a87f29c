"""Tells whether a version of a policy is milder than the one in force, setting by setting. Pure.

Where it cannot be told whether a change is milder, it is taken for milder: that costs a second person's look. So it is
with a setting that has no rule here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, product, zip_longest
from typing import Any

from approvals.models import Policy
from approvals.policy.requirements import ENDS, RISKS, Requirements, Rule, Stage, chain_stages
from approvals.policy.rules import stage_words
from approvals.policy.rules.stage_words import Names
from checkpoints.admin.durations import spell_duration

Milder = Callable[[Any, Any], bool]  # the value before, and the one after
Stages = tuple[Stage, ...]
RANKS = ("", *RISKS)
MOST_TOGETHER = 64  # different requirements, alone and together; of more it cannot be told in good time


def _less_or_none(before: Any, after: Any) -> bool:
    return before is not None and (after is None or after < before)


def _more_or_none(before: Any, after: Any) -> bool:
    return before is not None and (after is None or after > before)


def _later_in(order: Sequence[str]) -> Milder:
    """Take a value for milder that stands further back."""
    return lambda before, after: order.index(after) > order.index(before)


def _not_passkey(before: Any, after: Any) -> bool:
    return bool(before == Policy.StepUpMethod.PASSKEY and after != before)


def _any(before: Any, after: Any) -> bool:
    """Take every change for milder: an escalation adds people who may decide, and a calendar moves deadlines."""
    return True


def _never(before: Any, after: Any) -> bool:
    return False


# Setting -> (its words, whether a change of it is milder). Who decides, the stages and the rules are compared below.
SETTINGS: dict[str, tuple[str, Milder]] = {
    "separation": ("Requester cannot approve", operator.gt),
    "step_up": ("Require confirmation", operator.gt),
    "step_up_method": ("Confirmation by", _not_passkey),
    "tokens_decide": ("API tokens may decide", operator.lt),
    "whole_state": ("Editing the whole state", operator.lt),
    "registered_only": ("Registered tools only", operator.gt),
    "reason_required": ("Reason to reject required", operator.gt),
    "on_expiry": ("After the deadline", _later_in(ENDS[::-1])),
    "hourly": ("Gates per hour", _more_or_none),
    "pause": ("Pause before a third attempt", _less_or_none),
    "deadline": ("Deadline", _never),  # see `_deadline_milder`
    "auto_sample": ("Sample of automatic approvals", operator.gt),
    "leaves": ("Messages may say", _later_in(Policy.Leaves.values)),
    "remind_before": ("Remind before the deadline", _never),
    "remind_share": ("Remind at", _never),
    "undo_window": ("Undo window", _less_or_none),
    "bulk_risk": ("Decided together up to", _later_in(Policy.BulkRisk.values)),
    "escalation": ("Escalation", _any),
    "calendar_id": ("Counts working time of", _any),
    "withdraw_after": ("Withdraw if offline", _never),
}
STRUCTURE = frozenset({"quorum", "stages", "rules", "denials"})  # compared as requirements, or not read at all


@dataclass(frozen=True, kw_only=True)
class PolicyTerms:
    """A version of a policy as plain values."""

    settings: Mapping[str, Any]  # but for STRUCTURE
    own: Requirements  # what it asks where no rule says otherwise
    rules: Sequence[Rule]


def milder(before: PolicyTerms, after: PolicyTerms) -> list[str]:
    """List in words how `after` is milder than `before`; [] where it is not."""
    found = [
        _changed(name, before.settings[name], value)
        for name, value in after.settings.items()
        if before.settings[name] != value and _is_milder(name, before.settings[name], value)
    ]
    if _deadline_milder(before.settings["deadline"], after.settings["deadline"], after):
        found.append(_changed("deadline", before.settings["deadline"], after.settings["deadline"]))
    if not covers(after.own.stages, before.own.stages):
        found.append("Other people, or fewer, have to approve.")
    if not _rules_cover(before, after):
        found.append("By its rules it may ask less of some proposals.")
    return found


def differences(before: PolicyTerms, after: PolicyTerms, names: Names) -> list[str]:
    """List in words how `after` differs from `before`, milder or not."""
    settings = [(name, before.settings[name], value) for name, value in after.settings.items()]
    found = [_changed(*each) for each in settings if each[1] != each[2]]
    if (before.own.stages, before.rules) != (after.own.stages, after.rules):
        asked = " ".join(stage_words.policy_lines(after.own, after.rules, names))
        found.append(f"It would ask: {asked}")
    return found


def covers(after: Sequence[Stage], before: Sequence[Stage]) -> bool:
    """Tell whether whoever meets the stages `after` meets those of `before` too: each is as strict in its place."""
    if len(after) < len(before):
        return False
    for stage, was in zip(after, before, strict=False):
        free = list(stage.roles)
        for role in was.roles:
            found = next((each for each in free if each.covers(role)), None)
            if found is None:
                return False
            free.remove(found)
    return True


def _rules_cover(before: PolicyTerms, after: PolicyTerms) -> bool:
    """Tell whether the rules' conditions are as they were, followed by new ones, and no proposal is asked less.

    What a rule asks depends on the policy's own stages. Where a new rule holds, the policy's own requirements did. A
    rule with another deadline is taken for milder.
    """
    known, added = after.rules[: len(before.rules)], after.rules[len(before.rules) :]
    if [(rule.name, rule.when) for rule in known] != [(rule.name, rule.when) for rule in before.rules]:
        return False
    pairs = [(before.own, after.own)] if before.rules or added else []
    for was, rule in zip_longest(before.rules, after.rules):
        if rule.require.get("deadline") != (was.require.get("deadline") if was else None):
            return False
        pairs.append((was.applied(before.own) if was else before.own, rule.applied(after.own)))
    alone = all(asks_as_much(now, was) for was, now in pairs)
    return alone and _covers_together({(was.stages, now.stages) for was, now in pairs})


def _covers_together(pairs: set[tuple[Stages, Stages]]) -> bool:
    """Tell whether what is asked after covers what was asked before, however many of the requirements count together.

    They do for a proposal of several actions, and where a condition cannot be evaluated. Less may be asked then though
    each asks more: two of Finance stand for two of Finance or Legal, where one of Finance was asked beside them.
    """
    known = set[tuple[Stages, Stages]]()
    new = pairs if any(was != now for was, now in pairs) else known
    while new:
        if len(known | new) > MOST_TOGETHER or not all(covers(now, was) for was, now in new):
            return False
        known = known | new
        chains = {
            (chain_stages(was, other_was), chain_stages(now, other))
            for (was, now), (other_was, other) in chain(product(known, new), product(new, known))
        }
        new = chains - known
    return True


def asks_as_much(after: Requirements, before: Requirements) -> bool:
    """Tell whether a proposal is asked no less; deadlines aside."""
    return (
        covers(after.stages, before.stages)
        and after.step_up >= before.step_up
        and after.second_look >= before.second_look
        and after.auto <= before.auto
        and RANKS.index(after.risk) >= RANKS.index(before.risk)
        and ENDS.index(after.on_expiry) >= ENDS.index(before.on_expiry)
    )


def _is_milder(name: str, before: Any, after: Any) -> bool:
    return SETTINGS[name][1](before, after) if name in SETTINGS else True


def acts_in_time(terms: PolicyTerms) -> bool:
    """Tell whether time alone approves some proposal, or lets another team decide."""
    return _may_approve(terms) or bool(terms.settings["escalation"])


def _may_approve(terms: PolicyTerms) -> bool:
    return "approve" in (terms.settings.get("on_expiry"), *(each.require.get("on_expiry") for each in terms.rules))


def _deadline_milder(before: timedelta | None, now: timedelta | None, terms: PolicyTerms) -> bool:
    """Tell whether another deadline approves sooner, or lets another team decide sooner or at all."""
    levels = [each["after"] for each in terms.settings["escalation"]]
    if _more_or_none(now, before):  # it comes sooner
        return _may_approve(terms) or None in levels
    reached = before is not None and any(each is not None and timedelta(seconds=each) >= before for each in levels)
    return before != now and reached


def _changed(name: str, before: Any, after: Any) -> str:
    label = SETTINGS[name][0] if name in SETTINGS else name.replace("_", " ")
    return f"{label}: {_said(before)}, would be {_said(after)}."  # fmt: skip


def _said(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        return f"{len(value)} levels" if value else "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return spell_duration(value) if isinstance(value, timedelta) else str(value)
