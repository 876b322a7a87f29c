"""Writes versions of registered tools: one that is milder counts once a second person has saved the same.

A tool's risk and schema decide which rule of a policy holds, what a rule may approve by itself and what reviewers see.
So a change that one person makes alone may not lower them. A tool that was not registered is measured by what the
team's policies could do with it, as of an external program's actions a rule approves only those of registered tools,
and by what it hides of them: what a program marks as secret is shown to whoever decides, what a tool marks is not.
Before the team's first gate nothing can be made milder.
"""

from __future__ import annotations

from django.contrib.auth.models import Group, User
from django.db import transaction

from approvals.models import Gate, Tool, versions
from approvals.policy import required
from approvals.policy.requirements import RISKS
from approvals.schema import redact
from checkpoints import actors
from checkpoints.models import Event

from .changes import policies_in_force

SAME = ("title", "schema", "pinned", "risk", "irreversible", "undo", "used")


def save(tool: Tool, *, by: User) -> list[str]:
    """Write an unsaved tool as the next version; return how it is milder where it waits for a second person."""
    with transaction.atomic():
        Group.objects.select_for_update(no_key=True).get(pk=tool.team_id)
        known = Tool.objects.filter(team=tool.team_id, name=tool.name).order_by("-version")
        newest, actor = known.first(), actors.of_user(by)
        reasons = milder(known.filter(counts=True).first(), tool)
        tool.counts = not reasons or (newest is not None and _confirms(newest, tool, actor.id))
        versions.write(tool, by=actor)
        return [] if tool.counts else reasons


def milder(before: Tool | None, after: Tool) -> list[str]:
    """List in words how a version is milder than the one that counts; [] where it is not."""
    if not Gate.objects.filter(team=after.team_id).exists():
        return []
    if before is None or not before.used:
        return [*_approved_by_rules(after), *_hidden(after)] if after.used else []
    if not after.used:
        return ["It would count as not registered."]
    found = []
    if RISKS.index(after.risk) < RISKS.index(before.risk):
        found.append(f"Its risk was {before.risk}, and would be {after.risk}.")
    if before.irreversible and not after.irreversible:
        found.append("It could be undone.")
    if not set(before.pinned) <= set(after.pinned):
        found.append("Fewer of its arguments would be shown first.")
    if (before.title, before.undo, before.schema) != (after.title, after.undo, after.schema):
        found.append("What reviewers read of it, or the arguments that it takes, changed.")
    return found


def _approved_by_rules(tool: Tool) -> list[str]:
    policies = policies_in_force(tool.team_id)
    named = [each.name for each in policies if any(rule.require.get("auto") for rule in required.rules_of(each.rules))]
    return [f"A rule of {name} could approve it by itself." for name in sorted(named)]


def _hidden(tool: Tool) -> list[str]:
    hides = redact.veil_marks(tool.schema).hides
    return ["Reviewers would no longer see the arguments that it marks as secret."] if hides else []


def _confirms(waiting: Tool, tool: Tool, actor: str) -> bool:
    """Tell whether a tool is what somebody else wrote in the version that waits."""
    written = Event.objects.filter(kind="tool.changed", subject=f"tool:{waiting.pk}").values_list("actor", flat=True)
    same = all(getattr(waiting, name) == getattr(tool, name) for name in SAME)
    return not waiting.counts and same and actor not in written
