"""Tests an agent in one process, with the real runner and the real store; the test answers as the people.

    from agents.testing import Trial

    def test_what_a_person_edits_is_what_is_sent():
        run = Trial(Greeter, person="Ada")
        assert run.card.title == "Greet Ada"
        run.edit("send", "Good evening, Ada")
        assert run.status == "completed"
        assert run.effects[0].wrote == {"sent": True}

A trial starts the run and takes it on until it asks somebody or has ended; so does every answer. No worker, no web
server and no Redis are needed, only the database, which `make trial` brings. Waits between attempts are skipped.
Effects are really performed: give the agent's client of the outside world a stand-in, as in any other test.
"""

from .trial import Performed, Trial, TrialStuck

__all__ = ["Performed", "Trial", "TrialStuck"]
