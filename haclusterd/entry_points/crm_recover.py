"""`crm cluster recover`: one node's data becomes a new cluster of that node alone, when the majority is lost for ever.

Every entry that this node's log holds is kept, committed or not: what was acknowledged by the lost majority may be
among them, and what was not is no lie either. What only the others had is gone. The new cluster has another uuid, other
keys and another authority, so that no lost node can come back into it.

It must never run while another node of the old cluster is heard or may be running, which no program can know: hence the
person's word. Nothing is deleted: the old directories are set aside (`begun_recovery`).
"""

import sqlite3
from collections.abc import Mapping
from pathlib import Path

from haclusterd.adapters.history.tables import HistoryTables
from haclusterd.adapters.history.version_table import content, versions
from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.adapters.machine.machine_identity import machine_marks
from haclusterd.adapters.network.cluster_probe import Presence, probe
from haclusterd.cib.backup import Backup, state_of
from haclusterd.cib.codec import CodecError
from haclusterd.cib.recovery import folded, status_of_the_one_left
from haclusterd.entry_points.begun_recovery import (
    BegunRecovery,
    discard_prepared,
    find_begun,
    free_name,
    make_place,
)
from haclusterd.entry_points.cluster_setup import NodePlaces, make_bundles
from haclusterd.entry_points.crm_restore import fork_objections, now
from haclusterd.entry_points.crm_setup import answer, read_text
from haclusterd.entry_points.initial_state import successor, write_initial_state
from haclusterd.model.cluster import Cib, ConfigurationVersion, Member
from haclusterd.model.configuration import Configuration
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, replace
from haclusterd.model.requests import Response
from haclusterd.ports.store import StoreDamagedError, StoreRefusedError
from haclusterd.raft.identity import require_identity, require_machine
from haclusterd.raft.recovery import LogRead, read_log
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.runtime.history_rows import read_version
from haclusterd.runtime.settings import CONFIGURATION_DIRECTORY, CONFIGURATION_FILE, Installation, SettingsError, load
from haclusterd.verbs.answers.answer import as_json
from haclusterd.verbs.answers.crm import Setup

DEFAULT_CONFIGURATION = CONFIGURATION_DIRECTORY / CONFIGURATION_FILE
HISTORY = "history.sqlite"
NOT_SAID = (
    "the services of the lost nodes are started here; where one of them still runs, they run twice and destroy data"
)


@dataclass(frozen=True, slots=True)
class Found:
    """What one node's data directory holds."""

    cib: Cib
    log: LogRead
    earlier: tuple[tuple[ConfigurationVersion, Configuration], ...]


def recover(arguments: Mapping[str, Json], author: str) -> Response:
    """Make this node the only voter of a new cluster; it must be stopped. One that was killed is completed."""
    path = Path(read_text(arguments, "configuration") or DEFAULT_CONFIGURATION)
    try:
        begun = find_begun(path.parent)
        installation = load(path if begun is None else begun.old_directory / path.name)
    except (SettingsError, StoreRefusedError, StoreDamagedError, OSError) as error:
        return answer([report(Code.UNREADABLE, what=path, problem=error)])
    try:
        objections = _objections(arguments, installation)
        if objections:
            return answer(objections)
        if begun is not None:
            begun.complete()
            return answer([report(Code.RECOVERED, node=installation.node)], begun.answer)
        return _recover(installation, author)
    except StoreRefusedError as error:
        return answer([report(Code.REFUSED, problem=error)])
    except StoreDamagedError as error:
        problem = f"{error} Recover on another node, or restore a backup."
        return answer([report(Code.UNREADABLE, what=installation.state_directory, problem=problem)])
    except OSError as error:
        return answer([report(Code.INPUT_OUTPUT, what=error.filename or path, problem=error.strerror or str(error))])


def _objections(arguments: Mapping[str, Json], installation: Installation) -> list[ReportItem]:
    me = installation.node
    others = {each.name: each.addresses for each in installation.members if each.name != me}
    heard = probe(installation.cluster_uuid, others)
    objections = fork_objections(heard, installation.cluster_uuid)
    unsure = sorted({str(each.node) for each in heard if each.presence is Presence.UNSURE})
    if unsure:
        problem = f"something listens where {', '.join(unsure)} did, and does not say what it is"
        objections.append(report(Code.REFUSED, problem=problem, remedy="power it off, or end what listens there"))
    if not objections and arguments.get("has_checked") is not True:
        names = ", ".join(sorted(map(str, others))) or "no other node"
        problem = f"{NOT_SAID}. Nothing was changed"
        remedy = f"power off {names} for good, look at each of them, then repeat with --i-have-checked"
        objections.append(report(Code.UNSAFE, problem=problem, remedy=remedy))
    return objections


def read_data(installation: Installation, files: FilesDirectory) -> Found:
    """Fold what a stopped node's data directory holds; raises StoreRefusedError, StoreDamagedError, OSError."""
    log = read_log(files, installation.cluster_uuid, installation.node)
    try:
        cib = folded(log.snapshot, log.entries)
    except CodecError as error:
        raise StoreDamagedError(f"{files.describe('snapshot')}: {error}.") from None
    return Found(cib, log, _earlier(installation.state_directory / HISTORY, cib.version.epoch))


def _earlier(path: Path, present: int) -> tuple[tuple[ConfigurationVersion, Configuration], ...]:
    """Read the older versions; a history that cannot be read hinders nobody."""
    if not path.exists():
        return ()
    found = []
    try:
        tables = HistoryTables(path)
        try:
            for each in versions(tables.database):
                found_content = content(tables.database, each.number)
                if found_content is not None and each.number < present:
                    version = ConfigurationVersion(each.number, each.author, each.at, each.reason)
                    found.append((version, read_version(found_content)))
        finally:
            tables.close()
    except (OSError, ValueError, sqlite3.Error):
        return tuple(found)
    return tuple(found)


def _recover(installation: Installation, author: str) -> Response:
    directory, state = installation.directory.absolute(), installation.state_directory.absolute()
    if directory.is_relative_to(state) or state.is_relative_to(directory):
        raise StoreRefusedError(f"{state} and {directory} are one in the other: neither can be set aside alone")
    files = FilesDirectory(state)
    try:
        found = read_data(installation, files)
        # A copy of the node must not continue beside it, alone or not.
        identity = require_identity(files, installation.cluster_uuid, installation.node)
        require_machine(files, identity, machine_marks(installation.machine_id_file))
        if not found.cib.cluster_uuid:
            raise StoreRefusedError(f"{installation.state_directory} holds no cluster yet: start the daemon")
        discard_prepared(directory)
        me = next(each for each in installation.members if each.name == installation.node)
        made = _prepare(installation, found, me, author)
        aside = (free_name(directory, "before-recovery"), free_name(state, "before-recovery"))
        authority = free_name(directory, "authority")
        data = _data(installation, found, (*aside, authority))
        begun = BegunRecovery(made, str(me.name), directory, state, *aside, authority, found.log.term, data)
        begun.write()
        begun.complete()
    finally:
        files.close()
    return answer([report(Code.RECOVERED, node=installation.node)], data)


def _prepare(installation: Installation, found: Found, me: Member, author: str) -> Path:
    """Make the new node's files beside the old ones; nothing is in use yet."""
    made = make_place(installation.directory)
    place = NodePlaces(
        installation.state_directory, installation.runtime_directory, installation.boot_id_file,
        installation.is_development, installation.watchdog, installation.machine_id_file,
    )  # fmt: skip
    alone = replace(me, is_voter=True)
    bundles = make_bundles(installation.cluster_name, [alone], made, places={me.name: place})
    old = found.cib.version
    reason = f"recovered from {me.name} alone, entry {found.cib.index}"
    version = ConfigurationVersion(old.epoch + 1, author, now(), reason)
    state, status = state_of(found.cib, found.cib.configuration), status_of_the_one_left(found.cib, me.name)
    backup = Backup(version.at, state, found.earlier)
    write_initial_state(bundles[me.name], successor(backup, state.configuration, version, status=status))
    return made


def _data(installation: Installation, found: Found, aside: tuple[Path, Path, Path]) -> Json:
    """Return what the answer says: where the old files are, and what is to be done next."""
    directory, state, authority = aside
    lost = ", ".join(str(each.name) for each in installation.members if each.name != installation.node)
    made = Setup(
        name=installation.cluster_name,
        nodes=(installation.node,),
        directory=str(installation.directory),
        index=found.cib.index,
        version=found.cib.version.epoch,
        uncommitted=found.log.uncommitted,
        files=(f"old configuration: {directory}", f"old state: {state}", f"new authority: {authority}"),
        next_steps=(
            f"{installation.node} is the only voter of a new cluster; it begins with version"
            f" {found.cib.version.epoch} of the old one, as of log entry {found.cib.index}.",
            f"{found.log.uncommitted} entries were kept that may never have been acknowledged to anybody.",
            f"Gone is what only these knew: {lost or 'nobody'}. They cannot come back under their old identity.",
            "Start it: systemctl start haclusterd",
            "Then look: crm status; crm history config",
            "To have three voters again: crm cluster backup FILE, stop this node, crm cluster restore FILE --into DIR",
        ),
    )
    return as_json(made)
