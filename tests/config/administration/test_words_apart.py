"""No sentence of the administration runs into the next: what stands in one line has a space between its words."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from bs4 import BeautifulSoup
from bs4.element import Tag
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.urls import reverse

from approvals.models import Calendar, Policy, Tool, Webhook
from approvals.policy_changes import changes
from checkpoints.models import Hold, RetentionPolicy
from tests.checkpoints.retention.pruned_runs import ended, keep, looked, pruned
from tests.factories import decide, make_gate, make_policy, make_team, make_user
from tests.harness.signed_in_clients import confirmed

INLINE = {"a", "span", "b", "strong", "em", "code", "i", "small", "time", "label"}
TOGETHER = re.compile(r"[a-z)”][.!?:;,][A-Z“]\w|[a-z][A-Z][a-z]|[a-z][0-9]+[A-Z]|[a-z]{2}\(|\)[A-Za-z]")


ADDED = (User, Group, Policy, Calendar, Tool, RetentionPolicy, Hold, Webhook)  # whose rows people add by a form


def lines(page: str) -> Iterator[str]:
    """Yield the words that are drawn in one line, as they are drawn."""
    found = BeautifulSoup(page, "html.parser").select_one("#content, body")
    assert found is not None
    for gone in found.select("script, style, svg, .visually-hidden, template, option, input, textarea"):
        gone.decompose()
    for line in _parts(found).split("\n"):
        if line.strip():
            yield " ".join(line.split())


def _parts(element: Tag) -> str:
    inner = "".join(
        _parts(each) if isinstance(each, Tag) else re.sub(r"\s+", " ", str(each)) for each in element.children
    )
    return inner if element.name in INLINE else f"\n{inner}\n"


def run_together(page: str) -> list[str]:
    return [line for line in lines(page) if TOGETHER.search(re.sub(r"“\w+”|\b(hp|whsec)_\S+", "", line))]


def test_words_that_run_together_are_found() -> None:
    assert run_together("<body><p><b>Deleted.</b>What <a>stays</a></p></body>") == ["Deleted.What stays"]
    assert run_together("<body><p>Deleted.</p><p>What <b>stays</b>: all.</p></body>") == []


@pytest.mark.whole_database
def test_no_words_of_the_administration_run_together() -> None:
    rows_of_other_tests = {
        model: set(model._default_manager.values_list("pk", flat=True)) for model in admin.site._registry
    }
    root, team = confirmed(make_user("Root", superuser=True)), make_team()
    policy = make_policy(team, quorum=2)
    decide(make_gate(policy=policy), make_user("Ann", team))
    milder = Policy(team=team, name=policy.name)
    changes.save(milder, groups=(), people=(), by=make_user("Will", superuser=True))
    run, held = ended(30), ended(30)
    keep(run, keep_last=10)
    keep(held, keep_last=10)
    root.post(reverse("admin:checkpoints_hold_add"), {"run_number": held.pk, "reason": "All of it"})
    pruned()
    looked()
    found = dict[str, list[str]]()
    for model in admin.site._registry:
        base = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        addresses = [reverse(f"{base}_changelist")]
        addresses += [reverse(f"{base}_add")] if model in ADDED else []
        for row in model._default_manager.exclude(pk__in=rows_of_other_tests[model]).order_by("-pk")[:2]:
            addresses += [reverse(f"{base}_{what}", args=[row.pk]) for what in ("change", "history")]
        pages = ((address, root.get(address, follow=True)) for address in addresses)
        found |= {address: wrong for address, page in pages if (wrong := run_together(page.content.decode()))}
    assert found == {}
