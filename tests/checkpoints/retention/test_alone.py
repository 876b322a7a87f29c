"""Messages about prunes never pile up, and a load that meets a prune is no fault."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from checkpoints import store, tasks
from checkpoints.errors import NotVerified
from checkpoints.layout import rows
from checkpoints.models import Checkpoint, Run
from checkpoints.retention import prunes
from checkpoints.retention.prunes import hold_prune_lock

from .pruned_runs import ended, keep, pruned


def test_a_message_that_finds_another_at_it_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(tasks.prune, "delay", lambda: sent.append("again"))
    monkeypatch.setattr(prunes, "go_on", lambda *, seconds: True)
    held, done = threading.Event(), threading.Event()

    def another() -> None:
        with hold_prune_lock() as mine:
            assert mine
            held.set()
            done.wait(10)
        connection.close()

    at_it = threading.Thread(target=another)
    at_it.start()
    held.wait(10)
    tasks.prune()
    assert sent == []
    done.set()
    at_it.join(10)
    tasks.prune()
    assert sent == ["again"]


def test_a_load_whose_rows_a_prune_rewrote_before_its_chunks_were_read_reads_them_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = ended(200)
    stale = rows.head_trail(run.pk)
    state = store.load(run).state
    keep(run, keep_last=1)
    pruned()
    run = Run.objects.get(pk=run.pk)
    read, first = rows.head_trail, [stale]
    monkeypatch.setattr(rows, "head_trail", lambda pk: first.pop() if first else read(pk))
    assert store.load(run).state == state


def test_what_is_damaged_is_a_fault_at_the_second_look_too() -> None:
    run = ended(5)
    newest = Checkpoint.objects.filter(run=run).latest("seq")
    payload = bytes(newest.payload)
    Checkpoint.objects.filter(pk=newest.pk).update(payload=payload[:-1] + bytes([payload[-1] ^ 1]))
    with pytest.raises(NotVerified):
        store.load(Run.objects.get(pk=run.pk))
