"""What may come next."""

import pytest

from haclusterd.cli.command_table import LEVELS
from haclusterd.cli.completion import candidates

NAMES = {"node": ["n1", "n2"], "resource": ["db", "web"], "object": ["db", "l1", "web"], "agent": ["ocf:x:web"]}


def lookup(kind: str) -> list[str]:
    return NAMES[kind]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("", "agent api assist cib cibstatus cluster completion configure fencing history maintenance migrate monitor "
             "node options ra report resource sbd script simulate status template ticket verify why"),
        ("st", "status"),
        ("--re", "--reason"),
        ("resource s", "scores start status stop"),
        ("res sto", "stop"),
        ("resource stop ", "db web"),
        ("resource stop web ", "db"),
        ("resource move web ", "n1 n2"),
        ("resource move web n1 ", ""),
        ("-o json resource move w", "web"),
        ("resource move --co", "--consistent --constraint"),
        ("resource why web --on ", "n1 n2"),
        ("node standby n1 ", "forever reboot"),
        ("configure load ", "push replace update xml"),
        ("configure load xml ", "push replace update"),
        ("configure delete ", "db l1 web"),
        ("configure show --format ", "crm xml yaml"),
        ("configure get_property node-t", "node-timeout"),
        ("configure property node-t", "node-timeout="),
        ("configure primitive ", ""),
        ("configure primitive w ocf", "ocf:x:web"),
        ("configure primitive w ocf:x:web ", "meta op params utilization"),
        ("configure primitive w ocf:x:web meta target", "target-role="),
        ("configure primitive w ocf:x:web op ", "demote migrate_from migrate_to monitor notify promote start stop"),
        ("configure primitive w ocf:x:web op monitor in", "interval="),
        ("configure group g ", "db web"),
        ("configure location l ", "db web"),
        ("configure location l web 50: ", "n1 n2"),
        ("nothing ", ""),
    ],
)
def test_candidates(typed: str, expected: str) -> None:
    assert candidates(typed.split(" "), lookup) == expected.split()


def test_inside_a_level() -> None:
    resource = next(level for level in LEVELS if level.name == "resource")
    assert candidates(["move", "w"], lookup, resource) == ["web"]
