"""Follows the chain of seals, seal by seal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .problem import IntegrityProblem
from .seal import SealFact

WITHOUT = "made without the key: whoever can write the database can have written {them}"
OTHERWISE = "made with another key, or {their} columns do not match {their} digest"
UNKNOWN = "made with a key that is not set here, or {their} columns do not match {their} digest"


@dataclass
class SealChain:
    """The state of following the chain. Without the key, a digest made with a key looks like a wrong one."""

    key: bytes
    before: SealFact | None = None
    begins: bytes | None = None  # the digest that the first seal has to name as the previous one
    wrong: list[tuple[int, int, str]] = field(default_factory=list)  # consecutive seals with wrong digests

    def follow(self, seal: SealFact) -> Iterator[IntegrityProblem]:
        """Check the next seal. Wrong digests are collected, and reported together by `digests`."""
        before = self.before.digest if self.before else self.begins
        if seal.previous != before:
            words = f"seal {self.before.id}" if self.before else "what it began with"
            yield IntegrityProblem(
                f"seal {seal.id}", f"does not follow {words}: what stood between was removed or rewritten"
            )
        if self.before and seal.first <= self.before.last:
            yield IntegrityProblem(f"seal {seal.id}", f"begins before seal {self.before.id} ends")
        self._judge(seal)
        self.before = seal

    def _judge(self, seal: SealFact) -> None:
        made = seal.digest_kind(self.key)
        if made == ("key" if self.key else "plain"):
            return
        proof = WITHOUT if made == "plain" else OTHERWISE if self.key else UNKNOWN
        last = self.wrong[-1] if self.wrong else None
        if last and self.before and last[1:] == (self.before.id, proof):
            self.wrong[-1] = (last[0], seal.id, proof)
        else:
            self.wrong.append((seal.id, seal.id, proof))

    def digests(self) -> list[IntegrityProblem]:
        """Return what is wrong with the digests of the seals followed."""
        return [_fault(*row) for row in self.wrong]


def _fault(first: int, last: int, template: str) -> IntegrityProblem:
    if first == last:
        return IntegrityProblem(f"seal {first}", f"was {template.format(them='it', their='its')}")
    return IntegrityProblem(f"seals {first} to {last}", f"were {template.format(them='them', their='their')}")
