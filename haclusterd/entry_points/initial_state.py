"""The state with which all nodes of a new cluster begin, when it is made from a backup or from a lost cluster's data.

It is a file beside the node's certificates, in the form of a backup, the same for every node. Set-up turns it into the
snapshot of a log that begins after it: every node begins with it, or, where the file is missing, is sent it.

Invariant: everything is probed, and only of the node from which a cluster is recovered is it known what may run. The
file must never be put into a directory that belongs to a node already.
"""

import os
from pathlib import Path
from typing import Final

from haclusterd.adapters.history.tables import HistoryTables, Recorded
from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.cib.backup import Backup, BackupDamagedError, read_backup, write_backup
from haclusterd.cib.changes import ChangeKind
from haclusterd.cib.codec import encode_cib
from haclusterd.cib.recovery import STARTUP_PROBES, asking_what_runs
from haclusterd.model.cluster import Cib, ConfigurationVersion, HistoryMark, Status
from haclusterd.model.configuration import Configuration
from haclusterd.model.history_chain import chained
from haclusterd.model.ids import Term
from haclusterd.model.records import replace
from haclusterd.ports.history import HistoryRow
from haclusterd.ports.store import StoreDamagedError, StoreRefusedError
from haclusterd.raft.identity import IDENTITY_NAME
from haclusterd.raft.recovery import INITIAL_INDEX, begin_log
from haclusterd.runtime.history_rows import version_of
from haclusterd.runtime.settings import Installation

INITIAL_STATE: Final = "initial-state"
"""The file's name."""
BYTES_MAX: Final = 16 * 1024 * 1024


def successor(
    backup: Backup,
    configuration: Configuration,
    version: ConfigurationVersion,
    hidden: tuple[str, ...] = (),
    status: Status | None = None,
) -> Backup:
    """Return the initial state of a cluster that begins with this configuration, as the version after the backup's.

    `status` is what is known of the node that is left; None: nothing, since all nodes begin again.
    What the old cluster left running is looked for, whatever the configuration says; the version's reason names that.
    """
    old = backup.state
    asking = asking_what_runs(configuration)
    if asking != configuration:
        version = replace(version, reason=f"{version.reason}; without {STARTUP_PROBES}: every node is asked what runs")
    state = Cib(
        cluster_uuid=old.cluster_uuid,
        cluster_name=old.cluster_name,
        members=old.members,
        configuration=asking,
        version=version,
        status=status or Status(),
        index=INITIAL_INDEX,
    )
    earlier = (*backup.earlier, (old.version, old.configuration)) if old.version.epoch else backup.earlier
    return Backup(version.at, state, earlier, hidden)


def write_initial_state(bundle: Path, backup: Backup) -> None:
    """Put the state into a node's directory, readable by its owner only; raises OSError."""
    handle = os.open(bundle / INITIAL_STATE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(write_backup(backup, BYTES_MAX))
        file.flush()
        os.fsync(file.fileno())


def install_initial_state(installation: Installation, files: FilesDirectory, term: Term) -> bool:
    """Let the empty state directory begin with the initial state, after a term; return whether there is one.

    Raises StoreRefusedError when the directory belongs to a node, StoreDamagedError when the file is not whole,
    OSError.
    """
    path = installation.directory / INITIAL_STATE
    if not path.exists():
        return False
    if files.read(IDENTITY_NAME) is not None:
        identity = files.describe(IDENTITY_NAME)
        raise StoreRefusedError(f"{identity} exists: this data directory belongs to a node already")
    try:
        backup = read_backup(path.read_text(encoding="utf-8", errors="replace"))
    except BackupDamagedError as error:
        problem = f"{path}:{error.line}: {error.problem}"
        remedy = "Copy it from another node's directory, or restore the backup again."
        raise StoreDamagedError(f"{problem}. {remedy}") from None
    mark = _write_history(installation.state_directory / "history.sqlite", backup)
    old = backup.state
    state = Cib(
        configuration=old.configuration, version=old.version, status=old.status, index=INITIAL_INDEX, history=mark
    )
    begin_log(files, installation.cluster_uuid, installation.node, encode_cib(state), term)
    return True


def _write_history(path: Path, backup: Backup) -> HistoryMark:
    """Begin the history with how the cluster came to be; return where it stands."""
    old = backup.state
    text = f"this cluster continues {old.cluster_name} ({old.cluster_uuid}): {old.version.reason}"
    row = HistoryRow(INITIAL_INDEX, 0, old.version.at, str(ChangeKind.CLUSTER_FORMED), None, None, text)
    # Their log indices belong to another log.
    parts = [Cib(configuration=configuration, version=version) for version, configuration in backup.earlier]
    none, mark = HistoryMark(), HistoryMark(chained("", INITIAL_INDEX, [row.fact]))
    earlier = [Recorded(0, (), none, none, version_of(part)) for part in parts]
    tables = HistoryTables(path)
    try:
        tables.write([*earlier, Recorded(INITIAL_INDEX, (row,), none, mark, version_of(old))])
    finally:
        tables.close()
    return mark
