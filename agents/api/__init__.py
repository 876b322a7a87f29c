"""The HTTP API under /api/: the data of the pages as JSON, for scripts; and orders to runs.

The permissions are the pages' own rules, called here and not written again: a run is its team's, a gate is its team's
and its reviewers', and whatever somebody may not see gets 404. Each noun has a module with its schemas and its
addresses; `interface` puts them together, `urls` puts the same wrapper around all of them. An operation in the
description has the name of its view function.

Numbers keep their type: a saved state and a proposal are sent as the canonical bytes that their digests cover
(`protocol.exact_json`), because an encoder in between could turn 1.0 into 1. Every error is a problem document
(`protocol.problem_details`) that says what to do.
"""
