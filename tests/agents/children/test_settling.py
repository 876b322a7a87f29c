"""A run that finds nothing left to settle, since the last child ended meanwhile, goes on at once."""

from __future__ import annotations

from functools import partial
from unittest.mock import Mock

import pytest
from django.test import TestCase

from agents.children import settling
from agents.session.run_session import RunSession
from checkpoints.models import Run
from checkpoints.store import claims
from tests.factories.driven_runs import make_run


def test_one_whose_children_ended_as_it_looked_is_rung_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It lay queued until the sweeper came."""
    session = Mock(run=make_run("parent"))
    session.left_children.side_effect = [[Mock()], []]
    session.wait.side_effect = partial(RunSession.wait, session)
    released: list[str] = []
    monkeypatch.setattr(claims, "release", lambda claim, *, status, **told: released.append(status))
    with TestCase.captureOnCommitCallbacks(execute=True):
        assert not settling.settled(session)
    assert released == [Run.Status.QUEUED]
    session.ring.assert_called_once_with()
