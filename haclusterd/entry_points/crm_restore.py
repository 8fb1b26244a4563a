"""`crm cluster restore`: from a backup to the files of a new cluster that begins with the backup's configuration.

The new cluster has another uuid, other keys and another authority: nothing of the old one can speak with it. Nothing
is made while a daemon of the old cluster is heard.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from haclusterd.adapters.network.cluster_probe import Heard, Presence, probe
from haclusterd.cib.backup import Backup, BackupDamagedError, read_backup
from haclusterd.commands.node.backup import without_hidden
from haclusterd.entry_points.begun_recovery import free_name
from haclusterd.entry_points.cluster_setup import SetupRefusedError, make_bundles, require_new
from haclusterd.entry_points.crm_setup import advice, answer, read_members, read_text
from haclusterd.entry_points.initial_state import successor, write_initial_state
from haclusterd.model.cluster import ConfigurationVersion, Member
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.model.requests import Response
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs.answers.answer import as_json
from haclusterd.verbs.answers.crm import Setup

VERB = "cluster restore"


def restore(arguments: Mapping[str, Json], author: str) -> Response:
    """Make one directory for each node of the new cluster; reports everything wrong at once, and makes nothing then."""
    name, output = read_text(arguments, "backup"), read_text(arguments, "into")
    found = _read(name)
    if isinstance(found, ReportItem):
        return answer([found])
    members, objections = read_members(arguments, VERB, tuple(found.state.members.values()))
    if not output:
        objections.append(report(Code.MISSING_ARGUMENT, verb=VERB, name="--into", meaning="a new directory"))
    heard = probe(found.state.cluster_uuid, {each.name: each.addresses for each in found.state.members.values()})
    objections += fork_objections(heard, found.state.cluster_uuid)
    if objections:
        return answer(objections)
    cluster = read_text(arguments, "name") or found.state.cluster_name
    try:
        bundles = _make(cluster, members, Path(output), restored(found, author))
    except SetupRefusedError as error:
        return answer([report(Code.REFUSED, problem=error, remedy="name a directory that does not exist yet")])
    except OSError as error:
        return answer([report(Code.INPUT_OUTPUT, what=error.filename or output, problem=error.strerror or str(error))])
    secrets = [report(Code.SECRET_MISSING, what=what) for what in found.hidden]
    return answer([*warnings(heard), *secrets, *advice(members)], as_json(_made(found, cluster, output, bundles)))


def _make(cluster: str, members: Sequence[Member], output: Path, state: Backup) -> dict[NodeName, Path]:
    """Make the nodes' directories, all of them whole or none; raises SetupRefusedError, OSError."""
    require_new(output)
    made = free_name(output, "incomplete")
    bundles = make_bundles(cluster, members, made)
    for bundle in bundles.values():
        write_initial_state(bundle, state)
    made.rename(output)
    return {name: output / bundle.name for name, bundle in bundles.items()}


def _read(name: str) -> Backup | ReportItem:
    try:
        text = Path(name).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return report(Code.NO_INPUT, file=name, problem=error.strerror or str(error))
    try:
        return read_backup(text)
    except BackupDamagedError as error:
        return report(Code.DAMAGED, where=f"{name}:{error.line}", problem=error.problem)


def fork_objections(heard: Sequence[Heard], cluster: str) -> list[ReportItem]:
    """Return why no successor may be made: the old cluster lives."""
    alive = sorted({str(each.node) for each in heard if each.presence is Presence.HEARD})
    if not alive:
        return []
    problem = f"the cluster {cluster} lives: {', '.join(alive)} answers; its services would run twice"
    return [report(Code.REFUSED, problem=problem, remedy="stop the old cluster first, or use what it offers")]


def warnings(heard: Sequence[Heard]) -> list[ReportItem]:
    """Return reports on addresses where somebody else, or nobody certain, answers."""
    return [
        report(Code.OLD_NODE_UNSURE, node=each.node, address=f"{each.address[0]}:{each.address[1]}")
        for each in heard
        if each.presence is Presence.UNSURE
    ]


def _made(backup: Backup, name: str, output: str, bundles: Mapping[NodeName, Path]) -> Setup:
    old = backup.state
    return Setup(
        name=name,
        nodes=tuple(bundles),
        directory=output,
        version=old.version.epoch + 1,
        files=tuple(f"{node}: {bundle}" for node, bundle in bundles.items()),
        next_steps=(
            f"It begins with version {old.version.epoch} of {old.cluster_name}; nothing runs until its nodes start.",
            "Make sure that no node of the old cluster comes back: its services would run twice.",
            "Copy each directory to its node, as /etc/haclusterd, readable by root only.",
            "Keep the directory `authority` apart: who has it can admit nodes.",
            "Then on each node, once, with an empty /var/lib/haclusterd: haclusterd --initialize",
            "and: systemctl enable --now haclusterd",
            "Then look: crm status",
        ),
    )


def restored(backup: Backup, author: str) -> Backup:
    """Return the initial state of the new cluster; secrets that the backup does not hold are left out."""
    old = backup.state
    reason = f"restored from a backup of version {old.version.epoch}"
    version = ConfigurationVersion(old.version.epoch + 1, author, now(), reason)
    kept = replace(
        backup,
        state=replace(old, configuration=without_hidden(old.configuration)),
        earlier=tuple((each, without_hidden(content)) for each, content in backup.earlier),
    )
    return successor(kept, kept.state.configuration, version, backup.hidden)


def now() -> WallTime:
    """Return the present."""
    return WallTime(time.clock_gettime_ns(time.CLOCK_REALTIME) // 1_000_000)
