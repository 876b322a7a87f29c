"""The lines of an export: writes an event, its place in its seal and its text as JSON, and reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .leaves import SealedRow, compute_leaf, compute_tags
from .seal import exact_bytes, format_instant, parse_instant, readable_value

FORMAT = 1
_EARLIEST, _LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 to 9999, in microseconds


@dataclass(frozen=True)
class ExportedEvent:
    """One event of an export. `index` is its place among its seal's events, None if it is in no seal.

    `mark` is its leaf and its tags, as the seal's marks have them; `path` leads from its leaf to the seal's root, and
    is None if all events of the seal are in the export.
    """

    row: SealedRow
    index: int | None = None
    path: list[bytes] | None = None
    mark: bytes = b""
    text: tuple[bytes, bytes] | None = None  # salt, words


def to_json(event: ExportedEvent) -> dict[str, Any]:
    """Write one line."""
    row = event.row
    values: dict[str, Any] = {
        "event": row.id,
        "xid": row.xid,
        "at": format_instant(row.at) if row.at is not None and _EARLIEST <= row.at <= _LATEST else row.at,
        "kind": row.kind,
        "run": row.run_id,
        "team": row.team_id,
        "subject": row.subject,
        "version": row.version,
        "actor": row.actor,
        "actor_name": row.actor_name,
        "data": readable_value(row.data),
        "text_digest": row.text_digest.hex() if row.text_digest is not None else None,
        "index": event.index,
        "mark": (event.mark or compute_leaf(row) + compute_tags(row)).hex(),
    }
    if event.path is not None:
        values["path"] = [sibling.hex() for sibling in event.path]
    if event.text is not None:
        values["text"] = {"salt": event.text[0].hex(), "words": readable_text(event.text[1])}
    return values


def from_json(line: Any) -> ExportedEvent:
    """Read that form. Raises ValueError, KeyError, TypeError or AttributeError for anything else."""
    at = line["at"]
    row = SealedRow(
        line["event"], line["xid"], parse_instant(at) if isinstance(at, str) else at, line["kind"], line["run"],
        line["team"], line["subject"], line["version"], line["actor"], line["actor_name"], exact_bytes(line["data"]),
        None if line["text_digest"] is None else bytes.fromhex(line["text_digest"]),
    )  # fmt: skip
    text = line.get("text")
    path = line.get("path")
    index = line["index"]
    if not (type(row.id) is type(row.xid) is int and (index is None or type(index) is int)):
        raise ValueError("an id is no whole number")
    return ExportedEvent(
        row=row,
        index=index,
        path=None if path is None else [bytes.fromhex(sibling) for sibling in path],
        mark=bytes.fromhex(line["mark"]),
        text=None if text is None else (bytes.fromhex(text["salt"]), exact_text(text["words"])),
    )


def readable_text(words: bytes) -> Any:
    """Show UTF-8 as text, anything else as {"hex": …}."""
    try:
        return words.decode()
    except UnicodeDecodeError:
        return {"hex": words.hex()}


def exact_text(shown: Any) -> bytes:
    """Return the bytes that `readable_text` showed."""
    return bytes.fromhex(shown["hex"]) if isinstance(shown, dict) else str(shown).encode()
