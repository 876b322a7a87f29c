"""Answers that carry a turn and the run's whole state, with its secrets, for the run's program.

No state is kept for an Idempotency-Key: its secrets would lie in that table for a week, even if the run is removed
meanwhile. The same request again gets the state as long as the run has not moved on, and null after that.

A person who works on a run by a session or a token of their own is not its program: where the state holds secrets they
need the permission to reveal them, and an event records that before the secrets are shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse

from agents.access import reader_of
from agents.api.protocol import do_once, exact_json, token_of
from agents.api.runs.turns import turn_response
from agents.definition import fields
from agents.models import Effect
from agents.remote import plans, reach, session_cache
from agents.remote.turns import RemoteTurn
from agents.session import translate_history
from agents.work_errors import WorkNotAllowed
from approvals.gates import reveal_secret
from checkpoints import store
from checkpoints.errors import Fenced
from checkpoints.models import Run

NONE = b"null}"  # how an answer without its state ends


def do_exclusively(
    request: HttpRequest, run_id: int, key: str, do: Callable[[], HttpResponse], *, token: int = 0
) -> HttpResponse:
    """Do something to a run, once for a key, while no other request of this process does.

    The lock lasts until the commit: the next request would otherwise begin from the older state. What was not committed
    is dropped from the cache.
    """
    with session_cache.SESSIONS.alone(run_id):
        try:
            return do_once(request, key, do)
        except DatabaseError:
            session_cache.SESSIONS.take(run_id)
            raise
        except Fenced as error:
            raise session_cache.stale(run_id, token) from error


def with_state(
    request: HttpRequest, run_id: int, key: str, do: Callable[[], RemoteTurn], *, token: int = 0
) -> HttpResponse:
    """Do something to a run, as `do_exclusively`, and answer 201 with the turn that follows and the state.

    Raises WorkNotAllowed, and whatever `do` raises.
    """
    done: list[RemoteTurn] = []

    def answer_turn() -> HttpResponse:
        _may_have(request, run_id)
        done.append(do())
        return turn_response(replace(done[0], state=None), state=True)

    kept = do_exclusively(request, run_id, key, answer_turn, token=token)
    if done:
        return turn_response(done[0], state=True)
    kept.content = kept.content.removesuffix(NONE) + _again(request, json.loads(kept.content)) + b"}"
    return kept


def _again(request: HttpRequest, turn: dict[str, Any]) -> bytes:
    """Return the state of a turn that was handed out before, as JSON. Raises WorkNotAllowed."""
    run = Run.objects.select_related("plan").get(pk=turn["run"])
    then = turn["status"], turn["token"], turn["seq"]
    if (run.status, run.token, run.seq) != then or run.status != Run.Status.RUNNING:
        return b"null"
    _may_have(request, run.pk)
    undoes = turn["next"] and turn["next"]["undoes"]
    if undoes is None:
        return exact_json.of_state(store.load(run).state)
    return exact_json.of_state(
        translate_history.left_by(Effect.objects.select_related("run").get(pk=undoes["id"]), run.plan)
    )


def _may_have(request: HttpRequest, run_id: int) -> None:
    """Check that the sender may see the secrets in the state. Raises WorkNotAllowed."""
    token = token_of(request)
    if token is not None and token.agent:
        return
    run = reach.load_run(run_id)
    known = plans.registered(run.plan_id)
    if known is None or not fields.veil(known.agent.State):
        return
    try:
        reveal_secret.of_state(run, by=reader_of(request))
    except reveal_secret.RevealNotAllowed as refused:
        words = "The run's state holds secrets for its program. Claim the run with a token of its agent."
        raise WorkNotAllowed(words) from refused
