"""What may come next."""

import pytest

from haclusterd.cli.command_table import LEVELS
from haclusterd.cli.completing.completion import candidates, offers, typed_words
from haclusterd.cli.completing.offers import Offer
from haclusterd.cli.render.fields import Fields

NAMES = {"node": ["n1", "n2"], "resource": ["db", "web"], "object": ["db", "l1", "web"], "agent": ["ocf:x:web"],
         "ticket": ["paris"]}  # fmt: skip
DESCRIPTION: Fields = {
    "parameters": [
        {"name": "url", "type": "string", "default": None, "is_required": True, "options": [],
         "shortdesc": "Where it\nanswers", "longdesc": ""},
        {"name": "mode", "type": "select", "default": "slow", "is_required": False, "options": ["fast", "slow"],
         "shortdesc": "How", "longdesc": ""},
        {"name": "quiet", "type": "boolean", "default": "false", "is_required": False, "options": [],
         "shortdesc": "", "longdesc": "Whether it is silent. " * 9},
        {"name": "port", "type": "integer", "default": "80", "is_required": False, "options": [], "shortdesc": "Port",
         "longdesc": ""},
    ],
    "actions": [{"name": "start", "timeout": "20s"}, {"name": "monitor", "timeout": "9s", "interval": "10s"}],
}  # fmt: skip


class Names:
    """A cluster with an agent that describes itself."""

    def names(self, kind: str) -> list[str]:
        return NAMES.get(kind, [])

    def description(self, agent: str) -> Fields:
        return DESCRIPTION if agent == "ocf:x:web" else {}

    def agent_of(self, resource: str) -> str:
        return "ocf:x:web" if resource in ("web", "from") else ""


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("", "acl agent alert api assist availability cib cibstatus cluster completion configure fencing gpu history "
             "maintenance migrate monitor node options ra report resource sbd script secret simulate status template "
             "ticket verify why"),
        ("st", "status"),
        ("--re", "--reason"),
        ("resource s", "scores secret start status stop"),
        ("res sto", "stop"),
        ("resource stop ", "db web"),
        ("resource stop web ", "db"),
        ("resource move web ", "n1 n2"),
        ("resource move web n1 ", ""),
        ("-o json resource move w", "web"),
        ("resource move --co", "--consistent --constraint"),
        ("resource why web --on ", "n1 n2"),
        ("node standby n1 ", "forever n2 reboot"),
        ("node standby n1 n2 ", "forever reboot"),
        ("node standby n1 reboot ", ""),
        ("node online n2 ", "n1"),
        ("node ready --a", "--all"),
        ("configure load ", "push replace update xml"),
        ("configure load xml ", "push replace update"),
        ("configure delete ", "db l1 web"),
        ("configure set ", "db. n1. n2. web."),
        ("configure set w", "web."),
        ("configure set web.pr", "web.priority web.promotable web.promote. web.promoted-max web.promoted-node-max "
                                 "web.provides"),
        ("configure set web.po", "web.port"),
        ("configure set web.monitor.t", "web.monitor.timeout"),
        ("configure set web.mode ", "fast slow"),
        ("configure set web.target-role ", "Promoted Started Stopped Unpromoted"),
        ("configure set web.monitor.enabled ", "false true"),
        ("configure set web.mode fast ", ""),
        ("resource meta web set target-role ", "Promoted Started Stopped Unpromoted"),
        ("resource meta web set is-managed ", "false true"),
        ("resource meta web delete target-role ", ""),
        ("resource param web set mode ", "fast slow"),
        ("resource param web set port ", "80"),
        ("resource param web set unknown ", ""),
        ("resource trace web st", "start stop"),
        ("configure modgroup ", "db web"),
        ("configure modgroup g ", "add remove"),
        ("configure modgroup g add ", "db web"),
        ("configure modgroup g add db ", "after before"),
        ("help st", "status"),
        ("help res", "resource"),
        ("help resource mo", "move"),
        ("help status ", ""),
        ("configure show --format ", "crm xml yaml"),
        ("configure get_property node-t", "node-timeout"),
        ("configure property node-t", "node-timeout="),
        ("configure primitive ", ""),
        ("configure primitive w ocf", "ocf:x:web"),
        ("configure primitive w ocf:x:web ", "meta mode= op params port= quiet= url= utilization"),
        ("configure primitive w @from params p", "params port="),
        ("configure primitive w ocf:x:web params url=http://x/ ", "meta mode= op params port= quiet= utilization"),
        ("configure primitive w ocf:x:web params mode=", "mode=fast mode=slow"),
        ("configure primitive w ocf:x:web mode=f", "mode=fast"),
        ("configure primitive w ocf:x:web params quiet=", "quiet=false quiet=true"),
        ("configure primitive w ocf:x:web params port=", "port=80"),
        ("configure primitive w ocf:x:web params unknown=", ""),
        ("configure primitive w ocf:y:unknown params ", "meta op params utilization"),
        ("configure primitive w ocf:x:web utilization ", "meta op params utilization"),
        ("configure primitive w ocf:x:web meta target", "target-role="),
        ("configure primitive w ocf:x:web meta is-managed=", "is-managed=false is-managed=true"),
        ("configure primitive w ocf:x:web op ", "monitor start"),
        ("configure primitive w x op ", "demote migrate_from migrate_to monitor notify promote start stop"),
        ("configure primitive w ocf:x:web op monitor interval=", "interval=10s"),
        ("configure primitive w ocf:x:web op monitor on-fail=st", "on-fail=standby on-fail=stop"),
        ("configure primitive w ocf:x:web op monitor interval=10s i", ""),
        ("configure primitive w ocf:x:web op monitor in", "interval="),
        ("configure group g ", "db web"),
        ("configure group g db ", "meta web"),
        ("configure group g db meta is-m", "is-managed="),
        ("configure bundle b ", "docker podman"),
        ("configure bundle b podman image=x p", "primitive"),
        ("configure bundle b podman primitive ", "db web"),
        ("configure tag t ", "db l1 web"),
        ("configure monitor ", "db web"),
        ("configure node ", "n1 n2"),
        ("configure node n1 ", "attributes utilization"),
        ("configure colocation c ", "-inf: 100: inf:"),
        ("configure colocation c inf: web ", "db"),
        ("configure colocation c inf: web db influence=", "influence=false influence=true"),
        ("configure order o ", "Mandatory: Optional: Serialize: db web"),
        ("configure order o Mandatory: db web sym", "symmetrical="),
        ("configure rsc_ticket t ", "paris:"),
        ("configure rsc_ticket t paris: db loss-policy=f", "loss-policy=fence loss-policy=freeze"),
        ("configure fencing_topology ", "n1: n2:"),
        ("configure fencing_topology n1: ", "db n1: n2: web"),
        ("configure property no-quorum-policy=s", "no-quorum-policy=stop"),
        ("configure rsc_defaults resource-st", "resource-stickiness="),
        ("configure op_defaults time", "timeout="),
        ("configure location l web ", "-inf: 100: inf: rule"),
        ("resource param web set ", "mode port quiet url"),
        ("resource param db set ", ""),
        ("resource meta web set target", "target-role"),
        ("-o json --rea", "--reason"),
        ("configure location l ", "db web"),
        ("configure location l web 50: ", "n1 n2"),
        ("nothing ", ""),
    ],
)
def test_candidates(typed: str, expected: str) -> None:
    assert candidates(typed.split(" "), Names()) == expected.split()


def test_inside_a_level() -> None:
    resource = next(level for level in LEVELS if level.name == "resource")
    assert candidates(["move", "w"], Names(), resource) == ["web"]


def test_each_word_says_what_it_means() -> None:
    words = ["configure", "primitive", "w", "ocf:x:web", "params", ""]
    found = {offer.word: offer.help for offer in offers(words, Names())}
    assert (found["url="], found["mode="]) == ("required: Where it answers", "How (slow)")
    assert found["quiet="].startswith("Whether it is silent. Whether")
    assert (len(found["quiet="].removesuffix(" (false)")), "..." in found["quiet="]) == (70, True)
    assert Offer("move", "Move a resource, with its group; no constraint stays behind") in offers(
        ["resource", "mo"], Names()
    )
    assert Offer("--dry-run", "change nothing; show what would change and happen") in offers(["status", "-"], Names())


def test_what_the_shell_knows_beside_commands() -> None:
    configure = next(level for level in LEVELS if level.name == "configure")
    assert [offer.word for offer in offers(["u"], Names(), configure, in_shell=True)] == [
        "unset", "up", "upgrade", "user",
    ]  # fmt: skip
    assert [offer.word for offer in offers(["r"], Names(), configure, in_shell=True)][:2] == ["ra", "rename"]
    assert [offer.word for offer in offers(["cd", ""], Names(), configure, in_shell=True)] == [
        "..", "assist", "cib", "cibstatus", "ra", "template"
    ]  # fmt: skip
    assert [offer.word for offer in offers(["help", "resource", "mo"], Names(), in_shell=True)] == ["move"]
    assert [offer.word for offer in offers(["help", "res"], Names(), in_shell=True)] == ["resource"]
    assert [offer.word for offer in offers(["u"], Names())] == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", [""]),
        ("resource ", ["resource", ""]),
        ("  resource  mo", ["resource", "mo"]),
        ("property \\\nnode", ["property", "node"]),
        ('primitive w x params a="b c', ["primitive", "w", "x", "params", 'a="b c']),
        ("show 'a b' ", ["show", "'a b'", ""]),
        ("a\\ b", ["a\\ b"]),
        ("end\\", ["end", ""]),
    ],
)
def test_words_of_an_unfinished_line(line: str, words: list[str]) -> None:
    assert typed_words(line) == words
