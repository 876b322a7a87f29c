"""A web process loads everything before its first request, and keeps it out of garbage collections."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from config import asgi


def test_all_pages_are_loaded_and_garbage_collected_before_the_rest_is_exempt(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Resolver:
        @property
        def url_patterns(self) -> list[object]:
            done.append("load")
            return []

    collector = SimpleNamespace(collect=lambda: done.append("collect"), freeze=lambda: done.append("freeze"))
    monkeypatch.setattr(asgi, "get_resolver", Resolver)
    monkeypatch.setattr(asgi, "gc", collector)
    asgi.load_all()
    assert done == ["load", "collect", "freeze"]
