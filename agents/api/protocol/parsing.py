"""Bodies of requests, read as strictly as everything else from outside: no key twice, no NaN, numbers as they are."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser

from checkpoints.values.canonical_json import parse

from .body_sizes import JSON, NotJson


class ExactParser(Parser):
    """JSON by the rules of saved values."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Raises ValueRefused and NotJson."""
        if request.content_type != JSON:
            raise NotJson
        return parse(request.body or b"null")
