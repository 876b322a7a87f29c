"""The OpenAPI document: it says of everything what it is, and what is served is what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from django.conf import settings
from django.test import Client
from ninja import Schema

from agents.api.interface import api
from agents.models.token import FOR_AGENTS, TokenScope
from docs.generated_pages import DOCS, write_addresses
from tests.agents.api.sent_requests import address, ask, document, looked_at, operations, paths, reader_of, takes_a_body
from tests.factories import ann, decide, make_gate, make_team


def schema(reference: dict[str, Any]) -> dict[str, Any]:
    """A schema of the document that jsonschema can follow."""
    return {**reference, "components": document()["components"]}


def properties() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every member of every shape, by "Shape.member"."""
    for name, shape in document()["components"]["schemas"].items():
        for member, told in shape["properties"].items():
            yield f"{name}.{member}", told


def test_it_is_served_to_anybody_and_kept_by_no_cache() -> None:
    answer = Client().get("/api/openapi.json")
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    assert answer["Content-Type"].startswith("application/json")
    assert answer.json() == document()
    assert answer.json()["openapi"].startswith("3.")


def test_no_page_of_documentation_is_served() -> None:
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


def test_every_shape_has_a_title_and_a_description() -> None:
    for name, shape in document()["components"]["schemas"].items():
        assert shape["title"], name
        assert shape["description"], name


def shapes(of: type[Schema] = Schema) -> Iterator[type[Schema]]:
    """Every shape of a body or an answer that the API has."""
    for shape in of.__subclasses__():
        yield from (shape, *shapes(shape))


def test_no_two_shapes_have_the_same_name() -> None:
    """What a verification finds was described as what a preflight finds: one replaced the other by its name."""
    ours = {shape for shape in shapes() if shape.__module__.startswith("agents.api.")}
    assert sorted(shape.__name__ for shape in ours) == sorted({shape.__name__ for shape in ours})


def test_every_address_has_a_title_a_description_and_an_id_that_a_client_can_be_made_from() -> None:
    for _, _, told in operations():
        assert told["summary"]
        assert len(told["description"]) > 15
        assert told["operationId"].isidentifier()
        assert told["security"]


def test_every_parameter_has_a_title_a_description_and_an_example_that_fits() -> None:
    for _, _, operation in operations():
        for told in operation["parameters"]:
            assert told["schema"]["title"], told
            assert told["description"], told
            jsonschema.validate(told["example"], told["schema"])


@pytest.mark.parametrize(("name", "told"), [pytest.param(*each, id=each[0]) for each in properties()])
def test_every_member_of_every_shape_has_a_description_and_an_example_that_fits(
    name: str, told: dict[str, Any]
) -> None:
    if "$ref" in str(told):
        return  # the shape that it names tells of itself
    assert told["description"]
    assert told["title"]
    assert told["examples"]
    for example in told["examples"]:
        jsonschema.validate(example, schema(told))


def test_every_body_and_every_answer_has_an_example_that_fits() -> None:
    shown = 0
    for _, _, operation in operations():
        for holder in (operation.get("requestBody", {}), *operation["responses"].values()):
            for media, told in holder.get("content", {}).items():
                if media != "text/event-stream":
                    jsonschema.validate(told["example"], schema(told["schema"]))
                    shown += holder is operation.get("requestBody")
    assert shown == sum(method == "post" and takes_a_body(path) for path, method, _ in operations())


@pytest.mark.parametrize("path", [path for path in looked_at() if not path.endswith("/stream")])  # see test_waiting.py
def test_every_answer_is_of_the_shape_that_is_described(path: str) -> None:
    member = reader_of(path)
    content = document()["paths"][path]["get"]["responses"]["200"]["content"]
    told = next(iter(content.values()))["schema"]
    found = ask(member, address(path))
    jsonschema.validate(found, schema(told))
    if "$ref" in told:
        shape = document()["components"]["schemas"][told["$ref"].rpartition("/")[2]]
        assert set(found) == set(shape["properties"])


def test_a_gate_that_ended_is_of_the_shape_that_is_described() -> None:
    closed = make_gate(team=make_team())
    member = ann(closed.team)
    decide(closed, member)
    found = ask(member, f"/api/gates/{closed.pk}")
    jsonschema.validate(found, schema({"$ref": "#/components/schemas/GateDetail"}))
    assert set(found["outcome"]) == set(document()["components"]["schemas"]["Ending"]["properties"])


def test_an_outcome_is_of_the_shape_that_is_described() -> None:
    """Its description left out the final arguments, the answer and the patch."""
    closed = make_gate(team=make_team())
    member = ann(closed.team)
    decide(closed, member)
    found = ask(member, f"/api/gates/{closed.pk}/outcome")
    jsonschema.validate(found, schema({"$ref": "#/components/schemas/OutcomeAnswer"}))
    whole = set(document()["components"]["schemas"]["Ending"]["properties"])
    assert set(found["outcome"]) == whole >= {"arguments", "answer", "patch"}


def enumerations(told: Any) -> Iterator[list[Any]]:
    """Every enumeration below."""
    if isinstance(told, dict):
        if isinstance(told.get("enum"), list):
            yield told["enum"]
        for part in told.values():
            yield from enumerations(part)
    for part in told if isinstance(told, list) else ():
        yield from enumerations(part)


def test_no_value_of_an_enumeration_is_empty() -> None:
    """A client that is made from the description has no name for one."""
    found = list(enumerations(document()))
    assert len(found) > 20
    assert not [each for each in found if "" in each]


def test_refusals_are_of_the_shape_that_is_described() -> None:
    for _, method, told in operations():
        for status in ("401", "404", "405", "409", "422", *(("400", "403") if method == "post" else ())):
            assert list(told["responses"][status]["content"]) == ["application/problem+json"]
    found = Client().get("/api/runs").json()
    jsonschema.validate(found, schema({"$ref": "#/components/schemas/ProblemDetails"}))
