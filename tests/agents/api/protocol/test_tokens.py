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
EACH = [(path, method, told["operationId"]) for path, method, told in operations() if "/device/" not in path]


def scope_of(operation: str) -> str | None:
    """The scope that the description says a token needs."""
    told = next(told for _, _, told in operations() if told["operationId"] == operation)
    return next((way["token"][0] for way in told["security"] if "token" in way), None)


def send(sent: str, path: str, method: str, of: Any = None) -> Any:
    """Ask for it as whoever has the token."""
    client = bearing(sent)
    if method == "get":
        return client.get(address(path, of))
    return client.post(address(path, of), example(path), content_type="application/json")


@pytest.mark.parametrize(("path", "method", "operation"), EACH)
def test_it_opens_what_its_scope_names_and_nothing_else(path: str, method: str, operation: str) -> None:
    owner, needed = ann(gate().team), scope_of(operation)
    assert needed in TokenScope.values
    _, sent = make_token(owner, *(scope for scope in TokenScope.values if scope != needed))
    told = refusal(send(sent, path, method), 403)
    assert str(needed) in told["detail"]
    _, opens = make_token(owner, str(needed))
    answer = send(opens, path, method)
    assert answer.status_code != 401
    assert "Use a token that has that scope" not in answer.content.decode()


@pytest.mark.parametrize(("path", "method", "operation"), EACH)
@pytest.mark.parametrize("spoilt", ["expired", "revoked", "switched off", "unknown", "no token"])
def test_a_token_that_opens_nothing_is_told_so(path: str, method: str, operation: str, spoilt: str) -> None:
    owner = ann(gate().team)
    token, sent = make_token(owner)
    if spoilt == "expired":
        past = timezone.now() - timedelta(days=2)
        Token.objects.filter(pk=token.pk).update(created_at=past, expires_at=past + timedelta(days=1))
    elif spoilt == "revoked":
        assert tokens.revoke(token, by=actors.SYSTEM)
    elif spoilt == "switched off":
        owner.is_active = False
        owner.save()
    else:
        sent = {"unknown": sent[:-1] + ("A" if sent[-1] != "A" else "B"), "no token": "\x7f\xff"}[spoilt]
    told = refusal(send(sent, path, method), 401)
    assert "/tokens/" in told["detail"]


@pytest.mark.parametrize(("path", "method", "operation"), EACH)
def test_a_token_for_another_team_finds_nothing(path: str, method: str, operation: str) -> None:
    """Its owner is in both teams: the token still reaches only one."""
    other = make_team(may=MEMBER)
    _, sent = make_token(ann(gate().team, other), team=other)
    answer = send(sent, path, method)
    if method == "post" and path in STARTS:
        assert not Run.objects.filter(team=gate().team, started_by__groups=other).exists()
    elif "{" in path:
        refusal(answer, 404)
    elif method == "get":
        assert gate().run.plan.agent not in answer.content.decode()
        assert gate().title not in answer.content.decode()


@pytest.mark.parametrize(("path", "method", "operation"), EACH)
def test_an_agents_token_finds_nothing_of_another_agent(path: str, method: str, operation: str) -> None:
    owner = make_user("Ann Okafor", gate().team, may=MEMBER)
    _, sent = make_token(owner, team=gate().team, agent="somebody-else")
    answer = send(sent, path, method)
    if scope_of(operation) not in FOR_AGENTS or (method == "post" and path in STARTS) or path in THREADS:
        refusal(answer, 403)
    elif "{" in path:
        refusal(answer, 404)
    elif method == "get":
        assert gate().run.plan.agent not in answer.content.decode()
        assert gate().title not in answer.content.decode()


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


class TestDeciding:
    """An agent never decides; a person's token decides what the person may."""

    def decide(self, sent: str, asked: Any, **more: Any) -> Any:
        seen = bytes(asked.standing().digest).hex()
        return bearing(sent).post(
            f"/api/gates/{asked.pk}/decisions", {"seen": seen, "verdict": "approve", **more},
            content_type="application/json",
        )  # fmt: skip

    def test_an_agents_token_is_refused_however_it_came_by(self) -> None:
        team = make_team(may=MEMBER)
        asked, owner = make_gate(team=team), ann(team)
        with pytest.raises(TokenRefused, match="only people decide"):
            make_token(owner, "gates:decide", team=team, agent=asked.run.plan.agent)
        token, sent = make_token(owner, team=team, agent=asked.run.plan.agent)
        refusal(self.decide(sent, asked), 403)
        with pytest.raises(IntegrityError, match="token_of_an_agent_never_decides"), transaction.atomic():
            Token.objects.filter(pk=token.pk).update(scopes=[*token.scopes, "gates:decide"])
        page = bearing(sent).post(f"/gates/{asked.pk}/decisions/", {"verdict": "approve"})
        assert page.status_code == 302  # to the sign-in: the pages know no tokens
        assert not Decision.objects.filter(gate=asked).exists()

    def test_a_persons_token_decides_as_that_person(self) -> None:
        team = make_team(may=MEMBER)
        asked, by = make_gate(team=team), ann(team)
        _, sent = make_token(by, "gates:decide")
        assert self.decide(sent, asked).status_code == 201
        assert Decision.objects.get(gate=asked).user == by

    def test_what_the_person_may_not_the_token_may_not(self) -> None:
        team = make_team(may=READER)
        asked, by = make_gate(team=team), bob(team)
        _, sent = make_token(by, "gates:decide")
        assert "with the permission “decide at the gates" in refusal(self.decide(sent, asked), 403)["detail"]

    def test_who_owns_the_token_that_started_the_run_may_not_approve(self) -> None:
        team = make_team(may=MEMBER)
        by = ann(team)
        asked = make_gate(run=make_run(team=team, started_by=by))
        _, sent = make_token(by, "gates:decide")
        assert "started this run" in refusal(self.decide(sent, asked), 403)["detail"]


class TestIssuing:
    """What is kept, what is refused, what is told."""

    def test_only_its_digest_is_kept(self) -> None:
        token, sent = make_token(ann(make_team()))
        row = Token.objects.filter(pk=token.pk).values().get()
        assert bytes(row["digest"]) == digest_of(sent)
        assert sent[8:] not in str({**row, "digest": bytes(row["digest"])})
        told = Event.objects.get(subject=token.subject)
        assert (told.kind, sent[8:] in bytes(told.data).decode()) == ("token.created", False)

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"scopes": ()}, "needs scopes"),
            ({"scopes": ("runs:everything",)}, "no scopes runs:everything"),
            ({"name": " "}, "needs a name"),
            ({"lasts": timedelta(days=900)}, "366 days"),
            ({"lasts": timedelta(0)}, "366 days"),
            ({"agent": "robo", "team": None}, "needs a team"),
            ({"agent": "ro bo"}, "plain letters"),
            ({"agent": "robo", "policy": "nothing-such"}, "has no policy nothing-such"),
            ({"policy": "default"}, "Only an agent's token"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, wrong: dict[str, Any], said: str) -> None:
        team = make_team(may=MEMBER)
        right: dict[str, Any] = {
            "name": "x",
            "scopes": ("runs:read",),
            "lasts": timedelta(days=1),
            "team": team,
            **wrong,
        }
        with pytest.raises(TokenRefused, match=said):
            tokens.issue(owner=ann(team), by=actors.SYSTEM, **{**right, **wrong})
        assert not Token.objects.filter(team=team).exists()

    def test_an_agents_token_wants_an_owner_who_may_start_runs_there(self) -> None:
        team = make_team(may=READER)
        with pytest.raises(TokenRefused, match="may start runs"):
            make_token(bob(team), team=team, agent="robo")

    def test_it_is_revoked_once(self) -> None:
        token, _ = make_token(ann(make_team()))
        assert tokens.revoke(token, by=actors.SYSTEM)
        assert not tokens.revoke(token, by=actors.SYSTEM)
        assert Event.objects.filter(subject=token.subject, kind="token.revoked").count() == 1

    def test_that_it_was_used_is_kept(self) -> None:
        token, sent = make_token(ann(make_team()), "runs:read")
        assert bearing(sent).get("/api/runs").status_code == 200
        first = Token.objects.get(pk=token.pk).last_used_at
        assert first is not None
        assert bearing(sent).get("/api/runs").status_code == 200
        assert Token.objects.get(pk=token.pk).last_used_at == first


class TestCommand:
    """`manage.py token`."""

    def run(self, *arguments: str) -> tuple[str, str]:
        out, err = StringIO(), StringIO()
        call_command("token", *arguments, stdout=out, stderr=err)
        return out.getvalue().strip(), err.getvalue()

    def test_it_prints_a_persons_token_and_nothing_else_to_be_piped(self) -> None:
        by = ann(make_team())
        sent, told = self.run(by.username, "--scope", "runs:read")
        assert tokens.find_token(sent) is not None
        assert "shown this once" in told

    def test_it_makes_one_for_an_agent_that_somebody_answers_for(self) -> None:
        team = make_team(may=MEMBER)
        make_policy(team, name="payouts")
        sent, _ = self.run("payouts", "--owner", ann(team).username, "--team", team.name, "--policy", "payouts")
        made = tokens.find_token(sent)
        assert made is not None
        assert made.policy == "payouts"
        assert (made.agent, made.team, sorted(made.scopes)) == ("payouts", team, sorted(map(str, FOR_AGENTS)))

    def test_it_warns_where_nobody_besides_its_owner_may_decide_what_it_asks(self) -> None:
        team = make_team(may=MEMBER)
        make_policy(team, name="default")
        _, told = self.run("teller", "--owner", ann(team).username, "--team", team.name)
        assert told.count("Nobody may decide") == 1
        assert f"Nobody may decide in {team.name} now besides Ann Okafor, and 1 must agree" in told
        bob(team)
        _, told = self.run("teller", "--owner", ann(team).username, "--team", team.name)
        assert "may decide" not in told

    @pytest.mark.parametrize("document", ["README.md", "docs/api.md", "clients/python/README.md"])
    def test_what_the_documents_ask_for_can_be_approved_by_the_people_of_the_demo(self, document: str) -> None:
        """They had ann answer for the token, who alone decides in her team: nobody could approve what it asked."""
        seed.make_people("a password of this test")
        seed.make_policies()
        typed = re.findall(r"manage\.py token (\S+ [^`\n]*--owner [^`\n]*)", (ROOT / document).read_text())
        assert len(typed) == 1
        sent, told = self.run(*shlex.split(typed[0]))
        assert tokens.find_token(sent) is not None
        assert "may decide" not in told

    def test_it_says_what_is_missing(self) -> None:
        with pytest.raises(CommandError, match="--owner"):
            self.run("nobody-of-that-name", "--scope", "runs:read")
        with pytest.raises(CommandError, match="needs scopes"):
            self.run(ann(make_team()).username)
        assert all(str(scope) not in map(str, FOR_AGENTS) for scope in FOR_PEOPLE)


def test_a_run_of_an_agent_that_the_token_is_not_for_is_not_there() -> None:
    team = make_team(may=MEMBER)
    run = make_run(team=team)
    _, sent = make_token(ann(team), team=team, agent="this-agent-of-tokens")
    refusal(bearing(sent).get(f"/api/runs/{run.pk}"), 404)
