"""What events tell, for comparing."""

from __future__ import annotations

from typing import Any

from checkpoints.models import Event
from checkpoints.values.canonical_json import decode_canonical


def data_of(event: Event) -> dict[str, Any]:
    """Return the data of an event without the id of the request that it comes of.

    That id is another one each time.
    """
    return {name: value for name, value in decode_canonical(bytes(event.data)).items() if name != "request_id"}
