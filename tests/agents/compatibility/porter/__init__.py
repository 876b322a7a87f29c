"""One agent in its versions, each a module: what is deployed is the modules that a test names.

It finds an order, drafts a reply, asks, and sends it. From version 1 to 2 the step `propose` becomes `draft` and the
field `text` becomes `reply`; from 2 to 3 the reply gets a language.
"""

SENT: list[tuple[str, str]] = []  # (version, text) of every effect performed
