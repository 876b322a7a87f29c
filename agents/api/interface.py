"""The API as one: its routers, authentication, error handlers and description."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.errors import Throttled, ValidationError, ValidationErrorContext
from ninja.openapi.schema import REF_TEMPLATE, OpenAPISchema
from ninja.operation import Operation
from ninja.parser import Parser

from agents.api import agents, device, events, threads, webhooks
from agents.api.gates import decisions, desk, form_data, outcomes, previews, questions
from agents.api.programs import posted_gates, work
from agents.api.protocol import answers, limits, problems
from agents.api.protocol.auth import Bearer, session
from agents.api.protocol.problems import JSON, NotJson
from agents.api.runs import checkpoints, moves, runs, waits
from checkpoints.values.canonical_json import parse_json

DESCRIPTION = (
    "What Holdpoint's pages show, as JSON: runs, their checkpoints, gates, agents and events. Orders to a run: rewind "
    "it, edit\nits state, fork it, undo what it left behind. Decisions at gates. Webhooks that report to an address of "
    "yours what\nbecomes of gates.\n\nSend a token as `Authorization: Bearer hp_…`; each operation names the scope "
    "that it needs. Or sign in on the pages and\nsend the session's cookie; requests that write also send the "
    "session's CSRF token as X-CSRFToken. A token sees what its\nowner sees on the pages, within its limits: the runs "
    "of their teams, and the gates of their teams or that they review.\nAnything else gets 404, as if it did not "
    "exist. Lists continue by cursor.\n"
)
SCHEMES = {
    "token": {
        "type": "http", "scheme": "bearer",
        "description": "Your own token, or one made for an agent. Its scopes say what it may be used for.",
    },
    "session": {
        "type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME,
        "description": "The session of somebody who signed in on the pages; requests that write also send X-CSRFToken.",
    },
}  # fmt: skip
Shape = Mapping[str, Any]
LEFT_OUT: tuple[Any, ...] = (None, "", [], {})  # of an example, where the shape does not require it


class ExactParser(Parser):
    """A JSON parser by the rules of saved values: no key twice, no NaN, numbers as they are."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Parse the body. Raises ValueRefused and NotJson."""
        if request.content_type != JSON:
            raise NotJson
        return parse_json(request.body or b"null")


class Interface(NinjaAPI):
    """NinjaAPI whose description also has the problem documents, the scopes and the examples."""

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        document = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        own = problems.ProblemDetails.model_json_schema(ref_template=REF_TEMPLATE)
        document["components"]["schemas"] |= own.pop("$defs", {}) | {"ProblemDetails": own}
        ways = dict(self._ways())
        document["components"]["securitySchemes"] = SCHEMES
        for operations in document["paths"].values():
            for method, operation in operations.items():
                operation["security"] = ways[operation["operationId"]]
                values = problems.ANSWERED | (problems.ORDERED if method == "post" else {})
                operation["responses"] |= {str(status): _refusal(status, words) for status, words in values.items()}
                operation["responses"]["429"]["headers"] = limits.HEADERS
                if method == "get":
                    _named(operation)
                for parameter in operation["parameters"]:
                    if "examples" in parameter:  # ninja writes a list, where OpenAPI has a map
                        parameter["example"] = parameter.pop("examples")[0]
                _add_examples(operation, document["components"]["schemas"])
        return document

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """Return the name of the view function."""
        return operation.view_func.__name__

    def validation_error_from_error_contexts(
        self, error_contexts: list[ValidationErrorContext[Any]]
    ) -> ValidationError:
        """Return the faults, each with its place; so many that listing them would take minutes become one."""
        number = sum(context.pydantic_validation_error.error_count() for context in error_contexts)
        if number > problems.COUNTED:
            words = f"has {number:,} faults, too many to list; begin with what the description asks for"
            return ValidationError([{"loc": (error_contexts[0].model.__ninja_param_source__, ""), "msg": words}])
        return super().validation_error_from_error_contexts(error_contexts)

    def on_exception(self, request: HttpRequest, exc: Exception | type[Exception]) -> HttpResponse:
        """Answer the error, then clear its frames, which hold the request and the error itself.

        Such a cycle lives until the collector looks at old objects, and a refused body may have left megabytes in it.
        """
        try:
            return super().on_exception(request, exc)
        finally:
            if isinstance(exc, Exception):
                traceback.clear_frames(exc.__traceback__)

    def _ways(self) -> Iterator[tuple[str, list[dict[str, list[str]]]]]:
        """Yield (operation's id, the ways to be let in: with the scope that a token needs for it)."""
        for router in self._get_bound_routers():
            for view in router.path_operations.values():
                for operation in view.operations:
                    ways: list[dict[str, list[str]]] = [
                        {"token": [str(way.scope)] if way.scope else []} if isinstance(way, Bearer) else {"session": []}
                        for way in operation.auth_callbacks
                    ]
                    yield operation.view_func.__name__, ways or [{}]


def _refusal(status: int, detail: str) -> dict[str, Any]:
    schema = {"$ref": REF_TEMPLATE.format(model="ProblemDetails")}
    title = HTTPStatus(status).phrase
    example = problems.ProblemDetails(title=title, status=status, detail=detail, instance="/api/runs/7")
    content = {"schema": schema, "example": example.model_dump(mode="json")}
    return {"description": detail, "content": {problems.MEDIA_TYPE: content}}


def _named(operation: dict[str, Any]) -> None:
    """Describe the ETag of an answer in JSON; streams have none."""
    found = operation["responses"].get(200, {})
    if any("json" in media for media in found.get("content", {})):
        operation["parameters"].append(answers.IF_NONE_MATCH)
        found["headers"] = {"ETag": answers.ETAG}
        operation["responses"]["304"] = answers.UNCHANGED


def _add_examples(operation: dict[str, Any], shapes: Mapping[str, Shape]) -> None:
    """Give each body and each answer of an operation an example."""
    for holder in (operation.get("requestBody", {}), *operation["responses"].values()):
        for media in holder.get("content", {}).values():
            if "example" not in media and media["schema"].keys() != {"type"}:
                media["example"] = example_of(media["schema"], shapes)


def example_of(shape: Shape, shapes: Mapping[str, Shape]) -> Any:
    """Return a shape's first example; for an object without one, its members' examples without empty optional ones."""
    if "$ref" in shape:
        return example_of(shapes[shape["$ref"].rpartition("/")[2]], shapes)
    if "examples" in shape:
        return shape["examples"][0]
    if "anyOf" in shape:
        return example_of(shape["anyOf"][0], shapes)
    if shape.get("type") == "array":
        return [example_of(shape["items"], shapes)]
    values = {name: example_of(part, shapes) for name, part in shape.get("properties", {}).items()}
    required = shape.get("required", ())
    return {name: value for name, value in values.items() if value not in LEFT_OUT or name in required}


api = Interface(
    title="Holdpoint", version="1", description=DESCRIPTION, urls_namespace="api", auth=session, parser=ExactParser(),
    throttle=limits.Throttle(), docs_decorator=require_safe,
    docs_url=None,  # ninja's page would load its scripts from elsewhere
)  # fmt: skip
ROUTERS = {
    "/runs": [
        runs.router, work.router, checkpoints.router, runs.effects, checkpoints.comparisons, previews.runs,
        moves.router, waits.router, checkpoints.names,
    ],
    "/gates": [
        posted_gates.router, outcomes.router, previews.router, decisions.router, outcomes.receipts,
        posted_gates.own_gates, questions.router, desk.router, form_data.router,
    ],
    "/agents": [agents.router], "/tools": [agents.tools], "/device": [device.router], "/threads": [threads.router],
    "/events": [events.router], "/webhooks": [webhooks.router],
}  # fmt: skip
for prefix, routers in ROUTERS.items():
    for router in routers:
        api.add_router(prefix, router)

for refusal, answered_by in (problems.REFUSALS | {Throttled: limits.answer_too_many}).items():
    api.add_exception_handler(refusal, answered_by)
