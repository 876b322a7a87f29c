from tests.approvals.decisions.model.planted import PLANTED
from tests.harness.session import ROOT


def test_what_would_be_planted_stands_in_its_module_once() -> None:
    counts = {(each.module, each.before): (ROOT / each.module).read_text().count(each.before) for each in PLANTED}
    assert [(where, count) for where, count in counts.items() if count != 1] == []
