"""The HTTP API under /api/: what the pages show, as JSON, for scripts; and what may be ordered of a run.

Who sees what is the pages' own rule, called here and not written again: a run is its team's, a gate is its team's
and its reviewers', and what somebody may not see is answered as what is not there. Each noun has a module with its
shapes and its addresses; `interface` puts them together, `urls` puts the same door before all of them. An
operation in the description has the name of the function that answers it.

Numbers keep their type: a saved state and everything asked for leave as the canonical bytes that their digests cover
(`protocol.exact_json`), because an encoder between them and the reader could turn 1.0 into 1. Whatever goes wrong is a
problem document (`protocol.problems`) that says what to do.
"""
