"""The agent postgres with real servers: no acknowledged commit is lost, no two copies take writes, whatever dies."""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from haclusterd.agents.ocf import ActionError
from haclusterd.agents.postgres_server import Account, Server
from haclusterd.agents.process_table import read_stat
from tests.agents import postgres_nodes
from tests.agents.answering_daemon import AnsweringDaemon
from tests.agents.conftest import AGENTS, AgentUnderTest
from tests.agents.postgres_nodes import PostgresNode, kill, wait_for

OK, ERROR, NOT_INSTALLED, NOT_CONFIGURED, NOT_RUNNING, PROMOTED, FAILED_PROMOTED = 0, 1, 5, 6, 7, 8, 9
DEGRADED, DEGRADED_PROMOTED = 190, 191
NAMES = ("n1", "n2", "n3")
SHORT_S = 0.7

pytestmark = pytest.mark.skipif(bool(postgres_nodes.obstacle()), reason=postgres_nodes.obstacle() or "-")


class Copies:
    """Three nodes; what the cluster does, done by hand."""

    def __init__(
        self, base: Path, make_agent: Callable[..., AgentUnderTest], daemon: AnsweringDaemon, *names: str
    ) -> None:  # fmt: skip
        self.place = Path(tempfile.mkdtemp(prefix="pg-", dir=base.parent))
        self.place.chmod(0o711)
        nodes = " ".join(f"{name}={self.place / name}:5432" for name in NAMES)
        self.nodes = {}
        for name in names:
            agent = make_agent(
                "postgres", pgdata=str(self.place / name / "data"), node_list=nodes, patience="1500ms",
                options=f"-c unix_socket_directories={self.place / name}",
                log_file=str(self.place / f"{name}.log"), CRM_meta_interval="10000",
            )  # fmt: skip
            agent.instance = "pg"
            agent.environment.update(HACLUSTERD_SOCKET=str(daemon.socket),
                                     PATH=f"{AGENTS.parent / 'shims'}:/usr/bin:/bin")  # fmt: skip
            self.nodes[name] = PostgresNode(name, self.place / name, base, agent, daemon)

    def __getitem__(self, name: str) -> PostgresNode:
        return self.nodes[name]

    def change(self, **parameters: str) -> None:
        for node in self.nodes.values():
            node.agent.parameters.update(parameters)

    def start(self, *names: str) -> None:
        for name in names or NAMES:
            done = self[name].agent.run("start")
            assert (done.returncode, done.stderr) == (OK, "")
        self.monitor(*(names or NAMES))

    def monitor(self, *names: str) -> None:
        for name in names:
            self[name].agent.run("monitor")

    def notify(self, occasion: str, node: str, active: tuple[str, ...]) -> None:
        """Notify all active instances, standbys first: they connect while the primary waits for them."""
        when, operation = occasion.split("-")
        lists = {"CRM_meta_notify_active_uname": " ".join(active), f"CRM_meta_notify_{operation}_uname": node}
        for name in sorted(active, key=lambda each: each == node):
            done = self[name].agent.run(
                "notify", CRM_meta_notify_type=when, CRM_meta_notify_operation=operation, **lists
            )
            assert (done.returncode, done.stderr) == (OK, "")

    def promote(self, name: str, *others: str) -> None:
        done = self[name].agent.run("promote", CRM_meta_notify_active_uname=" ".join((name, *others)))
        assert (done.returncode, done.stderr) == (OK, "")
        self.notify("post-promote", name, (name, *others))

    def standbys(self, name: str) -> set[str]:
        """Return who has all, by a node's record."""
        words = dict(word.split("=") for word in self[name].kept("primary").split())
        return set(words["standbys"].split(",")) - {"-"}

    def refused(self, name: str, *words: str) -> None:
        """See that a promotion is refused in these words, and that the server stays a standby."""
        done = self[name].agent.run("promote")
        assert done.returncode == ERROR
        for word in words:
            assert word in done.stderr
        assert self[name].ask("SELECT pg_is_in_recovery()") == "t"
        assert self[name].score == ""

    def end(self) -> None:
        for node in self.nodes.values():
            node.crash()
        shutil.rmtree(self.place)


@pytest.fixture
def pg(postgres_base: Path, make_agent, daemon: AnsweringDaemon) -> Iterator[Copies]:
    made = Copies(postgres_base, make_agent, daemon, *NAMES)
    yield made
    made.end()


@pytest.fixture
def lone(postgres_base: Path, make_agent, daemon: AnsweringDaemon) -> Iterator[PostgresNode]:
    """Make n1, which knows of the others, and nothing else."""
    made = Copies(postgres_base, make_agent, daemon, "n1")
    yield made["n1"]
    made.end()


@pytest.fixture
def served(pg: Copies) -> Copies:
    """Make n1 primary and n2 its synchronous standby; n3 follows."""
    pg.start()
    pg.promote("n1", "n2", "n3")
    pg["n1"].write(1)
    return pg


def test_all_copies_are_known_where_a_tool_takes_the_node_of_the_action_for_all_nodes(
    pg: Copies, tmp_path: Path
) -> None:
    """`attrd_updater -Q -A` of Pacemaker 2.1.5 answers for OCF_RESKEY_CRM_meta_on_node alone, where that is set."""
    tool = tmp_path / "attrd_updater"
    tool.write_text(
        '#!/bin/sh\n[ "$OCF_RESKEY_CRM_meta_on_node" ] && [ "$4" = -A ] && set -- "$1" "$2" "$3" -N '
        f'"$OCF_RESKEY_CRM_meta_on_node"\nexec {AGENTS.parent}/shims/attrd_updater "$@"\n'
    )
    tool.chmod(0o755)
    for name, node in pg.nodes.items():
        node.agent.parameters["CRM_meta_on_node"] = name
        node.agent.environment["PATH"] = f"{tmp_path}:{node.agent.environment['PATH']}"
    pg.start()
    pg.monitor("n1")
    assert (pg["n1"].score, pg["n2"].score, pg["n3"].score) == ("100", "", "")


def test_the_first_promotion_and_what_everybody_is_then(pg: Copies) -> None:
    assert [pg[name].agent.code("monitor", CRM_meta_interval="0") for name in NAMES] == [NOT_RUNNING] * 3
    pg.start("n1", "n2")
    assert (pg["n1"].score, pg["n2"].score) == ("", "")
    pg.refused("n1", "no-record: no primary has recorded anything, and the position of n3 is not known")
    pg.start("n3")
    pg.monitor("n1")
    assert (pg["n1"].score, pg["n2"].score, pg["n3"].score) == ("100", "", "")
    pg.refused("n2", "no-record: this copy is at", "and that of n1 at")
    pg.promote("n1", "n2", "n3")
    assert (pg["n1"].score, pg.standbys("n1")) == ("1000", {"n2"})
    assert pg["n1"].ask("SHOW synchronous_standby_names") == 'FIRST 1 ("n2")'
    pg["n1"].write(1)
    wait_for(lambda: pg["n3"].numbers() == {1})
    assert [pg[name].agent.code("monitor") for name in NAMES] == [PROMOTED, OK, OK]
    assert [pg[name].agent.code("monitor", CRM_meta_interval="0") for name in NAMES] == [PROMOTED, OK, OK]
    assert (int(pg["n2"].score) >= 100, pg["n3"].score) == (True, "")
    assert pg["n1"].agent.code("promote") == OK
    assert pg["n1"].agent.code("stop") == OK
    assert pg["n1"].agent.code("monitor", CRM_meta_interval="0") == NOT_RUNNING


def test_a_lost_primary_is_followed_by_the_standby_that_has_everything_and_by_no_other(served: Copies) -> None:
    served["n3"].crash()
    for number in range(2, 30):
        served["n1"].write(number)
    served["n1"].crash()
    done = served["n1"].agent.run("monitor")
    assert (done.returncode, "no server process" in done.stderr, served["n1"].score) == (NOT_RUNNING, True, "10")
    served.start("n3")
    served.refused("n3", "stale: this copy is at ", "of timeline 2; the last primary, n1, was at ", "n1 and n2 need")
    served.promote("n2", "n3")
    assert served["n2"].numbers() == set(range(1, 30))
    assert served.standbys("n2") == {"n3"}
    served["n2"].write(30)
    served.start("n1")
    wait_for(lambda: served["n1"].numbers() == set(range(1, 31)))
    served.refused("n1", "stale: this copy is at ", "the last primary, n2, was at ")


def test_the_last_primary_itself_may_come_back(served: Copies) -> None:
    for node in served.nodes.values():
        node.crash()
    served.start("n1", "n3")
    served.promote("n1", "n3")
    assert served["n1"].numbers() == {1}
    assert served.standbys("n1") == {"n3"}
    served["n1"].write(2)


def test_nothing_is_acknowledged_before_a_standby_is_recorded(pg: Copies) -> None:
    pg.start()
    assert pg["n1"].agent.code("promote") == OK
    with pytest.raises(ActionError):
        pg["n1"].write(1, SHORT_S)
    assert pg["n1"].agent.code("monitor") == DEGRADED_PROMOTED
    assert pg["n1"].kept("primary") == ""


def test_a_promotion_that_died_before_it_recorded_anything_leaves_its_timeline_to_nobody(served: Copies) -> None:
    served["n1"].crash()
    assert served["n2"].agent.code("promote") == OK
    with pytest.raises(ActionError):
        served["n2"].write(666, SHORT_S)
    served["n2"].crash()
    served.start("n1", "n3")
    served.promote("n1", "n3")
    assert served["n1"].ask("SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)") == "00000004"
    served["n1"].write(2)
    done = served["n2"].agent.run("start")
    assert (done.returncode, "diverged: this copy is at " in done.stderr) == (NOT_INSTALLED, True)
    assert "of timeline 3" in done.stderr
    done = served["n2"].agent.run("start", rewind="yes")
    assert (done.returncode, done.stderr) == (OK, "")
    wait_for(lambda: served["n2"].numbers() == {1, 2})


def test_a_primary_whose_standby_is_lost_waits_and_another_takes_its_place(served: Copies) -> None:
    served["n2"].crash()
    served["n3"].crash()
    assert served["n1"].agent.code("monitor") == DEGRADED_PROMOTED
    with pytest.raises(ActionError):
        served["n1"].write(2, SHORT_S)
    assert served.standbys("n1") == {"n2"}
    served.start("n3")
    served.refused("n3", "stale: ")
    assert served["n1"].agent.code("monitor") == PROMOTED
    assert served.standbys("n1") == {"n3"}
    served["n1"].write(3)
    served["n1"].crash()
    served.start("n2")
    served.refused("n2", "stale: ", "n1 and n3 need have")
    served.promote("n3", "n2")
    assert {1, 3} <= served["n3"].numbers()


def test_a_standby_leaves_the_commits_before_it_stops(served: Copies) -> None:
    recorded = served["n1"].kept("primary")
    served["n1"].write(3)
    served.notify("pre-stop", "n3", ("n1", "n2", "n3"))
    # What is recorded ends the plan that n3 stops by, and the next one notifies again: under writes for ever.
    assert served["n1"].kept("primary") == recorded
    served.notify("pre-stop", "n2", ("n1", "n2", "n3"))
    assert served.standbys("n1") == {"n3"}
    assert served["n2"].agent.code("stop") == OK
    served["n1"].write(2, SHORT_S)


def test_a_primary_may_go_on_alone_and_the_copies_that_it_left_are_stale(served: Copies) -> None:
    served.change(when_alone="continue")
    served["n2"].crash()
    served["n3"].crash()
    done = served["n1"].agent.run("monitor")
    assert (done.returncode, "no-standby: commits are acknowledged" in done.stderr) == (DEGRADED_PROMOTED, True)
    served["n1"].write(2, SHORT_S)
    assert served.standbys("n1") == set()
    served.start("n2")
    wait_for(lambda: served["n2"].numbers() == {1, 2})
    served.refused("n2", "stale: ", "and only n1 need have")
    assert served["n1"].agent.code("monitor") == PROMOTED
    assert served.standbys("n1") == {"n2"}
    served["n1"].write(3)
    served["n1"].crash()
    served.promote("n2")
    assert served["n2"].numbers() == {1, 2, 3}


def test_a_former_primary_with_what_nobody_else_has_is_refused_or_rewound(served: Copies) -> None:
    for name in ("n2", "n3"):
        served[name].crash()
    with pytest.raises(ActionError):
        served["n1"].write(666, SHORT_S)
    served["n1"].crash()
    served.start("n2", "n3")
    served.promote("n2", "n3")
    served["n2"].write(2)
    done = served["n1"].agent.run("start")
    assert done.returncode == NOT_INSTALLED
    assert "diverged: this copy is at " in done.stderr
    assert "set rewind=yes to give up what only this copy has, or make a new copy" in done.stderr
    assert served["n1"].server.members() == []
    done = served["n1"].agent.run("start", rewind="yes")
    assert (done.returncode, done.stderr) == (OK, "")
    wait_for(lambda: served["n1"].numbers() == {1, 2})
    assert served["n1"].agent.code("monitor") == OK
    assert served["n1"].kept("rewinding") == ""


def test_a_copy_whose_rewinding_was_interrupted_is_not_started(served: Copies) -> None:
    served["n3"].crash()
    set_kept(served["n3"], "rewinding", "yes")
    done = served["n3"].agent.run("start")
    assert (done.returncode, "half-rewound: " in done.stderr) == (NOT_INSTALLED, True)
    assert served["n3"].server.members() == []


def test_a_switchover_loses_nothing_and_the_old_primary_follows(served: Copies) -> None:
    assert served["n1"].agent.code("demote") == OK
    assert served["n1"].agent.code("demote") == OK
    assert served["n1"].agent.code("monitor") in (OK, DEGRADED)
    served.promote("n2", "n1", "n3")
    served["n2"].write(2)
    for name in NAMES:
        wait_for(partial(served[name].has, {1, 2}))
    assert served["n1"].agent.code("demote") == OK


def test_a_hanging_server_is_not_a_dead_one_and_can_be_stopped(served: Copies) -> None:
    server = served["n1"].server
    main = server.main_process(server.members())
    kill(main, signal.SIGSTOP)
    began = time.monotonic()
    done = served["n1"].agent.run("monitor", timeout_ms=4000)
    assert done.returncode == FAILED_PROMOTED
    assert "hangs: process" in done.stderr
    assert "(state=T)" in done.stderr
    assert time.monotonic() - began < 4
    assert served["n1"].agent.code("stop") == OK
    assert server.members() == []


def test_a_main_process_that_was_killed_leaves_a_failure_and_no_process(served: Copies) -> None:
    server = served["n1"].server
    for pid in (members := server.members()):
        kill(pid, signal.SIGSTOP if pid != server.main_process(members) else 0)
    kill(server.main_process(members), signal.SIGKILL)
    wait_for(lambda: not server.main_process(server.members()))
    done = served["n1"].agent.run("monitor")
    assert (done.returncode, "main-lost: the main process is gone" in done.stderr) == (FAILED_PROMOTED, True)
    assert served["n1"].agent.code("start") == OK
    assert served["n1"].agent.code("monitor") in (OK, DEGRADED)


def test_a_primary_does_not_go_on_alone_while_another_node_promotes(served: Copies) -> None:
    served.change(when_alone="continue")
    served["n3"].crash()
    # The cluster would have fenced n1 before; the copies are safe without that.
    assert served["n2"].agent.code("promote") == OK
    done = served["n1"].agent.run("monitor")
    assert (done.returncode, "rival: n2" in done.stderr) == (DEGRADED_PROMOTED, True)
    with pytest.raises(ActionError):
        served["n1"].write(666, SHORT_S)
    with pytest.raises(ActionError):
        served["n2"].write(667, SHORT_S)
    # n1 has recorded that it needs nobody: n2 may lack what n1 acknowledges later, and n1 waits until n2 steps back.
    done = served["n2"].agent.run("promote")
    assert (done.returncode, "superseded: stale: " in done.stderr) == (FAILED_PROMOTED, True)
    assert served["n2"].agent.code("stop") == OK
    assert served["n2"].agent.code("start") in (OK, NOT_INSTALLED)
    assert served["n1"].agent.code("monitor") in (PROMOTED, DEGRADED_PROMOTED)
    served["n1"].write(2)


def test_a_promotion_that_comes_late_is_judged_again_before_anything_is_acknowledged(served: Copies) -> None:
    served["n3"].crash()
    assert served["n2"].agent.code("promote") == OK
    # Its announcement was closed meanwhile, as when the agent died, and n1 has recorded that it goes on with n3.
    set_kept(served["n2"], "promoting", "3 closed")
    served.start("n3")
    assert served["n1"].agent.code("monitor") == PROMOTED
    served["n1"].write(2)
    done = served["n2"].agent.run("monitor")
    assert (done.returncode, "superseded: stale: " in done.stderr) == (FAILED_PROMOTED, True)
    with pytest.raises(ActionError):
        served["n2"].write(666, SHORT_S)
    assert served.standbys("n1") == {"n3"}


def set_kept(node: PostgresNode, kind: str, value: str) -> None:
    tool = AGENTS.parent / "shims" / "crm_attribute"
    words = [tool, "-N", node.name, "-l", "forever", "-n", f"pg-{kind}", "-v", value]
    subprocess.run(words, env={"PATH": "/usr/bin:/bin", **node.agent.environment}, check=True)


def test_without_the_cluster_nothing_is_promoted_and_a_monitor_still_answers(served: Copies) -> None:
    for name in NAMES:
        served[name].agent.environment["HACLUSTERD_SOCKET"] = "/no/such/socket"
    done = served["n1"].agent.run("monitor")
    assert (done.returncode, "not-recorded: " in done.stderr) == (DEGRADED_PROMOTED, True)
    assert served["n2"].agent.code("promote") == ERROR
    assert served["n2"].ask("SELECT pg_is_in_recovery()") == "t"
    assert served["n1"].agent.code("demote") == OK
    assert served["n1"].ask("SELECT pg_is_in_recovery()") == "t"
    assert served["n1"].agent.code("stop") == OK


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"pgdata": "data", "when_alone": "perhaps"}, ("pgdata: not an absolute path: 'data'", "when_alone: neither")),
        ({"sync_standbys": "0", "max_lag": "-1"}, ("sync_standbys: below 1: '0'", "max_lag: below 0: '-1'")),
        ({"node_list": "n1 n1"}, ("node_list: names a node twice",)),
        ({"node_list": "n2 n3"}, ("node_list: does not name this node, n1",)),
        ({"node_list": "n1=db1:x n2"}, ("node_list: not node, node=host or node=host:port: 'n1=db1:x'",)),
        ({"replication": "host=n2 user"}, ("replication: ",)),
        ({"patience": "soon", "rewind": "perhaps"}, ("patience: not a duration: 'soon'", "rewind: not a boolean")),
    ],
)
def test_each_wrong_parameter_is_named(lone: PostgresNode, wrong: dict[str, str], words: tuple[str, ...]) -> None:
    done = lone.agent.run("validate-all", **wrong)
    assert done.returncode == NOT_CONFIGURED
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize(
    ("lacking", "word"),
    [({"user": "nobody-here"}, "user: "), ({"pgdata": "/no/such/place"}, "pgdata: "), ({"bindir": "/no"}, "program "),
     ({"config": "/no/such.conf"}, "config: ")],
)  # fmt: skip
def test_what_this_node_lacks_is_its_own_problem(lone: PostgresNode, lacking: dict[str, str], word: str) -> None:
    done = lone.agent.run("start", **lacking)
    assert (done.returncode, word in done.stderr) == (NOT_INSTALLED, True)
    assert lone.agent.code("stop", **lacking) == OK


def test_alone_it_is_a_plain_server(lone: PostgresNode) -> None:
    node = lone
    node.agent.parameters.pop("node_list")
    for _ in range(2):
        done = node.agent.run("start")
        assert (done.returncode, done.stderr) == (OK, "")
    node.write(1)
    assert node.agent.code("monitor") == OK
    assert node.agent.code("promote") == NOT_CONFIGURED
    node.crash()
    assert node.agent.code("monitor") == NOT_RUNNING
    assert node.agent.code("start") == OK
    assert node.numbers() == {1}
    assert node.agent.code("stop") == OK


@pytest.mark.parametrize("how", ["moved", "covered"])
def test_a_server_whose_directory_is_taken_away_is_not_said_to_be_gone(served: Copies, how: str) -> None:
    node = served["n1"]
    aside = node.directory / "aside"
    main = int((node.data / "postmaster.pid").read_text().split()[0])
    node.data.rename(aside)
    if how == "covered":
        node.data.mkdir()
    done = node.agent.run("monitor")
    assert (done.returncode, f"moved: process {main}" in done.stderr) == (FAILED_PROMOTED, True), done.stderr
    assert node.agent.code("stop") == OK
    assert read_stat(main) is None or read_stat(main).is_dead
    assert node.agent.code("monitor") == NOT_RUNNING


def test_a_server_whose_directory_was_removed_is_known_by_its_name(lone: PostgresNode) -> None:
    node = lone
    node.agent.parameters.pop("node_list")
    assert node.agent.code("start") == OK
    server = Server(str(node.data), Account(postgres_nodes.USER))
    before = server.members()
    assert before
    shutil.rmtree(node.data)
    assert set(server.members()) & set(before)
    server.end(0.1, 0.1, lambda: 20.0)
    assert not server.members()
