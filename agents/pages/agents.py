"""The pages of the agents: their steps, figures and versions, and a form that starts a run."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from agents.definition import registry
from agents.definition.upcast import version_key
from agents.errors import FieldError, InputRefused
from agents.pages.agent_plan import draw_steps
from agents.runs import activity
from agents.runs.activity import AgentFigures
from agents.runs.query import KnownAgent, known_to
from agents.runs.start import start_run
from agents.serving import missing_workers
from agents.serving.missing_workers import Service
from approvals import forms
from approvals.insights.figures import SPANS
from approvals.live import page_frame
from approvals.presentation.decision_form.actions import blank
from approvals.presentation.decision_form.faults import FormFault, of_form
from approvals.schema.walk import (
    Schema,
    find_definition,
    property_schemas,
    referred_name,
    sanitise_schema,
    union_branches,
)
from approvals.views.access import private_get, private_post, reader_of
from checkpoints import actors
from checkpoints.access.permissions import START_RUN, say_missing_permission, teams_where
from checkpoints.errors import PlanChanged, ValueRefused
from checkpoints.models import Run
from checkpoints.models.run import PRIORITIES
from checkpoints.postgresql.sql import make_storable
from checkpoints.runs.plans import PlanSpec, StepSpec, spec_of
from checkpoints.values import canonical_json, patch

FORM = "input"  # the prefix of the form's names
PRIORITY = "priority"  # the form's own field; the fields of the input have pointers, which begin with /
SHOWN = 50  # versions
ENDS = ("completed", "failed", "cancelled")
DEPTH = 4  # unions and lists in each other whose types are named


@private_get
def page(request: HttpRequest) -> HttpResponse:
    """Show every agent that the reader may see or start."""
    teams = page_frame.reach_of(request).teams
    known = known_to(request)
    found = activity.of_agents({agent.name: [plan.pk for plan in agent.plans] for agent in known}, teams)
    served = missing_workers.of_plans([plan.pk for agent in known for plan in agent.plans])
    rows = [(agent, figures_context(agent, found[agent.name], served)) for agent in known]
    unread = registry.faults() if request.user.is_staff else []
    return render(request, "agents/list.html", {"rows": rows, "unread": unread})


@private_get
def agent(request: HttpRequest, name: str) -> HttpResponse:
    """Show one agent."""
    return show(request, _known_or_404(request, name))


def figures_context(known: KnownAgent, figures: activity.AgentFigures, served: Mapping[int, Service]) -> dict[str, Any]:
    """Return the context of agents/_figures.html: the numbers, their bars, and the workers. `served` is by plan id."""
    version_of = {plan.pk: plan.version for plan in known.plans}
    late = max(figures.due.items(), key=lambda item: item[1], default=None)
    heard = [served[plan.pk].heard for plan in known.plans if served[plan.pk].heard]
    return {
        "numbers": figures,
        "ends": draw_ends(figures),
        "waits": draw_waits(figures),
        "served": sorted({version_of[plan.pk] for plan in known.plans if served[plan.pk].has_worker}, key=version_key),
        "heard": max(filter(None, heard), default=None),
        "late": {"version": version_of[late[0]], "span": late[1], "served": served[late[0]].has_worker}
        if late
        else None,
    }


@private_post
def start(request: HttpRequest, name: str) -> HttpResponse:
    """Start a run with the input. 403 for those who may not; 422 with every fault in its place."""
    known, reader = _known_or_404(request, name), reader_of(request)
    teams = teams_where(reader, START_RUN)
    if not teams.exists():
        raise PermissionDenied(say_missing_permission(reader, START_RUN))
    form = request.POST.dict()
    if change := form.get("change", ""):
        return show(request, known, posted=forms.applied(form, change))
    team = teams.filter(pk=form.get("team", "") if re.fullmatch("[0-9]{1,9}", form.get("team", "")) else 0).first()
    try:
        run = _started(known, reader, team, form)
    except InputRefused as refused:
        return show(request, known, posted=form, errors=refused.errors, status=422)
    return redirect("run", run.pk)


def _started(known: KnownAgent, reader: User, team: Group | None, form: Mapping[str, str]) -> Run:
    """Start a run and return it. Raises InputRefused."""
    if team is None:
        raise InputRefused([FieldError(pointer="", message="choose one of your teams that may start runs")])
    if known.here is None:
        raise InputRefused([FieldError(pointer="", message="no version of this agent is deployed on this server")])
    key = f"start:{reader.pk}:{make_storable(form['key'][:100])}" if form.get("key") else None
    by, input, priority = actors.of_user(reader), input_of(known, form), priority_of(form)
    try:
        return start_run(known.name, input, by=by, team=team, started_by=reader, key=key, priority=priority)
    except PlanChanged as error:
        raise InputRefused([FieldError(pointer="", message=str(error))]) from error


def priority_of(form: Mapping[str, str]) -> int | None:
    """Return the chosen priority; None for the agent's own. Raises InputRefused."""
    chosen = form.get("priority", "")
    if chosen and chosen not in map(str, PRIORITIES):
        raise InputRefused([FieldError(pointer=PRIORITY, message=f"takes a number from 0 to {PRIORITIES[-1]}")])
    return int(chosen) if chosen else None


def input_of(known: KnownAgent, form: Mapping[str, str]) -> Any:
    """Return the input: as JSON if there is any, else from the fields. Raises InputRefused."""
    if text := form.get("json", "").strip():
        try:
            return canonical_json.parse_json(text)
        except ValueRefused as refused:
            raise InputRefused([FieldError(pointer=refused.pointer, message=refused.reason)]) from refused
    read = form_of(known, form)
    if read.errors:
        raise InputRefused([FieldError(pointer=at, message=word) for at, word in read.errors.items()])
    return read.value


def form_of(known: KnownAgent, posted: Mapping[str, str], errors: Mapping[str, str] | None = None) -> forms.Form:
    """Return the form of the required fields, without which a run cannot start."""
    schema = required_schema(known.spec.state_schema)
    return forms.build(schema, blank(schema), prefix=FORM, posted=posted, errors=errors or {}, quoted=known.external)


def show(
    request: HttpRequest, known: KnownAgent, *, posted: Mapping[str, str] | None = None,
    errors: list[FieldError] | None = None, status: int = 200,
) -> HttpResponse:  # fmt: skip
    """Show the page of one agent."""
    posted, reach = posted or {}, page_frame.reach_of(request)
    drawn, lanes = draw_steps(known.spec)
    faults = {error["pointer"]: error["message"] for error in errors or []}
    chosen = [FormFault(id=PRIORITY, label="Priority", message=faults.pop(PRIORITY))] if PRIORITY in faults else []
    found = activity.of_agents({known.name: [plan.pk for plan in known.plans]}, reach.teams)
    served = missing_workers.of_plans([plan.pk for plan in known.plans])
    form = form_of(known, posted, faults)
    placed = {node.place.pointer for node in form.nodes}
    teams = list(teams_where(reader_of(request), START_RUN).order_by("name")) if known.here else []  # may own the run
    own = next((str(team.pk) for team in teams if known.here and team.name == known.here.agent.team), "")
    context = {
        "teams": teams, "team": posted.get("team", own), "key": posted.get("key") or uuid.uuid4().hex,
        "known": known, "spec": known.spec, "steps": drawn, "lanes": lanes,
        "fields": state_fields(known.spec.state_schema), "schema": known.spec.state_schema,
        "figures": figures_context(known, found[known.name], served),
        "versions": known.plans[:SHOWN], "compared": compared(request, known), "form": form,
        "faults": [*of_form(form), *chosen],
        "stuck": _stuck(request, known),
        "loose": [word for at, word in faults.items() if at not in placed], "json": posted.get("json", ""),
        "priorities": [*map(str, PRIORITIES)], "priority": posted.get("priority", ""), "priority_refused": bool(chosen),
        "own_priority": str(known.here.agent.priority) if known.here else "",
    }  # fmt: skip
    return render(request, "agents/agent.html", context, status=status)


def _stuck(request: HttpRequest, known: KnownAgent) -> list[int]:
    """List the visible runs that wait for the code they began with, while this version has other code."""
    if known.here is None:
        return []
    return registry.under_way(known.here.spec, among=Run.objects.visible_to(request.user))


def compared(request: HttpRequest, known: KnownAgent) -> dict[str, Any] | None:
    """Compare the stored plan `?a=` to `?b=`, by default the second newest to the newest."""
    by_id = {str(plan.pk): plan for plan in known.plans}
    a = by_id.get(request.GET.get("a", ""), known.plans[1] if len(known.plans) > 1 else None)
    b = by_id.get(request.GET.get("b", ""), known.plans[0] if known.plans else None)
    if a is None or b is None or a.pk == b.pk:
        return None
    before, after = spec_of(a), spec_of(b)
    rows = patch.list_changes(before.state_schema, after.state_schema)
    return {"a": a, "b": b, "steps": list(changed_steps(before, after)), "rows": rows}


def _known_or_404(request: HttpRequest, name: str) -> KnownAgent:
    found = known_to(request, make_storable(name))
    if not found:
        raise Http404("No such agent")
    return found[0]


def draw_ends(figures: AgentFigures) -> list[tuple[str, int, str, str]]:
    """Return the parts of a bar of how runs ended: status, number, start and width, as SVG takes these two."""
    parts, start = list[tuple[str, int, str, str]](), 0.0
    for status in ENDS:
        if number := figures.statuses.get(status, 0):
            width = 100 * number / figures.ended
            parts.append((status, number, f"{start:.2f}%", f"{width:.2f}%"))
            start += width
    return parts


def draw_waits(figures: AgentFigures) -> list[tuple[str, int, str]]:
    """Return label, number and width of a bar for each span of waiting for a decision."""
    most = max(figures.within.values(), default=0) or 1
    spans = [(str(SPANS[key][0]), number) for key, number in figures.within.items()] if figures.decided else []
    return [(label, number, f"{100 * number / most:.2f}%") for label, number in spans]


@dataclass(frozen=True, slots=True)
class StateField:
    """One field of the state. `about` is the agent's own description (untrusted)."""

    name: str
    kind: str
    required: bool
    about: str


def state_fields(schema: Schema) -> list[StateField]:
    """Return the fields, in their order."""
    known = sanitise_schema(schema)
    required = known.get("required", ())
    return [
        StateField(name, type_words(part), name in required, str(about))
        for name, part in property_schemas(known).items()
        for about in [part.get("description") or find_definition(part, known).get("description", "")]
    ]


def type_words(part: Schema, depth: int = 0) -> str:
    """Return the type of a field in a word or two: "list of Item", "text or nothing". `part` is sound."""
    if depth > DEPTH:
        return "anything"
    if name := referred_name(part):
        return name
    if union := union_branches(part):
        return " or ".join(dict.fromkeys(type_words(item, depth + 1) for item in union))
    if part.get("type") == "array":
        return f"list of {type_words(part.get('items', {}), depth + 1)}"
    names = {
        "string": "text", "integer": "whole number", "number": "number", "boolean": "yes or no",
        "null": "nothing", "object": "object",
    }  # fmt: skip
    return names.get(str(part.get("type")), "anything")


def required_schema(schema: Schema) -> dict[str, Any]:
    """Return the schema of an object with the required fields alone, which a run cannot start without."""
    names = schema.get("required", ())
    parts = {name: part for name, part in schema.get("properties", {}).items() if name in names}
    return {"type": "object", "properties": parts, "required": list(parts), "$defs": schema.get("$defs", {})}


def changed_steps(before: PlanSpec, after: PlanSpec) -> Iterator[tuple[str, str, str]]:
    """Yield each changed step, its change and how it differs: removed steps first, then by the newer plan."""
    old, new = ({step.name: step for step in plan.steps} for plan in (before, after))
    yield from ((name, "removed", "") for name in old if name not in new)
    for name, step in new.items():
        if name not in old:
            yield name, "added", ""
            continue
        names = [field.name for field in fields(StepSpec)]
        differ = [word for word in names if getattr(old[name], word) != getattr(step, word)]
        if differ:
            words = ["its code" if word == "code_hash" else word.replace("_", " ") for word in differ]
            yield name, "changed", ", ".join(words)
