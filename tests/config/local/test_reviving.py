"""The supervisor of `make run` starts again what has ended, also where that fails at first."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from config.local import process, restarts, stack
from config.local.console import Console


def test_a_part_that_the_system_cannot_start_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An OSError ended the whole stack, and the part was no longer among those to be started again."""
    home: Any = SimpleNamespace(path=tmp_path)
    own = stack.Stack(home, Console(), 0)
    own.start("sweeper", "-c", "").process.wait()
    real, full = process.spawn_process, [OSError(12, "Cannot allocate memory")]

    def spawn(*args: Any, **how: Any) -> Any:
        if full:
            raise full.pop()
        return real(*args, **how)

    monkeypatch.setattr(stack, "spawn_process", spawn)
    for _ in range(2):
        assert [child.name for child in own.children] == ["sweeper"]
        own.revive()  # it has ended
        assert own.revivals["sweeper"].due is not None
        own.revivals["sweeper"].due = 0.0
        own.revive()  # its pause is over
    assert not full
    (child,) = own.children
    child.process.wait()
    assert own.revivals["sweeper"].pause == 2 * restarts.FIRST
