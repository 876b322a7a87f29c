"""The OpenAPI document and docs/api.md: what is served is what they say; ETags among it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from django.conf import settings
from django.test import Client
from ninja import Schema

from agents.api.interface import api
from agents.models import Effect
from agents.models.token import FOR_AGENTS, TokenScope
from docs.generated_pages import DOCS, write_addresses
from tests.agents.api.sent_requests import (
    address,
    ask,
    check_shape,
    document,
    gate,
    operations,
    paths,
    reader_of,
    takes_a_body,
)
from tests.agents.api.test_doors import refusal
from tests.clients.world import World, ended
from tests.factories import ann, decide, make_gate, make_team
from tests.harness.signed_in_clients import signed_in
from tests.harness.waiting import PATIENCE

SHAPES = document()["components"]["schemas"]
STRONG = re.compile(r'"[0-9a-f]{32}"')
BY_NATURE = ("/impacts", "/heartbeats")  # nothing is written; the same again does the same
ANYBODY = "/device/"  # whoever asks has no name yet under which an answer could be kept


def schema(reference: dict[str, Any]) -> dict[str, Any]:
    """A schema of the document that jsonschema can follow."""
    return {**reference, "components": document()["components"]}


def check_members(found: Any, name: str) -> None:
    """Check that an answer is of the shape of this name, with each of its members."""
    check_shape(found, name)
    assert set(found) == set(SHAPES[name]["properties"])


def test_it_is_served_to_anybody_and_kept_by_no_cache_and_no_page_of_documentation_is() -> None:
    answer = Client().get("/api/openapi.json")
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    assert answer["Content-Type"].startswith("application/json")
    assert answer.json() == document()
    assert answer.json()["openapi"].startswith("3.")
    assert api.docs_url is None
    assert Client().get("/api/docs").status_code == 404


def test_the_page_of_addresses_names_every_one_and_is_as_it_would_be_generated() -> None:
    text = (DOCS / "addresses.md").read_text()
    assert set(re.findall(r"^\| `[A-Z]+ (/api/[^?`]+)", text, re.M)) == set(paths())
    assert text == write_addresses(document()), "run `make generated`"


def test_the_page_about_the_api_names_every_scope_and_no_address_that_is_not_there() -> None:
    text = (Path(settings.BASE_DIR) / "docs/api.md").read_text()
    scopes = dict(re.findall(r"^\| `(\w+:\w+)` \|.*\| (yes|no) \|$", text, re.M))
    assert scopes == {str(scope): "yes" if scope in FOR_AGENTS else "no" for scope in TokenScope}
    named = re.findall(r"/api/[\w/{}]*\w", text)
    assert [each for each in named if each != "/api/openapi" and not any(p.startswith(each) for p in paths())] == []


def shapes(of: type[Schema] = Schema) -> Iterator[type[Schema]]:
    for shape in of.__subclasses__():
        yield from (shape, *shapes(shape))


def test_no_two_shapes_have_the_same_name() -> None:
    """What a verification finds was described as what a preflight finds: one replaced the other by its name."""
    ours = {shape for shape in shapes() if shape.__module__.startswith("agents.api.")}
    assert sorted(shape.__name__ for shape in ours) == sorted({shape.__name__ for shape in ours})


def test_every_shape_and_every_member_has_a_title_a_description_and_an_example_that_fits() -> None:
    for name, shape in SHAPES.items():
        assert shape["title"], name
        assert shape["description"], name
        for member, told in shape["properties"].items():
            if "$ref" not in str(told):  # the shape that it names tells of itself
                assert told["description"], (name, member)
                assert told["title"], (name, member)
                assert told["examples"], (name, member)
                for example in told["examples"]:
                    jsonschema.validate(example, schema(told))


def test_every_address_says_what_it_does_and_who_may_and_what_it_takes_and_answers_with_examples_that_fit() -> None:
    shown = 0
    for path, method, told in operations():
        assert told["summary"]
        assert len(told["description"]) > 15
        assert told["operationId"].isidentifier()
        assert told["security"]
        for parameter in told["parameters"]:
            assert parameter["schema"]["title"], parameter
            assert parameter["description"], parameter
            jsonschema.validate(parameter["example"], parameter["schema"])
        for holder in (told.get("requestBody", {}), *told["responses"].values()):
            for media, content in holder.get("content", {}).items():
                if media != "text/event-stream":
                    jsonschema.validate(content["example"], schema(content["schema"]))
                    shown += holder is told.get("requestBody")
        posts = method == "post"
        for status in ("401", "404", "405", "409", "422", *(("400", "403", "413", "415") if posts else ())):
            assert list(told["responses"][status]["content"]) == ["application/problem+json"]
        assert "Retry-After" in told["responses"]["429"]["headers"]
        keyed = "Idempotency-Key" in {each["name"] for each in told["parameters"] if each["in"] == "header"}
        assert keyed == (posts and not path.endswith(BY_NATURE) and ANYBODY not in path), path
    assert shown == sum(method == "post" and takes_a_body(path) for path, method, _ in operations())
    check_shape(Client().get("/api/runs").json(), "ProblemDetails")


def test_every_answer_is_of_the_shape_that_is_described_and_named_for_whoever_has_it() -> None:
    reader = signed_in(reader_of("/api/webhooks"))
    for number, path in enumerate(path for path, method, _ in operations() if method == "get"):
        told = document()["paths"][path]["get"]
        streams = path.endswith("/stream")  # see test_waiting.py
        named = {status for status, answer in told["responses"].items() if "ETag" in answer.get("headers", {})}
        assert named == (set() if streams else {"200", "304"})
        assert ("If-None-Match" in {each["name"] for each in told["parameters"]}) is not streams
        first = reader.get(address(path))
        assert STRONG.fullmatch(first["ETag"])
        if number % 8 == 0:
            again = reader.get(address(path), headers={"If-None-Match": f'"other", {first["ETag"]}'})
            assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
            assert again["Cache-Control"] == "no-store"
            assert "Content-Type" not in again
        if not streams:
            [content] = told["responses"]["200"]["content"].values()
            jsonschema.validate(found := json.loads(first.content), schema(content["schema"]))
            if "$ref" in content["schema"]:
                check_members(found, content["schema"]["$ref"].rpartition("/")[2])


def test_a_gate_that_ended_is_of_the_shape_that_is_described_and_has_another_name() -> None:
    """An outcome's description left out the final arguments, the answer and the patch."""
    closed = make_gate(team=make_team())
    member = ann(closed.team)
    reader, path = signed_in(member), f"/api/gates/{closed.pk}"
    first = reader.get(path)["ETag"]
    decide(closed, member)
    again = reader.get(path, headers={"If-None-Match": first})
    assert (again.status_code, again["ETag"] != first) == (200, True)
    check_members(again.json(), "GateDetail")
    check_members(again.json()["outcome"], "Ending")
    outcome = ask(member, f"{path}/outcome")
    check_members(outcome, "OutcomeAnswer")
    assert set(outcome["outcome"]) == set(SHAPES["Ending"]["properties"]) >= {"arguments", "answer", "patch"}


def test_a_name_that_compression_weakened_still_counts_and_a_refusal_has_none() -> None:
    path = f"/api/gates/{gate().pk}"
    reader = signed_in(ann(gate().team))
    zipped = reader.get(path, headers={"Accept-Encoding": "gzip"})
    assert (zipped["Content-Encoding"], zipped["ETag"][:3]) == ("gzip", 'W/"')
    again = reader.get(path, headers={"Accept-Encoding": "gzip", "If-None-Match": zipped["ETag"]})
    assert (again.status_code, again["ETag"]) == (304, zipped["ETag"])
    head, plain = reader.head(path), reader.get(path)
    assert head["ETag"] == plain["ETag"]
    assert reader.head(path, headers={"If-None-Match": plain["ETag"]}).status_code == 304
    assert reader.get(path, headers={"If-None-Match": "*"}).status_code == 304
    for junk in ('"0"', "0", '"', ",", zipped["ETag"][:-2] + '"'):
        assert reader.get(path, headers={"If-None-Match": junk}).status_code == 200
    refused = Client().get(path, headers={"If-None-Match": plain["ETag"]})
    refusal(refused, 401)
    assert "ETag" not in refused


def test_no_value_of_an_enumeration_is_empty() -> None:
    """A client that is made from the description has no name for one."""
    found = re.findall(r'"enum": (\[.*?\])', json.dumps(document()))
    assert len(found) > 20
    assert not [each for each in found if "" in json.loads(each)]


TEXT = (Path(settings.BASE_DIR) / "docs/api.md").read_text()


def test_the_example_of_a_form_is_of_the_shape_that_is_described() -> None:
    (form,) = re.findall(r"^```json\n(.*?)^```", TEXT, re.M | re.S)
    check_members(json.loads(form), "GateFormData")


def started(world: World) -> subprocess.Popen[str]:
    (script,) = re.findall(r"^```sh\n(.*?)^```", TEXT, re.M | re.S)
    command = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.Popen(command, env=os.environ | world.env, text=True, stdout=subprocess.PIPE)


def test_the_short_example_does_what_people_left_of_it(web: str) -> None:
    world = World(web)
    with started(world) as shell:
        gate = world.decides("edit", arguments={"wire": {"to": "ACME Ltd", "amount": "100.00"}})
        said, _ = shell.communicate(timeout=PATIENCE)
    assert shell.returncode == 0
    row = Effect.objects.get(run=gate.run_id)
    assert f"{web}/gates/{gate.pk}/" in said
    assert f"Wiring 100.00 under the key {row.key}" in said
    assert (row.status, ended(gate.run_id)["wire_result"]) == ("done", {"id": "tx_1"})
