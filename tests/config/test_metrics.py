"""`/metrics` tells whoever may scrape how the installation does, and rules, board and docs name what it tells."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import psycopg
import pytest
import redis
import yaml
from django.db import connections
from django.test import Client
from django.utils import timezone
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from agents.definition import registry
from agents.models import SweeperPass
from approvals.live import consumer  # noqa: F401 - a web process has the tailer's
from approvals.models import ChannelState, Unrun
from checkpoints.actors import SYSTEM
from checkpoints.audit import sealer
from checkpoints.events import tailer
from checkpoints.models import Run
from checkpoints.models import run as models_run
from checkpoints.models.run import COUNTED
from checkpoints.runs import plans
from checkpoints.store import claims
from config import messages
from tests.factories import ann, decide, make_gate, make_policy, make_run, make_team
from tests.factories.runs import make_plan, make_spec
from tests.harness import horizon
from tests.harness.altered_rows import altered, owner
from tests.harness.examples import first_alone
from tests.harness.session import ROOT
from tests.harness.waiting import PATIENCE, until

FAR, TOKEN = "203.0.113.9", "a token of the scraper: q7Wd2-Zr9Lx4-Vb8Kt1"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: str) -> Samples:
    """What was told, by name and labels; read by the library's own parser."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped(client: Client | None = None) -> Samples:
    answer = (client or Client()).get("/metrics")
    assert answer.status_code == 200
    return read(answer.content.decode())


def value(name: str, found: Samples | None = None, /, **labels: str) -> float:
    return (scraped() if found is None else found)[name, frozenset(labels.items())]


@pytest.mark.parametrize(
    ("configured", "address", "headers", "status"),
    [
        ({}, "127.0.0.1", {}, 200),
        ({}, FAR, {}, 404),
        ({}, "127.0.0.1", {"X-Forwarded-For": FAR}, 404),
        ({"TOKEN": TOKEN}, FAR, BEARER, 200),
        ({"TOKEN": TOKEN}, FAR, {"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"TOKEN": TOKEN}, "127.0.0.1", {}, 401),
        ({"NETWORKS": ["203.0.113.0/24", "fd00::/8"]}, FAR, {}, 200),
        ({"NETWORKS": ["203.0.113.0/24", "fd00::/8"]}, "fd00::7", {}, 200),
        ({"NETWORKS": ["203.0.113.0/24"]}, "127.0.0.1", {}, 404),
        ({"NETWORKS": ["203.0.113.0/24"]}, FAR, {}, 200),
        ({"NETWORKS": ["203.0.113.0/24"]}, FAR, {"Host": "evil.example"}, 404),
        ({"NETWORKS": ["203.0.113.0/24"], "TOKEN": TOKEN}, FAR, BEARER | {"Host": "evil.example"}, 200),
        ({"NETWORKS": ["203.0.113.0/24"]}, FAR, {"X-Forwarded-For": "198.51.100.1"}, 404),
        ({"NETWORKS": ["203.0.113.0/24"], "TOKEN": TOKEN}, "198.51.100.1", {}, 401),
        ({"NETWORKS": ["203.0.113.0/24"], "TOKEN": TOKEN}, "198.51.100.1", BEARER, 200),
    ],
)
def test_whoever_is_not_let_in_is_told_nothing(
    settings: Any, configured: dict[str, Any], address: str, headers: dict[str, str], status: int
) -> None:
    settings.HOLDPOINT_METRICS_TOKEN = configured.get("TOKEN", "")
    settings.HOLDPOINT_METRICS_NETWORKS = configured.get("NETWORKS", [])
    answer = Client(REMOTE_ADDR=address, headers=headers).get("/metrics")
    assert answer.status_code == status
    assert (b"holdpoint_" in answer.content) == (status == 200)
    assert status == 404 or "no-store" in answer["Cache-Control"]


def test_gates_are_counted_by_team_and_policy_with_the_overdue_ones_apart() -> None:
    team = make_team(name='a"} 1\nholdpoint_database_up 7\n')
    policy = make_policy(team, name="refunds")
    gate, late = make_gate(policy=policy), make_gate(policy=policy)
    with altered(late, deadline="2020-01-01T00:00:00+00:00"):
        found = scraped()
        assert value("holdpoint_database_up", found) == 1, "no name forges a line"
        assert value("holdpoint_gates", found, state="open", team=team.name, policy="refunds") == 2
        assert value("holdpoint_gates", found, state="overdue", team=team.name, policy="refunds") == 1
    decide(gate, ann(team))
    assert value("holdpoint_gates", state="open", team=team.name, policy="refunds") == 1


def figures(run: Run) -> tuple[dict[str, int], float]:
    """How many runs of this one's agent there are by status, and for how long the one due longest waits."""
    (found,) = [(counts, due) for agent, counts, due in Run.objects.figures_by_agent() if agent == run.plan.agent]
    return found


LONG_AGO, A_DAY = "2020-01-01T00:00:00+00:00", 24 * 60 * 60


def test_runs_are_counted_by_agent_and_a_due_one_says_for_how_long() -> None:
    run = make_run()
    for status, times in (
        ("queued", {"wake_at": LONG_AGO}), ("running", {"lease_until": LONG_AGO}), ("waiting", {"wake_at": LONG_AGO}),
    ):  # fmt: skip
        with altered(run, status=status, **times):
            counts, due = figures(run)
            assert counts == {status: 1}
            assert due > A_DAY
    with altered(run, status="waiting", wake_at=None):
        assert figures(run) == ({"waiting": 1}, 0)


@pytest.mark.parametrize(("external", "others", "own"), [(False, "queued", "running"), (True, "waiting", "waiting")])
def test_a_run_that_is_due_is_hidden_by_no_number_of_others(
    monkeypatch: pytest.MonkeyPatch, external: bool, others: str, own: str
) -> None:
    """Five thousand older ones, queued or living outside, hid every run that was due."""
    older, run = make_run(plan=plans.keep(make_spec(), external=external)), make_run()
    later = "2021-01-01T00:00:00+00:00"
    with altered(older, status=others, wake_at=LONG_AGO), altered(run, status=own, wake_at=later, lease_until=later):
        most = Run.objects.filter(status=own, plan__external=False).count()  # as many as can be due here
        monkeypatch.setattr(models_run, "_FIGURES", models_run._FIGURES.replace(f"LIMIT {COUNTED}", f"LIMIT {most}"))
        dues = {agent: due for agent, _, due in Run.objects.figures_by_agent()}
        assert dues[run.plan.agent] > A_DAY
        assert not external or not dues.get(older.plan.agent)


def test_the_metrics_name_agents_that_are_known_here_and_tell_the_others_together() -> None:
    """Whoever may open gates from outside made a series of each name that they sent."""
    refunds = make_plan(replace(make_spec(), agent="refunds", version="of-a-test"))
    before = scraped().get(("holdpoint_runs", frozenset({"agent": "refunds", "status": "queued"}.items())), 0)
    run, other = make_run(plan=refunds), make_run()
    with altered(run, wake_at=LONG_AGO), altered(other, wake_at=LONG_AGO):
        found = scraped()
    assert value("holdpoint_runs", found, agent="refunds", status="queued") == before + 1
    assert value("holdpoint_runs", found, agent="others", status="queued") >= 1
    for agent in ("refunds", "others"):
        assert value("holdpoint_run_due_seconds", found, agent=agent) > A_DAY
    named = {label for name, labels in found for key, label in labels if key == "agent" and "_run" in name}
    assert named <= registry.names() | {"others"}


def test_a_transaction_that_stays_open_a_sealer_that_does_not_come_and_a_sweeper_that_is_gone_are_seen() -> None:
    """They hold back every reader of events, and nothing said so."""
    horizon.reached()
    while sealer.seal_once():
        horizon.reached()
    assert value("holdpoint_sealer_lag_seconds") == 0
    with owner() as made, made.transaction():
        made.execute("SELECT pg_current_xact_id()")
        make_run()
        until(lambda: value("holdpoint_horizon_age_seconds") > 0.2, what="the horizon ages")
    horizon.reached()
    assert value("holdpoint_horizon_age_seconds") == 0
    until(lambda: value("holdpoint_sealer_lag_seconds") > 0.2, what="the event waits for its seal")
    sealer.seal_once()
    assert value("holdpoint_sealer_lag_seconds") == 0
    SweeperPass.beat()
    assert value("holdpoint_sweeper_age_seconds") < 60
    with altered(SweeperPass.objects.get(), at="2020-01-01T00:00:00+00:00"):
        assert value("holdpoint_sweeper_age_seconds") > 24 * 60 * 60


def test_queues_and_the_canary_are_told(redis_url: str) -> None:
    client = redis.Redis.from_url(redis_url)
    client.flushdb()
    assert value("holdpoint_canary_age_seconds") == messages.CANARY_LIVES
    messages.record_canary(redis_url)
    queue = registry.agent_named("refunds").queue
    client.rpush("holdpoint", "one", "two")
    client.rpush(queue, "three")
    (another, *_) = [each for each in registry.queues() if each != queue]
    client.set(another, "of another type")
    found = scraped()
    client.flushdb()
    assert value("holdpoint_redis_up", found) == 1
    assert value("holdpoint_queue_messages", found, queue=another) == 0
    assert value("holdpoint_queue_messages", found, queue="holdpoint") == 2
    assert value("holdpoint_queue_messages", found, queue=queue) == 1
    assert value("holdpoint_canary_age_seconds", found) < messages.CANARY_LIVES


def test_answers_are_counted_by_view_and_status() -> None:
    Client().get("/nowhere/at/all")
    Client().get("/healthz")
    found = scraped()
    assert value("holdpoint_http_requests_total", found, view="none", status="404") >= 1
    assert value("holdpoint_http_requests_total", found, view="healthz", status="200") >= 1
    assert value("holdpoint_http_request_seconds_count", found, view="healthz") >= 1
    assert value("holdpoint_pool_connections", found, state="most") == 8


def test_what_the_tailer_reads_is_counted_by_kind_and_agent(web: str) -> None:
    def told() -> Samples:
        return read(httpx.get(f"{web}/metrics", timeout=60).text)

    def failed(agent: str) -> float:
        return value("holdpoint_events_total", told(), kind="run.failed", agent=agent)

    until(lambda: value("holdpoint_tailer_lag_seconds", told()) < 0.2, what="the tailer reads")
    refunds = make_plan(replace(make_spec(), agent="refunds", version="of-a-test"))
    for agent, run in (("refunds", make_run(plan=refunds)), ("others", make_run())):
        before = failed(agent)  # which is there before the first: an alert sees it rise
        claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="of a test", lease=30)
        assert claim is not None
        claims.release(claim, status="failed", reason="Its data does not verify", by=SYSTEM)
        until(lambda: failed(agent) == before + 1, what=f"the failed run of {agent} is counted as theirs")  # noqa: B023
    gate = make_gate()
    counted = ("holdpoint_events_total", frozenset({"kind": "gate.opened", "agent": "others"}.items()))
    until(lambda: told().get(counted), what=f"the gate of {gate.run.plan.agent} is counted")
    assert gate.run.plan.agent not in {label for _, labels in told() for _, label in labels}


SAMPLES = {  # one of each family, which is there whatever the database holds
    "delays": "holdpoint_horizon_age_seconds",
    "seals": "holdpoint_sealer_lag_seconds",
    "processes": "holdpoint_worker_processes",
    "webhooks": "holdpoint_webhooks_failing",
}


@contextmanager
def locked(table: str) -> Iterator[None]:
    with owner() as made, made.transaction():
        made.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


LEFT_OUT = [("checkpoints_event", {"delays", "seals"}), ("checkpoints_run", {"runs"})]


@pytest.mark.parametrize(("table", "missing"), first_alone(LEFT_OUT))
def test_a_statement_that_waits_costs_a_scrape_its_own_figures_alone(table: str, missing: set[str]) -> None:
    """One locked table was told as a PostgreSQL that is down; one that two of the first read cost all of the others."""
    began, families = time.monotonic(), {"delays", "seals", "processes", "runs", "gates", "webhooks"}
    with locked(table), capture_logs() as lines:
        found = scraped()
    told = {family for family in families if value("holdpoint_database_figures", found, family=family)}
    assert told == families - missing
    assert {line["family"] for line in lines if line["event"] == "metrics.left_out"} == missing
    named = {name for name, _ in found}
    for family, name in SAMPLES.items():
        assert (name in named) == (family in told), name
    assert value("holdpoint_database_up", found) == 1
    assert value("holdpoint_redis_up", found) == 1
    assert time.monotonic() - began < 30
    until(lambda: all(value("holdpoint_database_figures", family=each) for each in families), what="all is told again")


def _has_room(stats: dict[str, int]) -> bool:
    return stats["pool_available"] > 0 or stats["pool_size"] < stats["pool_max"]


def test_a_pool_that_has_run_out_costs_a_scrape_no_more_than_that() -> None:
    pool = connections["default"].pool  # type: ignore[attr-defined]
    taken: list[psycopg.Connection] = []
    connections["default"].close()
    pool.open()
    try:
        while _has_room(pool.get_stats()):  # threads of other tests may have some of them
            taken.append(pool.getconn(timeout=PATIENCE))
        found = scraped()
    finally:
        for each in taken:
            pool.putconn(each)
    assert value("holdpoint_database_up", found) == 0
    assert value("holdpoint_pool_connections", found, state="idle") == 0
    until(lambda: value("holdpoint_database_up") == 1, what="it answers again")


NAME = re.compile(r"\bholdpoint_[a-z_]+")
PROMTOOL = shutil.which("promtool") or ""
FOLDER = ROOT / "docs" / "monitoring"


def told() -> dict[str, set[str]]:
    """Each of our samples by its name, with its labels; of a real scrape with something of everything in it."""
    Unrun.objects.create(gate=make_gate(), due_at=timezone.now(), raised_at=timezone.now())
    ChannelState.objects.get_or_create(channel="email")
    SweeperPass.beat()
    tailer.EVENTS.labels("gate.opened", "refunds").inc(0)
    registry.names()  # read as a web process starts, which takes longer than a scrape may
    Client().get("/healthz")
    answer = Client().get("/metrics").content.decode()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(answer):
        for sample in family.samples:
            if sample.name.startswith("holdpoint_"):
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    return list(group["rules"])


def board() -> list[str]:
    panels = json.loads((FOLDER / "board.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def documented() -> set[str]:
    return set(re.findall(r"`(holdpoint_[a-z_]+)`", (ROOT / "docs" / "watch.md").read_text()))


def test_every_metric_of_the_rules_and_of_the_board_is_told_with_its_labels() -> None:
    found = told()
    for expression in [*(rule["expr"] for rule in rules()), *board()]:
        names = NAME.findall(expression)
        assert names or "up{" in expression, expression
        for name in names:
            assert name in found, expression
        asked = re.findall(r"by \(([a-z, ]+)\)", expression) + re.findall(r"([a-z]+)=~?\"", expression)
        labels = {label.strip() for each in asked for label in each.split(",")} - {"instance", "job"}
        assert labels <= set().union(*(found[name] for name in names)), expression


def test_every_alert_and_every_metric_is_documented_and_no_other() -> None:
    told()
    families = {family.name for family in REGISTRY.collect() if family.name.startswith("holdpoint_")}
    counters = {family.name for family in REGISTRY.collect() if family.type == "counter"}
    assert documented() == {f"{name}_total" if name in counters else name for name in families}
    text = (ROOT / "docs" / "watch.md").read_text()
    assert all(f"`{rule['alert']}`" in text for rule in rules())


@pytest.mark.skipif(not PROMTOOL, reason="promtool (Debian: prometheus) is not installed")
def test_the_rules_fire_on_what_they_are_there_for() -> None:
    command = [PROMTOOL, "test", "rules", "tests/config/alerts_test.yml"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr + ran.stdout
