"""Stores the counts of tries in Redis as JSON: what comes back from there is only data, and never code to run."""

from __future__ import annotations

import json
from typing import Any


class JsonSerializer:
    """Writes a value of Django's cache as JSON, where Django would pickle it."""

    def dumps(self, value: Any) -> bytes:
        """Return the value as bytes."""
        return json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        """Return the value of the bytes. Raises ValueError for anything but JSON."""
        return json.loads(data)
