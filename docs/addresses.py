"""Writes docs/addresses.md, every address of the HTTP API, from its description; `make generated` runs it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Addresses of the HTTP API

Every address, as `GET /api/openapi.json` describes it, with the scope that a token needs. [The HTTP API](api.md) says
how they go together. `make generated` writes this page.
"""


def page(description: Mapping[str, Any]) -> str:
    """Return the whole page: a table for each group of addresses in the API's description."""
    operations = [
        (f"{method.upper()} {path}", operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    parts = [HEAD]
    for tag in dict.fromkeys(operation["tags"][0] for _, operation in operations):
        parts.append(f"\n## {tag.capitalize()}\n\n| address | does | scope |\n|---|---|---|\n")
        for address, operation in operations:
            if operation["tags"][0] == tag:
                words = " ".join(operation["description"].split())
                parts.append(f"| `{address}{_query(operation)}` | {words} | {_scopes(operation)} |\n")
    return "".join(parts)


def _query(operation: Mapping[str, Any]) -> str:
    names = [parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "query"]
    return "?" + "&".join(f"{name}=" for name in names) if names else ""


def _scopes(operation: Mapping[str, Any]) -> str:
    scopes = chain.from_iterable(way.get("token", ()) for way in operation["security"])
    return ", ".join(f"`{scope}`" for scope in scopes) or "none"


if __name__ == "__main__":
    import django

    os.environ["DJANGO_SETTINGS_MODULE"] = "config.checking"
    django.setup()
    from agents.api.interface import api

    PAGE.write_text(page(api.get_openapi_schema(path_prefix="/api/")))
