"""Starting runs, of an agent on this server or outside."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse
from pydantic import Field

from agents.api.protocol.answers import answer_json
from agents.api.protocol.auth import actor_of, require_scope, token_of
from agents.api.protocol.idempotency_keys import Key, do_once
from agents.api.protocol.schemas import Order
from agents.api.runs.runs import RunSummary, summed_up
from agents.api.runs.runs import router as runs
from agents.definition import registry
from agents.errors import UnknownAgent
from agents.models import Client, Registration, TokenScope
from agents.remote import plans as outside
from agents.runs import start
from agents.work_errors import WorkInvalid, WorkNotAllowed
from approvals.views.access import reader_of
from checkpoints.access import token_scope
from checkpoints.access.permissions import START_RUN, say_no_team, teams_by_name
from checkpoints.models import Run
from checkpoints.models.run import PRIORITIES
from checkpoints.values.characters import one_line

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
VERSION = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$"
POLICY = "^[A-Za-z0-9_-]{0,60}$"
AGENT = Field("", description="The agent's name; empty with a token for one agent.", pattern=f"{NAME}|^$")
TEAM = Field("", description="The team that the run belongs to; empty if there is only one.", max_length=150)
THREAD_WORDS = "Your own name for what this belongs to, such as one conversation: its runs are listed together."
THREAD = Field("", description=THREAD_WORDS, max_length=200)


class Start(Order):
    """Start a run."""

    example: ClassVar = {
        "agent": "payouts", "version": "1", "input": {"invoice": 7}, "config": None, "team": "", "title": "Invoice 7",
        "thread": "chat-1207", "within": 604_800, "priority": 2,
    }  # fmt: skip

    agent: str = AGENT
    version: str = Field("", pattern=f"{VERSION}|^$")
    """For an external agent: its registered version; empty: the team's newest."""
    input: dict[str, Any] = {}
    """The state that it starts from."""
    config: dict[str, Any] | None = None
    """For an agent on this server: what differs from its default configuration."""
    team: str = TEAM
    title: str = Field("", max_length=200)
    """Its title in lists."""
    thread: str = THREAD
    within: float | None = Field(None, gt=0, le=10 * 365 * 86_400)
    """Seconds after which it is cancelled if it still lives; null: as its agent says."""
    priority: int | None = Field(None, ge=PRIORITIES[0], le=PRIORITIES[-1])
    """When its turn comes among runs that are due: from 0, the most urgent, to 9; null: as its agent says, or 5."""


@runs.post("", auth=require_scope(TokenScope.START), response={201: RunSummary}, summary="Start a run")
def start_run(request: HttpRequest, order: Start, key: Key) -> HttpResponse:
    """Start a run. A run of an external agent waits until a program claims it."""
    team, agent = team_of(request, order.team), agent_of(request, order.agent)

    def do() -> HttpResponse:
        run = _started(request, order, agent, team)
        whole = Run.objects.select_related("plan", "team", "started_by").get(pk=run.pk)
        return answer_json(summed_up(whole), http_status=201, location=f"/api/runs/{run.pk}")

    return do_once(request, key, do, binds=order.model_dump(exclude={"title", "thread"}))


def agent_of(request: HttpRequest, name: str) -> str:
    """Return the agent of the token, or else the named one.

    Raises WorkInvalid, WorkNotAllowed.
    """
    bound = token_scope.bounds_of(reader_of(request)).agent
    if bound and name not in ("", bound):
        raise WorkNotAllowed(f"This token is for the agent {bound}, not for {name}.")
    if not (bound or name):
        raise WorkInvalid.at("/agent", "name the agent")
    return bound or name


def team_of(request: HttpRequest, name: str, permission: str = START_RUN) -> Group:
    """Return the named team, or the only one in which the sender may start runs, or has another permission.

    Raises WorkInvalid and WorkNotAllowed.
    """
    by = reader_of(request)
    mine = teams_by_name(by, permission)
    chosen = [team for team in mine if name in ("", team.name)]
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise WorkNotAllowed(say_no_team(by, permission, name))
    named = ", ".join(team.name for team in mine)
    raise WorkInvalid.at("/team", f"say which of these it is: {named}")


def _started(request: HttpRequest, order: Start, agent: str, team: Group) -> Run:
    known: dict[str, Any] = {
        "by": actor_of(request), "team": team, "started_by": reader_of(request), "title": order.title or None,
        "thread": one_line(order.thread, 200), "priority": order.priority,
        "within": None if order.within is None else timedelta(seconds=order.within),
    }  # fmt: skip
    if any(name == agent for name, _ in registry.agents()):
        if order.version:
            raise WorkInvalid.at("/version", f"{agent} runs on this server, in its newest version")
        return start.start_run(agent, order.input, config=order.config, **known)
    if order.config is not None:
        raise WorkInvalid.at("/config", "external agents have no configuration on this server")
    plan = Registration.objects.plan_of(agent, order.version, team=team)
    if plan is None:
        raise UnknownAgent(
            f"{team.name} has no agent {agent}{f' in version {order.version}' if order.version else ''}. Register it "
            f"by POST /api/agents/{agent}/versions, or post its gate to /api/gates, which needs no plan."
        )
    run = start.start_run(outside.declared(plan), order.input, **known)
    Client.came(run, token=token_of(request), owner=reader_of(request).pk)
    return run
