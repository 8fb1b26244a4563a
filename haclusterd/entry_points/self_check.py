"""`haclusterd --check`: whether this program, as it is on the disk now, could continue where the running one is.

It is asked before the running daemon is replaced by it (`systemctl reload`, SIGHUP): a package that is broken, or
cannot read what the running one wrote, must not cost a node. It changes nothing, and may run beside a daemon.
"""

import base64
import hashlib
import importlib
import pkgutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

import haclusterd
from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.adapters.machine.installation import InstallationIncompleteError, share_directory
from haclusterd.adapters.machine.machine_identity import machine_marks
from haclusterd.cib.codec import CodecError, decode_cib, decode_envelope
from haclusterd.entry_points.cluster_setup import read_keys
from haclusterd.ports.store import StoreDamagedError, StoreRefusedError
from haclusterd.raft.frames import NO_OP
from haclusterd.raft.identity import require_identity, require_machine
from haclusterd.raft.journal import read_entries
from haclusterd.raft.snapshot import load_snapshot
from haclusterd.runtime.settings import Installation, SettingsError, load

_DISTRIBUTION: Final = "haclusterd"
_NOT_THE_DAEMONS: Final = ("haclusterd.simulator", "haclusterd.agents.gpu")
_REMEDY: Final = "install the package again, whole"


def problems(configuration: Path) -> list[str]:
    """Return everything that would keep this program from continuing; empty: nothing."""
    found = [*_package()]
    try:
        installation = load(configuration)
        read_keys(installation.directory)
        found += _state(installation)
    except (SettingsError, StoreRefusedError, StoreDamagedError, OSError, ValueError) as error:
        found.append(str(error))
    return found


def _package() -> Iterator[str]:
    yield from _files()
    try:
        share_directory()
    except InstallationIncompleteError as error:
        yield str(error)
    for module in pkgutil.walk_packages(haclusterd.__path__, "haclusterd.", onerror=lambda _: None):
        if module.name.startswith(_NOT_THE_DAEMONS) or module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except Exception as error:  # noqa: BLE001 (whatever a broken module raises is the finding)
            yield f"{module.name} cannot be imported: {type(error).__name__}: {error}; {_REMEDY}"


def _files() -> Iterator[str]:
    """Yield what is not as the installation recorded it; a source checkout has no such record."""
    try:
        recorded = metadata.files(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return
    for file in recorded:
        if file.hash is None or file.suffix == ".pyc":
            continue
        try:
            content = Path(str(file.locate())).read_bytes()
        except OSError as error:
            yield f"{file}: {error.strerror}; {_REMEDY}"
            continue
        digest = base64.urlsafe_b64encode(hashlib.new(file.hash.mode, content).digest()).rstrip(b"=").decode()
        if digest != file.hash.value:
            yield f"{file} is not the file that was installed; {_REMEDY}"


def _state(installation: Installation) -> Iterator[str]:
    """Yield what of this node's state cannot be read. Raises StoreRefusedError, StoreDamagedError."""
    files = FilesDirectory(installation.state_directory)
    cluster, node = installation.cluster_uuid, installation.node
    require_machine(files, require_identity(files, cluster, node), machine_marks(installation.machine_id_file))
    snapshot = load_snapshot(files, cluster)
    try:
        if snapshot is not None:
            decode_cib(snapshot.payload)
        for entry in read_entries(files, cluster, node):
            if entry[0] != NO_OP:
                decode_envelope(entry[1:])
    except CodecError as error:
        yield f"{installation.state_directory}: {error}"
