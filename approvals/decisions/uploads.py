"""Checks which files an edit may bring in, and which a gate may hand out.

A reference is a digest, and digests get around. So an edit may name files that the gate's state or the current proposal
names already, and files uploaded at this very gate; anything else would hand out a file to whoever knows its digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from approvals.errors import Invalid, make_problem
from approvals.models import Gate, Proposal, Upload
from checkpoints.retention import stray_artifacts
from checkpoints.values import artifacts
from checkpoints.values.artifacts import MARK, Reference
from checkpoints.values.canonical_json import encode_canonical

FOREIGN = "This file was not uploaded here; choose it in the form."
GONE = "This file is not kept any more; choose it again."


def refuse_foreign(gate: Gate, standing: Proposal, saved: Mapping[str, Any], *wanted: Any) -> None:
    """Raise Invalid where any of these values names a file that is neither there already nor uploaded here."""
    found = [each for value in wanted for _, each in artifacts.references(value)]
    known = [each for value in (saved, standing.content) for _, each in artifacts.references(value)] if found else []
    there = {_content(each) for each in known}
    new = [each for each in found if _content(each) not in there]
    digests = {str(each[MARK]) for each in new} - {str(each[MARK]) for each in known}
    if digests and digests - Upload.objects.of(gate, digests):
        raise Invalid([make_problem(FOREIGN)])
    if artifacts.missing(new):
        raise Invalid([make_problem(GONE)])


def referenced(digest: str, *values: Any) -> Reference | None:
    """Find the first well-formed reference to this content in any of these values."""
    found = (each for value in values for _, each in artifacts.references(value))
    return next((each for each in found if each[MARK] == digest and artifacts.is_reference(each)), None)


def named_in() -> Iterator[Iterable[bytes]]:
    """Yield the digests of uploads that a prune spares, since they may still be written into a state."""
    yield (encode_canonical({MARK: each}) for each in stray_artifacts.column(Upload.objects.needed(), "digest"))


def _content(reference: Reference) -> tuple[str, str]:
    """Return the digest and the size that a reference names."""
    return str(reference[MARK]), repr(reference.get("size"))
