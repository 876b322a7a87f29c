"""Runs of the vault, and all the addresses at which something of one is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import Group, User

from checkpoints.models import Run
from tests.approvals.schema.redaction.vault_agent import KEY, SEED, TOKEN
from tests.factories import make_policy, make_team, make_user
from tests.factories.driven_runs import advance_to_rest
from tests.factories.driven_runs import make_run as started

MAY = ("checkpoints.view_run", "checkpoints.rewind_run", "approvals.decide_gate", "checkpoints.view_audit")
REVEAL = "approvals.reveal_secret"


def make_people(whole: bool = False) -> Group:
    """A team with a policy for everything; `whole`: the state may be edited as a whole."""
    team = make_team(may=MAY)
    make_policy(team, name="default", whole_state=whole, separation=False)
    return team


def make_run(team: Group, ledger: str, **more: Any) -> Run:
    accounts = [{"name": "one", "key": KEY}, {"name": "two", "key": f"{KEY}2"}]
    run = started("vault", team=team, ledger=ledger, token=TOKEN, seed=SEED, accounts=accounts, **more)
    return advance_to_rest(run)


def member(team: Group, *, reveals: bool = False) -> User:
    """Somebody who may do everything, or everything but see a secret."""
    return make_user("Ann Okafor", team, may=(REVEAL,) if reveals else ())


def addresses(run: Run, gates: list[int]) -> Iterator[str]:
    at, api = f"/runs/{run.pk}", f"/api/runs/{run.pk}"
    both = f"a=1&b={run.seq}"
    yield from ("/", "/inbox/list/", "/runs/", f"/jump/?q=R-{run.pk}", "/agents/vault/", "/audit/")
    yield from ("/api/runs", "/api/gates", "/api/events?after=")
    yield from (f"{at}/", f"{at}/timeline/", f"{at}/events/", f"{at}/verification/", f"{at}/comparisons/?{both}")
    yield from (api, f"{api}/checkpoints", f"{api}/preflight", f"{api}/comparisons?{both}")
    yield f"/audit/?run={run.pk}"
    seq = run.seq
    yield from (f"{at}/?at={seq}", f"{at}/?at={seq}&view=state", f"{at}/checkpoints/{seq}/?view=state")
    yield from (f"{at}/checkpoints/{seq}/edit/", f"{at}/checkpoints/{seq}/fork/", f"{at}/checkpoints/{seq}/value")
    for pointer in ("/token", "/accounts?tree=1", "/payment/via/key", "/session"):
        yield f"{at}/checkpoints/{seq}/value{pointer}"
    yield from (f"{api}/checkpoints/{seq}", f"{api}/checkpoints/{seq}/diff?to=1", f"{at}/?at={seq}&to=1")
    for gate in gates:
        yield from (f"/gates/{gate}/", f"/gates/{gate}/status/?seen=1", f"/gates/{gate}/preview/", f"/api/gates/{gate}")
        yield from (f"/gates/{gate}/values/?at={place}" for place in ("", "/token", "/accounts&tree=1"))
        yield from (f"/api/gates/{gate}/impacts", f"/api/gates/{gate}/preflight")
