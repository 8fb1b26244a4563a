"""`crm cluster this-is`: a person says that this machine is a node whose data directory was another machine's.

After a disk was moved into other hardware, or its image was started in the place of a machine that is gone, the data is
the node's and the machine is not; the daemon cannot tell that from a copy beside the first machine, and does not start
(`raft.identity`). It must never be said while the first machine runs or may be started, which no program can know:
hence the person's word.
"""

from collections.abc import Mapping
from pathlib import Path

from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.adapters.machine.machine_identity import machine_marks
from haclusterd.adapters.network.cluster_probe import Presence, probe
from haclusterd.entry_points.crm_setup import answer, read_text
from haclusterd.model.json_value import Json
from haclusterd.model.machine_marks import MachineMark
from haclusterd.model.requests import Response
from haclusterd.ports.store import StoreDamagedError, StoreRefusedError
from haclusterd.raft.identity import adopt_machine, require_identity
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.runtime.settings import CONFIGURATION_DIRECTORY, CONFIGURATION_FILE, Installation, SettingsError, load

DEFAULT_CONFIGURATION = CONFIGURATION_DIRECTORY / CONFIGURATION_FILE


def this_is(arguments: Mapping[str, Json]) -> Response:
    """Let the data directory belong to this machine; the daemon must be stopped."""
    path = Path(read_text(arguments, "configuration") or DEFAULT_CONFIGURATION)
    try:
        installation = load(path)
    except SettingsError as error:
        return answer([report(Code.UNREADABLE, what=path, problem=error)])
    named = read_text(arguments, "node")
    if named != installation.node:
        problem = f"{path} is of {installation.node}, not of {named}"
        return answer([report(Code.REFUSED, problem=problem, remedy=f"crm cluster this-is {installation.node}")])
    files = FilesDirectory(installation.state_directory)
    try:
        return _adopt(installation, files, has_checked=arguments.get("has_checked") is True)
    except StoreRefusedError as error:
        return answer([report(Code.REFUSED, problem=error)])
    except StoreDamagedError as error:
        return answer([report(Code.UNREADABLE, what=installation.state_directory, problem=error)])
    except OSError as error:
        return answer([report(Code.INPUT_OUTPUT, what=error.filename or path, problem=error.strerror or str(error))])
    finally:
        files.close()


def _adopt(installation: Installation, files: FilesDirectory, *, has_checked: bool) -> Response:
    me = installation.node
    try:
        files.lock()
    except BlockingIOError:
        raise StoreRefusedError(f"{files.describe('lock')}: the daemon runs: stop it first") from None
    identity = require_identity(files, installation.cluster_uuid, me)
    found = machine_marks(installation.machine_id_file)
    if identity.machine is None or identity.machine in found:
        return answer([report(Code.NOTHING_TO_DO, state=f"the data directory of {me} belongs to this machine")])
    objections = _objections(installation, identity.machine, has_checked=has_checked)
    if objections:
        return answer(objections)
    adopt_machine(files, identity, found)
    return answer([report(Code.MACHINE_ADOPTED, node=me, machine=found[0] if found else "nothing that names it")])


def _objections(installation: Installation, known: MachineMark, *, has_checked: bool) -> list[ReportItem]:
    me = installation.node
    own = next(each.addresses for each in installation.members if each.name == me)
    # The daemon here is stopped: who answers at the node's addresses is another machine.
    heard = [each for each in probe(installation.cluster_uuid, {me: own}) if each.presence in _THERE]
    if heard:
        host, port = heard[0].address
        problem = f"something answers as {me} at {host}:{port}, and no daemon runs here: the first machine is not off"
        return [report(Code.REFUSED, problem=problem, remedy="switch it off for good, then repeat this")]
    if has_checked:
        return []
    problem = (
        f"the data directory of {me} is of the machine with {known}. Where that one runs, or is started again, services"
        " run twice and destroy data. Nothing was changed"
    )
    remedy = f"see that it is off for good, or has no such disk any more: crm cluster this-is {me} --i-have-checked"
    return [report(Code.UNSAFE, problem=problem, remedy=remedy)]


_THERE = (Presence.HEARD, Presence.UNSURE)
