"""Tokens: what each opens and what not, for every address that the API describes."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from agents import tokens
from agents.errors import TokenRefused
from agents.models import Token, TokenScope
from agents.models.token import FOR_AGENTS, FOR_PEOPLE, digest_of
from approvals.models import Decision
from checkpoints import actors
from checkpoints.models import Event, Run
from config.local import seed
from tests.agents.api.sent_requests import address, example, gate, operations
from tests.agents.api.test_doors import STARTS, THREADS, refusal
from tests.factories import MEMBER, READER, ann, bob, make_gate, make_policy, make_run, make_team, make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.session import ROOT

# What a token is asked for by a code needs none: see tests/agents/device.
EACH = [(path, method, told) for path, method, told in operations() if "/device/" not in path]


def scope_of(told: dict[str, Any]) -> str | None:
    return next((way["token"][0] for way in told["security"] if "token" in way), None)


def send(client: Client, path: str, method: str) -> Any:
    if method == "get":
        return client.get(address(path))
    return client.post(address(path), example(path), content_type="application/json")


def shows_nothing(answer: Any, path: str, method: str) -> None:
    """Check that an answer has nothing of the gate and the agent of the addresses."""
    if "{" in path:
        refusal(answer, 404)
    elif method == "get":
        assert gate().run.plan.agent not in answer.content.decode()
        assert gate().title not in answer.content.decode()


def test_it_opens_what_its_scope_names_and_nothing_else() -> None:
    owner = ann(gate().team)
    alone = {scope: bearing(make_token(owner, scope)[1]) for scope in TokenScope.values}
    others = {
        scope: bearing(make_token(owner, *(other for other in TokenScope.values if other != scope))[1])
        for scope in TokenScope.values
    }
    for path, method, told in EACH:
        needed = str(scope_of(told))
        assert needed in refusal(send(others[needed], path, method), 403)["detail"]
        if method == "get":
            answer = send(alone[needed], path, method)
            assert answer.status_code != 401
            assert "Use a token that has that scope" not in answer.content.decode()


def test_a_token_that_opens_nothing_is_told_so_everywhere() -> None:
    owner, off = ann(gate().team), ann(gate().team)
    (expired, sent), (revoked, other), (_, third) = make_token(owner), make_token(owner), make_token(off)
    past = timezone.now() - timedelta(days=2)
    Token.objects.filter(pk=expired.pk).update(created_at=past, expires_at=past + timedelta(days=1))
    assert tokens.revoke(revoked, by=actors.SYSTEM)
    type(off).objects.filter(pk=off.pk).update(is_active=False)
    unknown = sent[:-1] + ("A" if sent[-1] != "A" else "B")
    clients = [bearing(each) for each in (sent, other, third, unknown, "\x7f\xff")]
    for number, (path, method, _) in enumerate(EACH):
        for client in clients if number % 8 == 0 else [clients[number % 5]]:
            assert "/tokens/" in refusal(send(client, path, method), 401)["detail"]


def test_a_token_for_another_team_finds_nothing() -> None:
    """Its owner is in both teams: the token still reaches only one."""
    other = make_team(may=MEMBER)
    client = bearing(make_token(ann(gate().team, other), team=other)[1])
    for path, method, _ in EACH:
        answer = send(client, path, method)
        if method == "get" or path not in STARTS:
            shows_nothing(answer, path, method)
    assert not Run.objects.filter(team=gate().team, started_by__groups=other).exists()


def test_an_agents_token_finds_nothing_of_another_agent() -> None:
    owner = make_user("Ann Okafor", gate().team, may=MEMBER)
    client = bearing(make_token(owner, team=gate().team, agent="somebody-else")[1])
    for path, method, told in EACH:
        answer = send(client, path, method)
        if scope_of(told) not in FOR_AGENTS or (method == "post" and path in STARTS) or path in THREADS:
            refusal(answer, 403)
        else:
            shows_nothing(answer, path, method)


def test_an_agents_token_sees_its_own_runs_and_gates() -> None:
    team = make_team(may=MEMBER)
    mine, other = make_gate(team=team), make_gate(team=team)
    _, sent = make_token(ann(team), team=team, agent=mine.run.plan.agent)
    client = bearing(sent)
    assert [each["id"] for each in client.get("/api/gates").json()["items"]] == [mine.pk]
    assert [each["id"] for each in client.get("/api/runs").json()["items"]] == [mine.run_id]
    assert [each["name"] for each in client.get("/api/agents").json()["items"]] == [mine.run.plan.agent]
    refusal(client.get(f"/api/gates/{other.pk}"), 404)
    assert client.get(f"/api/runs/{mine.run_id}").status_code == 200


def decide(sent: str, asked: Any) -> Any:
    body = {"seen": bytes(asked.standing().digest).hex(), "verdict": "approve"}
    return bearing(sent).post(f"/api/gates/{asked.pk}/decisions", body, content_type="application/json")


def test_an_agents_token_is_refused_however_it_came_by() -> None:
    team = make_team(may=MEMBER)
    asked, owner = make_gate(team=team), ann(team)
    with pytest.raises(TokenRefused, match="only people decide"):
        make_token(owner, "gates:decide", team=team, agent=asked.run.plan.agent)
    token, sent = make_token(owner, team=team, agent=asked.run.plan.agent)
    refusal(decide(sent, asked), 403)
    with pytest.raises(IntegrityError, match="token_of_an_agent_never_decides"), transaction.atomic():
        Token.objects.filter(pk=token.pk).update(scopes=[*token.scopes, "gates:decide"])
    page = bearing(sent).post(f"/gates/{asked.pk}/decisions/", {"verdict": "approve"})
    assert page.status_code == 302  # to the sign-in: the pages know no tokens
    assert not Decision.objects.filter(gate=asked).exists()


def test_a_persons_token_decides_what_the_person_may() -> None:
    team = make_team(may=MEMBER)
    asked, by = make_gate(team=team), ann(team)
    own = make_gate(run=make_run(team=team, started_by=by))
    _, sent = make_token(by, "gates:decide")
    assert decide(sent, asked).status_code == 201
    assert Decision.objects.get(gate=asked).user == by
    assert "started this run" in refusal(decide(sent, own), 403)["detail"]
    other = make_gate(team=make_team(may=READER))
    _, readers = make_token(bob(other.team), "gates:decide")
    assert "with the permission “decide at the gates" in refusal(decide(readers, other), 403)["detail"]


def test_only_its_digest_is_kept() -> None:
    token, sent = make_token(ann(make_team()))
    row = Token.objects.filter(pk=token.pk).values().get()
    assert bytes(row["digest"]) == digest_of(sent)
    assert sent[8:] not in str({**row, "digest": bytes(row["digest"])})
    told = Event.objects.get(subject=token.subject)
    assert (told.kind, sent[8:] in bytes(told.data).decode()) == ("token.created", False)


def test_that_it_was_used_is_kept_and_it_is_revoked_once() -> None:
    token, sent = make_token(ann(make_team()), "runs:read")
    used = []
    for _ in range(2):
        assert bearing(sent).get("/api/runs").status_code == 200
        used.append(Token.objects.get(pk=token.pk).last_used_at)
    assert None is not used[0] == used[1]
    assert [tokens.revoke(token, by=actors.SYSTEM) for _ in range(2)] == [True, False]
    assert Event.objects.filter(subject=token.subject, kind="token.revoked").count() == 1


def run_command(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("token", *arguments, stdout=out, stderr=err)
    return out.getvalue().strip(), err.getvalue()


def test_the_command_prints_a_persons_token_and_nothing_else_to_be_piped_or_says_what_is_missing() -> None:
    by = ann(make_team())
    sent, told = run_command(by.username, "--scope", "runs:read")
    assert tokens.find_token(sent) is not None
    assert "shown this once" in told
    for arguments, missing in ((["nobody-of-that-name", "--scope", "runs:read"], "--owner"), ([by.username], "scopes")):
        with pytest.raises(CommandError, match=missing):
            run_command(*arguments)


def test_the_command_makes_one_for_an_agent_and_warns_where_nobody_besides_its_owner_may_decide() -> None:
    team = make_team(may=MEMBER)
    make_policy(team, name="payouts")
    asked = ("payouts", "--owner", ann(team).username, "--team", team.name, "--policy", "payouts")
    sent, told = run_command(*asked)
    made = tokens.find_token(sent)
    assert made is not None
    assert (made.agent, made.team, made.policy) == ("payouts", team, "payouts")
    assert sorted(made.scopes) == sorted(map(str, FOR_AGENTS))
    assert not {*map(str, FOR_AGENTS)} & {*map(str, FOR_PEOPLE)}
    assert told.count("Nobody may decide") == 1
    assert f"Nobody may decide in {team.name} now besides Ann Okafor, and 1 must agree" in told
    bob(team)
    assert "may decide" not in run_command(*asked)[1]


@pytest.mark.parametrize("document", ["README.md", "docs/api.md", "clients/python/README.md"])
def test_what_the_documents_ask_for_can_be_approved_by_the_people_of_the_demo(document: str) -> None:
    """They had ann answer for the token, who alone decides in her team: nobody could approve what it asked."""
    seed.make_people("a password of this test")
    seed.make_policies()
    [typed] = re.findall(r"manage\.py token (\S+ [^`\n]*--owner [^`\n]*)", (ROOT / document).read_text())
    sent, told = run_command(*shlex.split(typed))
    assert tokens.find_token(sent) is not None
    assert "may decide" not in told
