"""Gates that are posted without a run, one or many in a request: a run is started for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from agents.access import reader_of
from agents.api.gates import gates
from agents.api.gates.cards import WIRE, AskedAction, CardText, Quoted
from agents.api.protocol import ApiSchema, Key, actor_of, do_once, require_scope, throttling, token_of
from agents.api.protocol import answer_json as plain
from agents.api.protocol.idempotency_keys import REPLAYED
from agents.api.runs.moves import Order
from agents.api.runs.turns import TurnAnswer, turn_response
from agents.models import TokenScope
from agents.remote import policy_of_token
from agents.remote import post_gate as posting
from agents.remote.implied_plan import PostedGate
from agents.remote.post_gate import Sender
from agents.text import one_line

from .starting import AGENT, POLICY, TEAM, THREAD, agent_of, team_of

router = gates.router  # a gate is posted to the path at which gates are listed: one router answers both
MOST = 100  # gates of one request


class PostedAction(AskedAction):
    """One action of a posted gate, with its arguments."""

    example: ClassVar = {"arguments": WIRE, "undo": "", "idempotent": False}

    arguments: dict[str, Any]
    """Its arguments. They can be edited."""
    undo: str = Field("", max_length=100)
    """What undoes it; empty: nothing."""
    idempotent: bool = False
    """Whether it may be sent twice with the same key."""


class GateQuestion(CardText):
    """The question of a gate: actions, and any state to show beside those."""

    example: ClassVar = {"state": {"invoice": 7}, "policy": "", "ask_only": False}

    actions: list[PostedAction] = Field(max_length=50)
    """The actions to decide."""
    state: dict[str, Any] = {}
    """Further values, shown with the actions."""
    quotes: list[Quoted] = Field([], max_length=50)
    """People's own words, shown beside the agent's account."""
    policy: str = Field("", pattern=POLICY)
    """The policy by which people decide; empty: the team's default, or the token's own."""
    thread: str = THREAD
    ask_only: bool = False
    """Whether you only want the answer: the run has no effects, and ends by itself once people have decided."""

    def bound(self) -> list[Any]:
        """Return what makes a repeat under a key the same: the calls, the state, who decides.

        An action without arguments is what its words say, so that there those count too.
        """
        if not all(action.arguments for action in self.actions):
            return [self.model_dump(include=set(GateQuestion.model_fields) - {"thread"})]
        calls = [
            [action.id, action.tool or action.id, action.arguments, action.undo, action.idempotent]
            for action in self.actions
        ]
        return [self.policy, self.ask_only, self.state, calls]

    def posted(self, agent: str, policy: str) -> PostedGate:
        """Return it as the engine takes it."""
        return PostedGate(
            agent=agent,
            card=self.card(),
            state=self.state,
            idempotent=[action.id for action in self.actions if action.idempotent],
            policy=policy,
            thread=one_line(self.thread, 200),
            ask_only=self.ask_only,
        )


class PostedBy(Order):
    """The sender of gates, and the team that they are for."""

    example: ClassVar = {"worker": "box:81", "deferred": False}

    agent: str = AGENT
    team: str = TEAM
    worker: str = Field("", max_length=120)
    """Who asks, for people: host and process."""
    deferred: bool = False
    """Whether you disconnect and come back for the outcome."""


class PostGate(PostedBy, GateQuestion):
    """Ask people about actions, and show them any state beside those."""


class PostGates(PostedBy):
    """Ask people about many things, a gate each, for one agent and team."""

    gates: list[GateQuestion] = Field(min_length=1, max_length=MOST)
    """The gates, in the order of the answer. All of them are opened, or none."""


class TurnAnswers(ApiSchema):
    """The gates that were opened."""

    gates: list[TurnAnswer]
    """What `POST /api/gates` would answer for each, in the order sent."""


@router.post("", auth=require_scope(TokenScope.START), response={201: TurnAnswer}, summary="Post a gate")
def post_gate(request: HttpRequest, order: PostGate, key: Key) -> HttpResponse:
    """Start a run that asks people before something is done, and waits at the gate.

    Read its outcome, claim the run, begin the effect that was allowed, do it, report it: then the run is over.
    """
    sender, agent = _sender(request, order), agent_of(request, order.agent)
    posted = _posted(request, order, agent)

    def do() -> HttpResponse:
        [turn] = posting.post([posted], sender)
        response = turn_response(turn)
        response["Location"] = f"/api/gates/{turn.gate.pk}" if turn.gate else f"/api/runs/{turn.run.pk}"
        return response

    answered = do_once(request, key, do, binds=_bound(order, [order]))
    return _told_again(answered, sender, lambda turn: [turn])


@router.post(
    "/batches", auth=require_scope(TokenScope.START), response={201: TurnAnswers}, summary="Post several gates"
)
def post_gates(request: HttpRequest, order: PostGates, key: Key) -> HttpResponse:
    """Do the same for each of several gates, in one transaction: every one has a run of its own.

    Where one of them is refused, none is opened, and the faults of all are told, as `/gates/3/title`. Each counts as a
    request of yours and as a gate of the policy's hour.
    """
    throttling.count_more(request, len(order.gates) - 1)
    sender, agent = _sender(request, order), agent_of(request, order.agent)
    posted = [_posted(request, gate, agent) for gate in order.gates]

    def do() -> HttpResponse:
        turns = posting.post(posted, sender, batch=True)
        return plain(TurnAnswers(gates=[TurnAnswer.from_turn(turn) for turn in turns]), http_status=201)

    answered = do_once(request, key, do, binds=_bound(order, order.gates))
    return _told_again(answered, sender, lambda batch: batch["gates"])


def _told_again(answered: HttpResponse, sender: Sender, turns: Callable[[Any], list[Any]]) -> HttpResponse:
    if REPLAYED in answered:
        posting.come_again([turn["run"] for turn in turns(json.loads(answered.content))], sender)
    return answered


def _sender(request: HttpRequest, order: PostedBy) -> Sender:
    """Return the sender, with the team. Raises WorkInvalid and WorkNotAllowed."""
    by, team = actor_of(request), team_of(request, order.team)
    return Sender(by, team, reader_of(request), token_of(request), order.worker or by.name, order.deferred)


def _bound(order: PostedBy, gates: Sequence[GateQuestion]) -> list[Any]:
    return [order.agent, order.team, [gate.bound() for gate in gates]]


def _posted(request: HttpRequest, order: GateQuestion, agent: str) -> PostedGate:
    return order.posted(agent, policy_of_token.policy_of(token_of(request), order.policy))
