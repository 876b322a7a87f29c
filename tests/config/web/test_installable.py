"""The manifest, the service worker's start and the page for no connection, as the server sends them to anybody."""

from __future__ import annotations

import io
import json
import re

import pytest
from django.core.management import call_command
from django.test import Client

from config.environment import EnvironmentReader
from config.local.__main__ import vapid_key
from tests.factories import ann, make_team
from tests.harness.signed_in_clients import signed_in

PATHS = ("/manifest.webmanifest", "/service-worker.js", "/offline/")


@pytest.mark.parametrize("path", PATHS)
def test_each_is_the_same_for_everybody_and_takes_nothing(path: str) -> None:
    user = ann(make_team())
    own, others = signed_in(user).get(path), Client().get(path)
    assert own.content == others.content
    assert user.username not in own.content.decode()
    assert Client().post(path).status_code == 405
    assert "worker-src 'self'" in others["Content-Security-Policy"]


def test_the_worker_rules_the_whole_site_and_is_asked_for_anew() -> None:
    answer = Client().get("/service-worker.js")
    assert answer["Content-Type"] == "text/javascript; charset=utf-8"
    assert answer["Cache-Control"] == "no-cache"
    source = answer.content.decode()
    release = json.loads(source.removeprefix("self.release = ").partition(";\n")[0])
    assert release["page"] == "/offline/"
    named = [*release["files"], release["icon"], release["badge"], *re.findall(r'importScripts\("([^"]+)"\)', source)]
    assert len(named) == 7
    assert all(re.search(r"^/static/.+\.[0-9a-f]{12}\.\w+$", each) for each in named), named


def test_the_page_for_no_connection_needs_only_what_is_kept() -> None:
    page = Client().get("/offline/").content.decode()
    source = Client().get("/service-worker.js").content.decode()
    needed = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    assert len(needed) == 4
    assert all(each in source for each in needed)
    assert "<form" not in page


def test_the_manifest_names_icons_that_are_there() -> None:
    told = json.loads(Client().get("/manifest.webmanifest").content)
    assert {icon["purpose"] for icon in told["icons"]} == {"any", "maskable"}
    assert {"192x192", "512x512"} <= {icon["sizes"] for icon in told["icons"]}


def test_a_key_that_the_command_makes_is_taken_and_junk_is_not() -> None:
    said = io.StringIO()
    call_command("vapid", stdout=said)
    name, _, key = said.getvalue().strip().partition("=")
    for good in (key, vapid_key("ab" * 32)):
        env = EnvironmentReader({name: good})
        assert env.vapid_key(name) == good
        assert env.complaints == []
    for junk in ("x", "A" * 43, "_" * 43, "é" * 43, "-----BEGIN EC PRIVATE KEY-----"):
        env = EnvironmentReader({name: junk})
        assert env.vapid_key(name) == ""
        assert "manage.py vapid" in env.complaints[0]
        assert len(junk) == 1 or junk not in env.complaints[0]
