"""Tools are registered in the administration: each save is a version, and what cannot work is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from approvals import tools
from approvals.models import Policy, Tool
from checkpoints.models import Event
from checkpoints.values import digests
from tests.config.administration.forms import saved_unchanged, standing
from tests.factories import MEMBER, make_policy, make_team, make_user
from tests.harness.signed_in_clients import confirmed, signed_in

from .registered_tools import WIRE, make_tool

ADD = "admin:approvals_tool_add"


@pytest.fixture(scope="module")
def root() -> Client:
    return confirmed(make_user("Root", superuser=True))


@pytest.fixture
def team() -> Group:
    return make_team(may=MEMBER)


def form(team: Group, **said: Any) -> dict[str, Any]:
    plain = {"type": "object", "properties": {"to": {"type": "string"}, "amount": {"type": "string"}}}
    return {
        "team": team.pk, "name": "bank.wire", "title": "Wire money", "schema": json.dumps(plain), "risk": "high",
        "labels": "/to: Recipient\n/amount: Amount (EUR)", "pinned": "/amount\n/to", "used": "on", "undo": "", **said,
    }  # fmt: skip


def address(tool: Tool) -> str:
    return reverse("admin:approvals_tool_change", args=[tool.pk])


def faults(answer: Any) -> str:
    assert answer.status_code == 200
    return " ".join(str(answer.context["adminform"].form.errors).split())


def test_a_tool_is_registered_with_its_labels_and_pins(root: Client, team: Group) -> None:
    assert root.post(reverse(ADD), form(team)).status_code == 302
    tool = Tool.objects.get(team=team)
    assert (tool.version, tool.pinned, tool.risk) == (1, ["/amount", "/to"], "high")
    assert tool.schema == {
        "type": "object",
        "properties": {
            "to": {"type": "string", "title": "Recipient"},
            "amount": {"type": "string", "title": "Amount (EUR)"},
        },
        "additionalProperties": False,
    }
    event = Event.objects.get(kind="tool.changed", team_id=team.pk)
    told = json.loads(bytes(event.data))
    assert (event.version, told["name"], told["risk"]) == (1, "bank.wire", "high")
    assert told["schema"] == digests.of_value(tool.schema).hex()


def test_a_change_is_the_next_version_and_the_first_is_only_read(root: Client, team: Group) -> None:
    first = make_tool(team)
    sent = standing(root.get(address(first)).content.decode()) | {"title": "Send money"}
    assert root.post(address(first), sent).status_code == 302
    second = Tool.objects.get(team=team, version=2)
    assert (second.title, second.schema, second.pinned) == ("Send money", first.schema, first.pinned)
    assert Tool.objects.get(pk=first.pk).title == "Wire money"
    assert "This is version 1" in root.get(address(first), follow=True).content.decode()
    assert "Version 2 was written since" in root.post(address(first), sent).content.decode()
    assert Tool.objects.filter(team=team).count() == 2


def test_one_that_is_saved_unchanged_says_the_same(root: Client, team: Group) -> None:
    nested = {
        **WIRE,
        "properties": {**WIRE["properties"], "lines": {"type": "array", "items": {"type": "object", "properties": {
            "price": {"type": "string", "title": "Price"}}}}},
    }  # fmt: skip
    old = make_tool(team, schema=tools.closed(nested), undo="bank.cancel")
    saved_unchanged(root, address(old))
    new = Tool.objects.get(team=team, version=2)
    columns = [f.name for f in Tool._meta.concrete_fields if f.name not in ("id", "version", "created_at")]
    assert {name: getattr(new, name) for name in columns} == {name: getattr(old, name) for name in columns}


def test_an_argument_named_as_a_keyword_is_closed_like_any_other() -> None:
    """One called `default` was taken for a default value, and left open."""
    inner = {"type": "object", "properties": {"to": {"type": "string"}}}
    made = tools.closed({"type": "object", "properties": {"default": inner}, "default": {"default": inner}})
    assert made["properties"]["default"] == {**inner, "additionalProperties": False}
    assert made["default"] == {"default": inner}


@pytest.mark.parametrize(
    ("said", "field", "words"),
    [
        ({"schema": "{"}, "schema", "Write JSON"),
        ({"schema": '{"type": "object", "type": "array"}'}, "schema", "twice"),
        ({"schema": '{"type": "array"}'}, "schema", "Arguments are an object"),
        ({"schema": '{"type": "object", "properties": {"a": {"type": 7}}}'}, "schema", "cannot be used"),
        ({"schema": '{"type": "object", "properties": {"a": {"$ref": "https://evil.example/x"}}}'}, "schema", "refer"),
        ({"schema": json.dumps({"type": "object", "properties": {f"a{n}": {} for n in range(201)}})}, "schema", "200"),
        ({"schema": json.dumps({"type": "object", "properties": {"to": {"title": "x" * 70_000}}})}, "schema", "64"),
        ({"labels": "/nothing: Nothing"}, "labels", "no argument /nothing"),
        ({"labels": "Recipient"}, "labels", "a colon"),
        ({"pinned": "/nothing"}, "pinned", "no argument /nothing"),
        ({"pinned": "amount"}, "pinned", "no argument amount"),
        ({"irreversible": "on", "undo": "bank.cancel"}, "undo", "cannot be undone"),
        ({"name": "b\u0430nk.wire"}, "name", "plain letters"),
        ({"risk": "none"}, "risk", "valid"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused(root: Client, team: Group, said: dict[str, Any], field: str, words: str) -> None:
    answer = root.post(reverse(ADD), form(team, **said))
    assert words in faults(answer)
    assert field in answer.context["adminform"].form.errors
    assert not Tool.objects.filter(team=team).exists()


def test_only_whom_the_administration_lets_registers_tools(team: Group) -> None:
    tool = make_tool(team)
    assert signed_in(make_user("Ann", team, may=("approvals.decide_gate",))).get(address(tool)).status_code == 302
    staff = make_user("Sam Staff", may=("approvals.view_tool",))
    staff.is_staff = True
    staff.save()
    client = confirmed(staff)
    assert client.get(address(tool)).status_code == 200
    assert client.post(address(tool), form(team)).status_code == 403
    assert client.get(reverse(ADD)).status_code == 403
    assert confirmed(make_user("Rut", superuser=True)).post(
        reverse("admin:approvals_tool_delete", args=[tool.pk]), {"post": "yes"}
    ).status_code == 403  # fmt: skip
    assert Tool.objects.filter(team=team).count() == 1


def test_a_policy_demands_registered_tools_from_its_next_version_on(root: Client, team: Group) -> None:
    make_user("Rae", team, may=("approvals.decide_gate",))
    policy = make_policy(team)
    place = reverse("admin:approvals_policy_change", args=[policy.pk])
    sent = standing(root.get(place).content.decode()) | {"registered_only": "on"}
    assert root.post(place, sent).status_code == 302
    newest = Policy.objects.named(policy.name, team=team)
    assert (newest.version, newest.registered_only) == (2, True)
    assert json.loads(bytes(Event.objects.get(kind="policy.changed", team_id=team.pk).data))["registered_only"] is True


def test_the_list_says_what_counts(root: Client, team: Group) -> None:
    make_tool(team)
    page = root.get(reverse("admin:approvals_tool_changelist") + f"?team__id__exact={team.pk}").content.decode()
    assert "bank.wire" in page
    assert "/amount, /to" in page
