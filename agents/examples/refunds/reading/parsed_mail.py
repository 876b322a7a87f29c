"""What a mail says, as far as it can be read, and what could not be read of it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class ParsedMail:
    """What could be made out of a mail; an empty string where nothing could."""

    from_address: str = ""
    from_name: str = ""
    reply_to: str = ""
    subject: str = ""
    sent: str = ""
    text: str = ""
    hidden: str = ""  # words of which nobody can tell whether they are in sight
    attachments: list[str] = field(default_factory=list)  # "hook.png (image/png, 2,048 bytes)"
    problems: list[str] = field(default_factory=list)

    def complain(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)
