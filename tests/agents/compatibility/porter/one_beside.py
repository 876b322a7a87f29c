"""Version 1 that goes on while people decide."""

from __future__ import annotations

from agents import Action, Card, gate

from . import one


class Porter(one.Porter):
    """Find the order, propose a reply, ask meanwhile, send it."""

    @gate(allows=["send"], edits=["text"], on_reject="propose", waits=False)
    def review(self, text: str) -> Card:
        return Card(title="Send the reply?", actions=[Action(id="text", title="Reply", pointer="/text", effect="send")])
