"""Gates of programs: posted without a run, for each of which one is started; approvals taken, and gates withdrawn."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from agents.api.gates import gates
from agents.api.gates.cards import WIRE, AskedAction, CardText, Quoted
from agents.api.gates.outcomes import OutcomeAnswer, answer_outcome
from agents.api.programs.starting import AGENT, POLICY, TEAM, THREAD, agent_of, team_of
from agents.api.programs.turns import TurnAnswer, turn_response
from agents.api.protocol import limits
from agents.api.protocol.answers import answer_json
from agents.api.protocol.auth import actor_of, require_scope, token_of
from agents.api.protocol.idempotency_keys import REPLAYED, Key, do_once, free_key
from agents.api.protocol.schemas import ApiSchema, GateId, Order
from agents.models import Token, TokenScope
from agents.remote import asking, reach
from agents.remote import post_gate as posting
from agents.remote.asking import hand_out
from agents.remote.post_gate import PostedGate, Sender
from agents.work_errors import WorkNotAllowed, WorkRefused
from approvals.decisions.prepared_decision import lost_race
from approvals.errors import GateExpired
from approvals.gates import closing
from approvals.gates.reading import read
from approvals.models import Gate
from approvals.views.access import gate_or_404, reader_of
from checkpoints.values.characters import one_line

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

    example: ClassVar = {"state": {"invoice": 7}, "policy": "", "thread": "chat-1207", "ask_only": False}

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

    def posted(self, agent: str, token: Token | None) -> PostedGate:
        """Return it as the engine takes it."""
        idempotent = [action.id for action in self.actions if action.idempotent]
        policy = asking.policy_of(token, self.policy)
        return PostedGate(
            agent=agent, card=self.card(), state=self.state, idempotent=idempotent, policy=policy,
            thread=one_line(self.thread, 200), ask_only=self.ask_only,
        )  # fmt: skip


class PostedBy(Order):
    """The sender of gates, and the team that they are for."""

    example: ClassVar = {"agent": "payouts", "team": "", "worker": "box:81", "deferred": False}

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
    posted = order.posted(agent, token_of(request))

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
    limits.count_more(request, len(order.gates) - 1)
    sender, agent = _sender(request, order), agent_of(request, order.agent)
    posted = [gate.posted(agent, token_of(request)) for gate in order.gates]

    def do() -> HttpResponse:
        turns = posting.post(posted, sender, batch=True)
        answer = TurnAnswers(gates=[TurnAnswer.from_turn(turn) for turn in turns])
        return answer_json(answer, http_status=201, location=f"/api/runs/{turns[0].run.pk}")

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


own_gates = Router(tags=["gates"], auth=require_scope(TokenScope.WORK))


class Withdrawal(Order):
    """Withdraw a gate."""

    example: ClassVar = {"reason": "The invoice was cancelled."}

    reason: str = Field("", max_length=300)
    """The reason, for people; the gate shows it."""


@own_gates.post("/{int:gate_id}/withdrawals", response={201: OutcomeAnswer}, summary="Withdraw a gate")
def withdraw_gate(request: HttpRequest, gate_id: GateId, order: Withdrawal, key: Key) -> HttpResponse:
    """Withdraw your gate. Nothing of it runs, and its run is cancelled: claim the run to end it at once."""
    gate = gate_or_404(request, gate_id)
    _check_own(request, gate)

    def do() -> HttpResponse:
        by, why = actor_of(request), one_line(order.reason, 300)
        # The name comes first, so that nobody takes a program's sentence for Holdpoint's own.
        reason = f"{by.name or by.id} withdrew it: “{why}”" if why else f"{by.name or by.id} withdrew it."
        if closing.withdraw(gate, by=by, reason=reason) is None:
            now = read(gate.pk)
            raise lost_race(now, bytes(now.proposal.digest)) or GateExpired
        answer = answer_outcome(gate_or_404(request, gate_id))
        answer.status_code = 201
        return answer

    return do_once(request, key, do)


def _check_own(request: HttpRequest, gate: Gate) -> None:
    """Check that the gate is the program's own. Raises Http404, NotExternal, WorkNotAllowed and WorkRefused."""
    reach.to_work(gate.run_id, by=reader_of(request))
    token = token_of(request)
    if not (token and token.agent) and gate.run.started_by_id != reader_of(request).pk:
        raise WorkNotAllowed(
            "Only the program that asks takes a gate back, or whoever started its run; cancel the run by "
            f"POST /api/runs/{gate.run_id}/cancellations."
        )
    if gate.kind != Gate.Kind.REVIEW:
        raise WorkRefused("This gate asks people how to go on after a fault. Only their answer closes it.")


class Handout(Order):
    """Take an approval."""

    example: ClassVar = {"to": "toolu_01", "frees": "deploy"}

    to: str = Field(min_length=1, max_length=200)
    """Your name for the call that it is for. Under this name it is read again."""
    frees: str = Field("", max_length=200)
    """The `Idempotency-Key` under which you posted the gate, if the next request under it is another question: it opens
    a gate of its own."""


class HandoutAnswer(ApiSchema):
    """The holder of an approval."""

    example: ClassVar = {"at": "2026-03-02T14:02:41.104112Z", "yours": True, "first": True}

    at: datetime
    """When it was handed out."""
    yours: bool
    """Whether to the call that you named; otherwise another has it."""
    first: bool
    """Whether just now, by this request."""


@own_gates.post("/{int:gate_id}/handouts", response={201: HandoutAnswer}, summary="Take an approval")
def take_approval(request: HttpRequest, gate_id: GateId, order: Handout, key: Key) -> HttpResponse:
    """Take the approval at a gate that you posted with `ask_only`: it is handed out to one call, once.

    Send this before you act by it. 409: nobody has approved, or a run performs what was approved.
    """
    gate = gate_or_404(request, gate_id)
    reach.to_work(gate.run_id, by=reader_of(request))

    def do() -> HttpResponse:
        handed = hand_out(gate.pk, to=order.to, by=actor_of(request))
        if order.frees:
            free_key(request, order.frees, location=f"/api/gates/{gate.pk}")
        return answer_json(HandoutAnswer(at=handed.at, yours=handed.yours, first=handed.first), http_status=201)

    return do_once(request, key, do)
