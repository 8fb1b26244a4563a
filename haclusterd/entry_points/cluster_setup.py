"""Makes what a new cluster's nodes are given: one directory each, to be copied to that node and nowhere else.

A directory holds `haclusterd.yaml`, the node's certificate and key, the authority's certificate and the heartbeat keys.
The authority's own key goes into a directory of its own: who has it can admit nodes.
"""

import json
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.adapters.network.authority_files import AUTHORITY_DIRECTORY, utc_now
from haclusterd.adapters.network.certificates import (
    AUTHORITY_KEY,
    Credentials,
    create_authority,
    heartbeat_keys,
    issue_certificate,
    write_authority,
    write_node_credentials,
)
from haclusterd.entry_points.initial_state import install_initial_state
from haclusterd.model.cluster import Member
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.records import dataclass, replace
from haclusterd.model.watchdog import WatchdogSettings
from haclusterd.raft.identity import create_identity
from haclusterd.runtime.settings import (
    BOOT_ID_FILE,
    CONFIGURATION_FILE,
    RUNTIME_DIRECTORY,
    STATE_DIRECTORY,
    Installation,
    render,
)

HEARTBEAT_KEYS = "heartbeat.keys"


class SetupRefusedError(Exception):
    """Nothing was made; the message says why."""


@dataclass(frozen=True, slots=True)
class NodePlaces:
    """Where one node keeps its files, when not at the usual places."""

    state_directory: Path = STATE_DIRECTORY
    runtime_directory: Path = RUNTIME_DIRECTORY
    boot_id_file: Path = Path(BOOT_ID_FILE)
    is_development: bool = False
    watchdog: WatchdogSettings | None = None
    machine_id_file: Path | None = None


def make_bundles(
    name: str, members: Sequence[Member], output: Path, *, places: dict[NodeName, NodePlaces] | None = None
) -> dict[NodeName, Path]:
    """Make a directory for each member below `output`; raises SetupRefusedError when there is something already."""
    require_new(output)
    cluster = str(uuid.uuid4())
    now = utc_now()
    authority = create_authority(cluster, now=now)
    credentials = {
        member.name: issue_certificate(authority, member.name, [host for host, _ in member.addresses], now=now)
        for member in members
    }
    write_authority(_directory(output / AUTHORITY_DIRECTORY), authority)
    bundles: dict[NodeName, Path] = {}
    for member in members:
        bundle = _directory(output / str(member.name))
        write_node_credentials(bundle, authority.certificate, credentials[member.name])
        peers = {other: item.certificate for other, item in credentials.items() if other != member.name}
        _write_keys(bundle, heartbeat_keys(bundle, cluster, member.name, peers))
        place = (places or {}).get(member.name, NodePlaces())
        installation = installation_of(name, cluster, member.name, members, directory=bundle, places=place)
        (bundle / CONFIGURATION_FILE).write_text(render(installation))
        bundles[member.name] = bundle
    return bundles


def require_new(output: Path) -> None:
    """Raise SetupRefusedError when there is something in a directory already."""
    if output.exists() and any(output.iterdir()):
        raise SetupRefusedError(f"{output} is not empty: name a new directory, so that no keys are overwritten")


def make_first_node(name: str, member: Member, directory: Path, authority: Path, places: NodePlaces) -> None:
    """Make the files of a cluster's only node where they belong; raises SetupRefusedError when there is something
    already.

    The authority's key goes into `authority`, readable by root only.
    """
    for place in (directory / CONFIGURATION_FILE, authority / AUTHORITY_KEY):
        if place.exists():
            raise SetupRefusedError(f"{place} exists: name another directory, so that no keys are overwritten")
    cluster = str(uuid.uuid4())
    issuer = create_authority(cluster, now=utc_now())
    own = issue_certificate(issuer, member.name, [host for host, _ in member.addresses], now=utc_now())
    directory.mkdir(parents=True, mode=0o700, exist_ok=True)
    directory.chmod(0o700)
    authority.mkdir(parents=True, mode=0o700, exist_ok=True)
    authority.chmod(0o700)
    write_authority(authority, issuer)
    installation = installation_of(name, cluster, member.name, (member,), directory=directory, places=places)
    write_node(directory, issuer.certificate, own, installation)


def write_node(directory: Path, authority_certificate: bytes, own: Credentials, installation: Installation) -> None:
    """Write what makes a node of a machine; the configuration file comes last: without it nothing starts.

    Raises OSError.
    """
    write_node_credentials(directory, authority_certificate, own)
    if not (directory / HEARTBEAT_KEYS).exists():
        _write_keys(directory, {})
    (directory / CONFIGURATION_FILE).write_text(render(installation))


def installation_of(
    name: str, cluster: str, node: NodeName, members: Sequence[Member], *, directory: Path, places: NodePlaces
) -> Installation:
    """Return what a new node's configuration file says."""
    return Installation(
        directory=directory,
        node=node,
        cluster_uuid=cluster,
        cluster_name=name,
        members=tuple(members),
        state_directory=places.state_directory,
        runtime_directory=places.runtime_directory,
        boot_id_file=places.boot_id_file,
        is_development=places.is_development,
        node_timeout_ms=2000,
        watchdog=places.watchdog,
        machine_id_file=places.machine_id_file,
    )


def initialize(installation: Installation, term: int = 0) -> Path:
    """Prepare the empty state directory of a new member, once; raises StoreRefusedError when it belongs to a node.

    `term`: the newest that agents on this machine may know of a cluster before, which this one continues.
    """
    files = FilesDirectory(installation.state_directory)
    # The identity comes last: without it no daemon starts on a directory that is half prepared.
    install_initial_state(installation, files, Term(term))
    create_identity(files, installation.cluster_uuid, installation.node)
    return installation.state_directory


def remember_members(installation: Installation, members: Sequence[Member]) -> None:
    """Write the members into this node's configuration file, whole or not at all; raises OSError.

    At its next start a daemon knows from there whom to ask before it has read its own log.
    """
    if installation.node not in {member.name for member in members}:
        return
    text = render(replace(installation, members=tuple(members)))
    path = installation.directory / CONFIGURATION_FILE
    temporary = path.with_suffix(".new")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.chmod(path.stat().st_mode & 0o777)
    temporary.replace(path)


def read_keys(directory: Path) -> dict[NodeName, bytes]:
    """Read the heartbeat keys of a bundle; raises OSError or ValueError."""
    document = json.loads((directory / HEARTBEAT_KEYS).read_text())
    return {NodeName(peer): bytes.fromhex(key) for peer, key in document.items()}


def _write_keys(bundle: Path, keys: dict[NodeName, bytes]) -> None:
    text = json.dumps({str(peer): key.hex() for peer, key in sorted(keys.items())})
    handle = os.open(bundle / HEARTBEAT_KEYS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "w") as file:
        file.write(text + "\n")


def _directory(path: Path) -> Path:
    path.mkdir(parents=True, mode=0o700)
    return path
