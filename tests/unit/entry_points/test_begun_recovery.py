"""`crm cluster recover` that is killed: the old node is there, or the new one, or the verb completes it."""

import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.cib.backup import Backup, read_backup, write_backup
from haclusterd.cib.codec import decode_cib, encode_cib
from haclusterd.entry_points.begun_recovery import find_begun
from haclusterd.entry_points.cluster_setup import NodePlaces, make_bundles
from haclusterd.entry_points.crm_recover import recover
from haclusterd.entry_points.crm_restore import restore
from haclusterd.entry_points.initial_state import INITIAL_STATE
from haclusterd.model.cluster import Cib, ConfigurationVersion, Member, NodeState, NodeStatus, Status
from haclusterd.model.configuration import AttributeSet, Configuration
from haclusterd.model.history import ReloadInDoubt, ResourceHistory
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.model.requests import Response
from haclusterd.raft.identity import create_identity, mark_started, require_identity
from haclusterd.raft.recovery import begin_log, read_log
from haclusterd.runtime.settings import CONFIGURATION_FILE, load

N1 = NodeName("n1")
TERM = Term(7)
CHANGES = frozenset({"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "sqlite3.connect"})
STARTED = ResourceHistory(
    ResourceId("db"), AgentReference("ocf", "heartbeat", "pgsql"), parameters={"pgdata": "/srv/db"},
    reloads=(ReloadInDoubt({"pgdata": "/srv/old"}),),
)  # fmt: skip
"""It runs, one way or the other."""
CONFIGURED = Configuration(properties=(AttributeSet("cib-bootstrap-options", (("batch-limit", "7"),)),))
RUNNING = Status(nodes={
    N1: NodeStatus(N1, NodeState.ONLINE, Incarnation("boot", "token"), histories={ResourceId("db"): STARTED}),
})  # fmt: skip


def killed_at(act: Callable[[], Response], below: Path, moment: int) -> bool:
    """Do something in a process that is killed right before so many changes below a directory; tell whether it was."""
    child = os.fork()
    if child == 0:
        _die_at(below, moment)
        os._exit(act().exit)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def _die_at(below: Path, moment: int) -> None:
    count = 0

    def look(event: str, arguments: Sequence[object]) -> None:
        nonlocal count
        is_written = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if (event in CHANGES or is_written) and str(below) in str(arguments[0]):
            count += 1
            if count > moment:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)


class Machine:
    """One machine's directories: `etc/haclusterd`, `var/haclusterd`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.directory, self.state = root / "etc" / "haclusterd", root / "var" / "haclusterd"

    def set_up(self) -> None:
        """Make the node of a cluster of three, of which nobody listens any more."""
        members = [Member(NodeName(f"n{number}"), (("127.0.0.1", number),), is_voter=True) for number in (1, 2, 3)]
        place = NodePlaces(self.state, self.root / "run", self.root / "boot_id")
        made = make_bundles("web", members, self.root / "made", places={N1: place})
        self.directory.parent.mkdir()
        made[N1].rename(self.directory)
        self.state.mkdir(parents=True)
        uuid = load(self.directory / CONFIGURATION_FILE).cluster_uuid
        version = ConfigurationVersion(5, "root", WallTime(1), "before")
        cib = Cib(cluster_uuid=uuid, cluster_name="web", configuration=CONFIGURED, version=version, status=RUNNING)
        files = FilesDirectory(self.state)
        begin_log(files, uuid, N1, encode_cib(cib), TERM)
        create_identity(files, uuid, N1)

    def recover(self) -> Response:
        path = self.directory / CONFIGURATION_FILE
        return recover({"configuration": str(path), "has_checked": True}, "root")

    def killed_at(self, moment: int) -> bool:
        """Recover in a process that is killed right before so many changes of files; return whether it was."""
        return killed_at(self.recover, self.root, moment)

    def uuid(self) -> str | None:
        """Return of which cluster this is a node; None: of none, no daemon starts."""
        path = self.directory / CONFIGURATION_FILE
        return load(path).cluster_uuid if path.exists() else None

    def state_content(self, uuid: str) -> tuple[Cib, Term]:
        """Read what a daemon would begin with; raises when it could not begin."""
        files = FilesDirectory(self.state)
        require_identity(files, uuid, N1)
        log = read_log(files, uuid, N1)
        files.close()
        assert log.snapshot is not None
        return decode_cib(log.snapshot), log.term

    def names(self) -> set[str]:
        return {path.name for parent in (self.directory.parent, self.state.parent) for path in parent.iterdir()}


COMPLETE = {"haclusterd", "haclusterd.before-recovery-1", "haclusterd.authority-1"}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine, and how it was, to be begun with again and again."""
    machine = Machine(tmp_path_factory.mktemp("machines") / "machine")
    machine.root.mkdir()
    machine.set_up()
    shutil.copytree(machine.root, machine.root.with_name("kept"))
    return machine.root


def as_it_was(prepared: Path) -> Machine:
    shutil.rmtree(prepared)
    shutil.copytree(prepared.with_name("kept"), prepared)
    return Machine(prepared)


def judge(machine: Machine, old: str) -> None:
    """Old node or new, its daemon finds all that it needs; the verb repeated makes it the new one."""
    left = machine.uuid()
    if left is not None:
        cib, term = machine.state_content(left)
        assert (cib.configuration, cib.version.epoch, term) == (CONFIGURED, 5 if left == old else 6, TERM)
    answer = machine.recover()
    if answer.exit:
        # All had been done, and perhaps an empty directory was left behind.
        assert "start the daemon" in answer.reports[0].message
        assert machine.uuid() == left != old
        assert machine.names() - {"haclusterd.recovering-1"} == COMPLETE
        return
    new = machine.uuid()
    assert new not in (None, old)
    assert new is not None
    cib, term = machine.state_content(new)
    assert (cib.configuration, cib.version.epoch, term) == (CONFIGURED, 6, TERM)
    assert cib.status.nodes[N1].histories == {ResourceId("db"): STARTED}
    assert machine.names() == COMPLETE
    assert (machine.directory.with_name("haclusterd.authority-1") / "authority.key").exists()
    aside = machine.state.with_name("haclusterd.before-recovery-1")
    assert sorted(path.name for path in aside.iterdir()) == ["identity", "journal", "lock", "snapshot"]


@pytest.mark.parametrize("share", range(4))
def test_a_recovery_that_is_killed_at_any_change_of_a_file_is_completed_by_the_same_command(
    prepared: Path, share: int
) -> None:
    moment = share
    while True:
        machine = as_it_was(prepared)
        old = machine.uuid()
        assert old is not None
        was_killed = machine.killed_at(moment)
        judge(machine, old)
        if not was_killed:
            break
        moment += 4
    assert moment > 20


def test_a_plan_that_was_left_behind_is_no_recovery_once_the_new_node_has_run(prepared: Path) -> None:
    machine = as_it_was(prepared)
    old, moment = machine.uuid(), 0
    while machine.uuid() in (None, old):
        machine = as_it_was(prepared)
        assert machine.killed_at(moment), "killed when all was in place, and the plan still there"
        moment += 1
    new = machine.uuid()
    assert new is not None
    assert find_begun(machine.directory) is not None
    files = FilesDirectory(machine.state)
    mark_started(files, require_identity(files, new, N1))
    assert find_begun(machine.directory) is None


def test_a_restore_that_is_killed_leaves_all_directories_whole_or_none(prepared: Path, tmp_path: Path) -> None:
    backup, into = tmp_path / "web.backup", tmp_path / "made"
    machine = as_it_was(prepared)
    uuid = machine.uuid()
    assert uuid is not None
    cib = replace(machine.state_content(uuid)[0], cluster_uuid=uuid)
    members = {NodeName(f"n{number}"): Member(NodeName(f"n{number}"), (("127.0.0.1", number),)) for number in (1, 2)}
    backup.write_text(write_backup(Backup(WallTime(1), replace(cib, members=members)), 10**6))
    arguments = {"backup": str(backup), "into": str(into)}
    moment, was_killed = 0, True
    while was_killed:
        was_killed = killed_at(lambda: restore(arguments, "root"), tmp_path, moment)
        if into.exists():
            for name in members:
                assert read_backup((into / name / INITIAL_STATE).read_text()).state.configuration == CONFIGURED
            shutil.rmtree(into)
        assert restore(arguments, "root").exit == 0
        shutil.rmtree(into)
        moment += 3
    assert moment > 10
