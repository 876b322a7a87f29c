"""No search finds a gate by a secret of its run, whatever its agent says."""

from __future__ import annotations

from approvals.models import Gate
from tests.factories.driven_runs import open_gate
from tests.harness.signed_in_clients import signed_in

from .vault_agent import SECRETS
from .vault_runs import make_people, make_run, member


def test_a_secret_is_among_the_words_of_no_gate_and_finds_none(ledger: str) -> None:
    team = make_people(whole=True)
    run = make_run(team, ledger)
    reader = member(team, reveals=True)
    gate = open_gate(run)
    client = signed_in(reader)
    terms = Gate.objects.get(pk=gate.pk).terms.lower().split()
    assert "vault" in terms or len(terms) > 3
    for secret in SECRETS:
        kind, rest = secret.split("-")
        assert rest not in terms
        for words in (secret, rest, rest[:5]):
            page = client.get("/inbox/list/", {"queue": "all", "q": words}).content.decode()
            assert f'id="gate-{gate.pk}"' not in page, (kind, words)
