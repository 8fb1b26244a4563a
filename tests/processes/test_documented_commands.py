"""What the help, the how-tos and the reference show of `crm` is typed at a real cluster, page by page in their order.

What cannot be typed here stands in NOT_HERE, with the reason; that it can be parsed is shown in
tests/house/test_documents.py, as are the pages made from the table of commands.
"""

import io
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from haclusterd.adapters.control.client import ControlClient
from haclusterd.cli.command_table import LEVELS, ROOT
from haclusterd.cli.main import run
from haclusterd.cli.session import Streams
from haclusterd.commands.configure.declaration import CHANGED
from haclusterd.entry_points.crm import world
from haclusterd.entry_points.free_ports import free_ports
from haclusterd.model.records import replace
from tests.documents import CHECKOUT, named, typed_lines
from tests.interrupted_client import Interrupted
from tests.processes.daemons import Scenario
from tests.written_cibs import MEMBER, NO_FENCING, cib, pair

pytestmark = pytest.mark.processes

SENTENCE = "a sentence names a command, without its words"
NOT_HERE: Mapping[str, str] = {
    r"crm (-o json|-o json migrate check|cluster|configure|agent|cluster witness)": SENTENCE,
    r"crm ra( list| info| providers)?": SENTENCE,
    r"crm (cluster this-is|history diff|resource why|why|-f FILE|--cib-file FILE|acl can|configure load xml)": SENTENCE,
    r"crm (resource restart|resource trace|node fence|configure unset NAME)": SENTENCE,
    r"crm (resource )?secret .*": "it has no such device, nobody types: tests/processes/test_secrets.py, tests/golden",
    r"crm gpu .*": "it has no GPUs: tests/golden/test_examples_of_commands.py has some",
    r"crm (--wait=5min )?alert test.*": "it has no recipients: tests/processes/test_alerts.py has some",
    r"crm cib empty (FILE|cib.xml)|crm cluster export state.cib": "it begins a file that is there: tests/unit/cli/own",
    r"crm configure show > site.crm|crm availability .* > june.csv": "for a shell",
    r"crm fencing test NODE|crm resource why RSC --on NODE|crm configure \w+ .*(NAME=VALUE|PROVIDER).*": SENTENCE,
    r"crm configure (load \w+|verify) FILE.yaml|crm cluster invite --authority DIR": SENTENCE,
    r"crm cluster (start|stop|restart|enable|disable|run|copy|diff)\b.*": "for machines: tests/unit/cli/own",
    r"crm (options|script|template|history (session|source)) .*": "of one person: tests/unit/cli/own",
    r"crm cibstatus (save|load cib.xml).*": "it writes and reads files: tests/unit/cli/own",
    r"crm sbd (device|enable) .*": "it has neither disks nor watchdogs: tests/unit/commands/node",
    r"crm cluster add n4": "crm cluster invite n4 --valid 30min does the same",
    r"crm( resource)? why web --at 10min": "the cluster is younger: tests/processes/test_history.py asks for a moment",
    r"crm agent .*": "its programs have no cluster: tests/agents/test_crm_agent.py runs it",
    r"crm cluster (init|join)\b.*": "as root, it makes a node of the machine: tests/processes/test_life_cycle.py",
    r"crm cluster this-is .*": "the daemon must be stopped: tests/processes/test_another_machine.py",
    r"crm configure load update FILE|crm resource .* (pg|mariadb-clone).*": "no database: tests/databases plays it",
    r"crm cluster (recover|restore)\b.*": "it begins another cluster: tests/processes/test_backup_recover.py",
    r"crm cluster invite --authority /etc/.*": "for a recovered node: tests/processes/test_backup_recover.py",
    r"crm cluster certificates revoke 2ba3.*": "it cuts a node off: tests/processes/test_certificates.py",
    r"crm configure primitive (pdu|fence-pdu|poison|stonith-sbd|ipmi-n1) .*": "agents of other packages",
    r"crm ra info (IPaddr2|stonith:fence_ipmilan|stonith:external/ipmi)": "agents of other packages",
    r"crm configure primitive web systemd:nginx .*": "units of other packages",
    r"crm migrate check --live": "no Pacemaker runs: tests/unit/entry_points/test_crm_migrate.py has one",
    r"eval .*|crm completion .*[>|] .*": "for a shell: tests/unit/cli/completing/test_completion.py",
    r"crm configure apply site.crm .*": "it has no such file: tests/ansible_collection plays its page",
    r"commit( force)?|discard|diff": "for the interactive shell: tests/unit/cli/test_session.py",
}
"""What is not typed here, and why."""
OPTIONS: Mapping[str, str] = {
    r"crm cluster remove (?!n3 --reason \"replaced by n4\").*|crm node delete .*": "--dry-run",
    r"crm configure erase nodes --force": "--dry-run",
    r"crm cib new trial empty": "force",
}
"""What a cluster survives once is shown, and done at the end alone; of copies there is one already."""
ASKED = 107
ASKS = (
    r"crm ticket grant paris|crm configure (rollback 12|load replace - < all.crm|load xml replace .*)|"
    r"crm fencing test n3 --wait|crm node fence n3 --reason .*"
)
"""What asks whether it is meant, and is done with --force."""
REFUSED: Mapping[str, tuple[int, str]] = {
    r"crm (fencing confirm|node clearstate) n3 .*": (1, "n3 is fenced, not lost"),
    r"crm configure bundle .*": (65, "a bundle"),
    r"crm cluster certificates revoke n3": (107, "without it, it is cut off, lost, and fenced"),
    r"crm configure apply .* --diff --dry-run": (0, "nothing to do: the configuration is so already"),
    r"crm configure apply .*": (CHANGED, ""),
}
"""What a healthy cluster answers with another exit status than 0, and what it says."""


def found(table: Mapping[str, object], line: str) -> object:
    return next((value for pattern, value in table.items() if re.fullmatch(pattern, line)), None)


def lines_of(path: Path) -> list[str]:
    bare = (re.split(r"\s+#\s", re.sub(r"\s+", " ", line))[0].strip() for line in typed_lines(path.read_text()))
    return [line for line in bare if line]


MADE_OF_HELP = "crm.md"
PAGES = [path for room in ("howto", "reference") for path in sorted((CHECKOUT / "docs" / room).glob("*.md"))]
REMOVING = 'crm cluster remove n3 --reason "replaced by n4"'
PLAYS: Mapping[str, list[str]] = {
    **{named(path): lines_of(path) for path in PAGES if path.name != MADE_OF_HELP},
    **{f"crm {level.name}".strip(): [each for command in level.commands for each in command.examples]
       for level in (ROOT, *LEVELS)},
    "at the end": [REMOVING],
}  # fmt: skip
"""The lines of each page, and of the help of each level."""


def typed() -> Iterator[tuple[str, str]]:
    """Yield what is typed, each line once, with the page on which it stands first."""
    seen: set[str] = set()
    for play, lines in PLAYS.items():
        for line in lines:
            if line not in seen and found(NOT_HERE, line) is None and (line != REMOVING or play == "at the end"):
                seen.add(line)
                yield play, line


DUMMY = "primitive {} ocf:haclusterd:dummy op monitor interval=10s timeout=20s"
STATEFUL = "primitive {} ocf:haclusterd:stateful op monitor interval=10s role=Promoted op monitor interval=11s"
PROMOTABLE = (STATEFUL.format("db"), "clone db-clone db meta promotable=true")
SERVICE = "primitive web ocf:haclusterd:http-service params command=/bin/true ready_url=http://127.0.0.1:8080/"
MONITORED = f"{SERVICE} op monitor interval=15s"
SITE = (DUMMY.format("address"), DUMMY.format("log"))
DEVICE = "primitive {} stonith:fence_local params nodes_dir=/nodes pcmk_host_list=n1"
BASES: Mapping[str, Sequence[str]] = {
    "docs/howto/clones-and-tickets.md": (DUMMY.format("ip"), DUMMY.format("log"), "group site log"),
    "docs/howto/come-from-pacemaker.md": (),
    "docs/howto/install.md": (),
    "crm configure": (
        STATEFUL.format("db"), "rsc_defaults target-role=Stopped", "property no-quorum-policy=freeze",
    ),
}
"""What a page takes to be configured; of others `web` and `db`, which run."""
NEEDED: Mapping[str, Sequence[str]] = {
    r".* modgroup site remove .*": (MONITORED, *SITE, "group site address web log"),
    r".* modgroup .*|.* edit.*": (MONITORED, *SITE, "group site address web"),
    r".* group site .*": (MONITORED, *SITE),
    r".* bundle .*|.* primitive web .*": (),
    r".* monitor .*": (SERVICE,),
    r".* fencing_topology .*": tuple(map(DEVICE.format, ("ipmi1", "pdu-a", "pdu-b"))),
    r".* tag sites.*": (DUMMY.format("shop"), DUMMY.format("blog")),
    r".* delete l1": (MONITORED, "location l1 web 100: n1"),
    r".*ready_url.*": (MONITORED,),
    r"crm configure node .*": (),
    r".* configure (set|rename|default-timeouts|filter|delete|validate-all) .*": (MONITORED,),
    r".* configure (clone|location|colocation|order|xml) .*": (MONITORED,),
    r"crm resource (promote|demote) .*": PROMOTABLE,
    r"crm resource (move|restart) .*": (DUMMY.format("web"),),
    r".* show .*web.*": (MONITORED,),
}
"""What is configured besides, before a line of `crm configure`, or one that needs it, is typed."""
HERE = {"n5": "n3", "/var/lib/pacemaker/cib/": "", "update policies/": f"update {CHECKOUT}/policies/",
        "/opt/haclusterd/share/haclusterd/policies": str(CHECKOUT / "policies")}  # fmt: skip
"""What this cluster has in the place of words."""
PROGRAMS = ("web/run", "worker1", "worker2")
FILES = {
    "web.yaml": "resources:\n  - primitive: blog\n    agent: ocf:haclusterd:dummy\n",
    "web.crm": DUMMY.format("blog") + "\n",
}
PACEMAKERS = cib(
    properties=NO_FENCING + pair("maintenance-mode", "true"),
    resources='<primitive id="web" class="ocf" provider="haclusterd" type="dummy"><operations>'
    '<op id="m" name="monitor" interval="10s" timeout="20s"/></operations></primitive>',
    status=f'<node_state id="1" uname="n1" {MEMBER}/><node_state id="2" uname="n2" {MEMBER}/>',
)


ASKED_WHEN_WELL = ("crm cluster health", "crm status simple")
"""Their exit status is 0 when all is well, which it is not while a node changes its certificate."""
EMPTY = "crm configure erase nodes --force"


class Stage:
    """A cluster that has what the lines name, and a directory of their own."""

    def __init__(self, scenario: Scenario, here: Path) -> None:
        self.scenario, self.here, self._play = scenario, here, ""
        here.mkdir()
        for name, text in {**FILES, "cib.xml": PACEMAKERS, "pe-input-12.xml": PACEMAKERS}.items():
            (here / name).write_text(text)
        for name in PROGRAMS:
            program = here / "srv" / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text("#!/bin/sh\nexec sleep 100000\n")
            program.chmod(0o755)
        own, other = scenario.cluster.nodes["n2"].port, free_ports("127.0.0.2", 1)[0]
        addresses = {"10.0.0.2:7400": f"127.0.0.1:{own}", "10.1.0.2:7400": f"127.0.0.2:{other}"}
        self._words = {**HERE, "/srv/": f"{here}/srv/", **addresses}
        setup = scenario.cluster.directory / "setup"
        (setup / "n1" / "authority").symlink_to(setup / "authority")

    def begin(self, play: str, line: str) -> None:
        """Bring the cluster to where a page, or a line of the configuration's language, begins."""
        is_of_help = play == "crm configure" or "ready_url" in line or play == "crm resource"
        needed = found(NEEDED, line) if is_of_help else None
        self.scenario.until("no fencing to go on", lambda: "lost" not in self.scenario.states().values())
        if line in ASKED_WHEN_WELL:
            self.until_well()
        if play == self._play and needed is None:
            return
        if play != self._play:
            names = self.scenario.cluster.names
            for name in names:
                self.scenario.revive(name)
            self.scenario.until("all nodes online", lambda: len(self.scenario.online()) == len(names))
            for name in names:
                for attribute in self.scenario.attributes().get(name, ()):
                    self.scenario.must("node.attribute", node=name, action="delete", name=attribute, lifetime="reboot")
            if self.scenario.dc() != "n1":
                self.type("crm cluster transfer-leader n1")
            self._play = play
        if needed == ():
            self.type(EMPTY, "--force")
        base = BASES.get(play, (DUMMY.format("web"), DUMMY.format("db")))
        own = [each for each in base if not any(each.split()[1] == other.split()[1] for other in needed or ())]
        self.scenario.replace(f"{self.scenario.power()} meta target-role=Started", *own, *(needed or ()))
        self.scenario.settle()
        if needed is None:
            self.scenario.must("resource.cleanup")
            self.scenario.must("fencing.cleanup")
            self.until_well()

    def until_well(self) -> None:
        """Wait until the cluster says that nothing is wrong."""
        self.scenario.until("all to be well", lambda: self.scenario.status()["verdict"] == "HEALTHY")

    def type(self, line: str, *options: str) -> tuple[int, str]:
        """Type a line; return the exit status and what was printed."""
        words = [*options, *shlex.split(self._in_words_of_here(line).partition(" <")[0])[1:]]
        for word in words:
            if word.endswith(".tar.gz"):
                (self.here / word).unlink(missing_ok=True)
        out = io.StringIO()
        client = ControlClient(str(self.scenario.cluster.nodes["n1"].socket))
        interrupted = Interrupted(client)
        given = replace(
            world(), streams=Streams(io.StringIO(DUMMY.format("blog") + "\n"), out, out),
            environment={"XDG_STATE_HOME": str(self.here / "kept"), "EDITOR": "true"}, connect=lambda _: interrupted,
        )  # fmt: skip
        try:
            return run(words, given), out.getvalue()
        finally:
            client.close()

    def _in_words_of_here(self, line: str) -> str:
        for one, other in self._words.items():
            line = line.replace(one, other)
        if "4.17" in line:
            newest = self.scenario.must("history.transitions", limit=1)["transitions"][0]
            line = line.replace("4.17", newest["transition"])
        return line


@pytest.fixture(scope="module", name="stage")
def make_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("documented")
    scenario = Scenario(directory / "cluster")
    try:
        yield Stage(scenario.form(), directory / "here")
    finally:
        scenario.close()


@pytest.mark.parametrize(("play", "line"), list(typed()))
def test_it_works(play: str, line: str, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stage.here)
    monkeypatch.setenv("EDITOR", "true")
    stage.begin(play, line)
    if re.fullmatch(ASKS, line):
        status, printed = stage.type(line)
        assert (status, "--force" in printed) == (ASKED, True), printed
    options = ["--force"] if re.fullmatch(ASKS, line) else []
    status, printed = stage.type(f"{line} {found(OPTIONS, line) or ''}", *options)
    expected, words = found(REFUSED, line) or (0, "")
    assert (status, words in printed) == (expected, True), printed


def test_every_reason_is_for_a_line_that_is_shown() -> None:
    shown = {line for lines in PLAYS.values() for line in lines}
    tables = (*NOT_HERE, *OPTIONS, *REFUSED, *NEEDED, ASKS)
    assert [each for each in tables if not any(re.fullmatch(each, line) for line in shown)] == []
