"""`crm cluster init`: this machine becomes the first node of a new cluster, which further machines are then invited to.

Everything is made at its final place, and nothing is made where something is already: neither settings nor state of a
node are ever overwritten.
"""

from collections.abc import Mapping
from pathlib import Path

from haclusterd.entry_points.cluster_setup import NodePlaces, SetupRefusedError, initialize, make_first_node
from haclusterd.entry_points.crm_setup import answer, read_text, read_texts
from haclusterd.entry_points.own_machine import RAFT_PORT, address_of, own_address, own_name, start_services
from haclusterd.model.addresses import address_text, read_address
from haclusterd.model.cluster import Member
from haclusterd.model.ids import NODE_NAME, NodeName
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.model.requests import Response
from haclusterd.ports.store import StoreDamagedError, StoreRefusedError
from haclusterd.raft.identity import IDENTITY_NAME
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.runtime.settings import CONFIGURATION_DIRECTORY, CONFIGURATION_FILE, load
from haclusterd.verbs.answers.answer import as_json
from haclusterd.verbs.answers.crm import Setup

DEFAULT_NAME = "hacluster"


def init(arguments: Mapping[str, Json]) -> Response:
    """Make a cluster of this machine alone, and start it where systemd runs."""
    directory, places = read_places(arguments)
    member, objections = own_member(arguments)
    objections += already_here(directory, places)
    if objections:
        return answer(objections)
    assert member is not None
    name = read_text(arguments, "name") or DEFAULT_NAME
    authority = Path(read_text(arguments, "authority") or directory / "authority")
    try:
        make_first_node(name, member, directory, authority, places)
        initialize(load(directory / CONFIGURATION_FILE))
    except (SetupRefusedError, StoreRefusedError, StoreDamagedError) as error:
        return answer([report(Code.REFUSED, problem=error)])
    except OSError as error:
        return answer(
            [report(Code.INPUT_OUTPUT, what=error.filename or directory, problem=error.strerror or str(error))]
        )
    to_do = start_services() if is_usual(directory) else start_by_hand(directory, places)
    made = Setup(
        name=name,
        nodes=(member.name,),
        directory=str(directory),
        is_started=not to_do,
        files=(
            f"settings and certificate of {member.name} ({places_of(member)}): {directory}",
            f"the authority, which admits further nodes: {authority} (keep a copy in a safe place)",
            f"state: {places.state_directory}",
        ),
        next_steps=(
            *(to_do or ["It is started, and will be at each boot."]),
            "Then look: crm status",
            "For each further machine: crm cluster invite, and what it prints, on that machine",
        ),
    )
    return answer([], as_json(made))


def read_places(arguments: Mapping[str, Json]) -> tuple[Path, NodePlaces]:
    """Return where this node's settings and data are to be."""
    usual = NodePlaces()
    directory = Path(read_text(arguments, "directory") or CONFIGURATION_DIRECTORY)
    places = replace(
        usual,
        state_directory=Path(read_text(arguments, "state_directory") or usual.state_directory),
        runtime_directory=Path(read_text(arguments, "runtime_directory") or usual.runtime_directory),
    )
    return directory, places


def is_usual(directory: Path) -> bool:
    """Tell whether the node is where systemd's units look for it."""
    return directory == CONFIGURATION_DIRECTORY


def start_by_hand(directory: Path, places: NodePlaces) -> list[str]:
    """Return how a node at unusual places is started."""
    return [
        "Start these two, and see that they are started again when they end:",
        f"  haclusterd-pacer --runtime-directory {places.runtime_directory}",
        f"  haclusterd --configuration {directory / CONFIGURATION_FILE}",
    ]


def places_of(member: Member) -> str:
    """Return a member's addresses, for people."""
    return ", ".join(map(address_text, member.addresses))


def own_member(
    arguments: Mapping[str, Json], default_host: str | None = None
) -> tuple[Member | None, list[ReportItem]]:
    """Return this machine as a member, with everything that is wrong with what was typed."""
    objections: list[ReportItem] = []
    name = read_text(arguments, "node") or own_name()
    if not NODE_NAME.match(name):
        objections.append(report(Code.BAD_ARGUMENT, name="--node", problem=f"{name!r} cannot be a node's name"))
    addresses: list[tuple[str, int]] = []
    for text in read_texts(arguments, "address"):
        try:
            addresses.append(read_address(text, RAFT_PORT))
        except ValueError as error:
            objections.append(report(Code.BAD_ARGUMENT, name="--address", problem=error))
    for interface in read_texts(arguments, "interface"):
        try:
            addresses.append((address_of(interface), RAFT_PORT))
        except OSError as error:
            problem = f"{interface} has no IPv4 address: {error.strerror}"
            objections.append(report(Code.BAD_ARGUMENT, name="--interface", problem=problem))
    if not addresses and not objections:
        host = default_host or own_address()
        if host is None or host.startswith("127."):
            problem = "which of this machine's addresses the other nodes reach is not clear"
            remedy = "name it: --address HOST:PORT, or --interface NAME"
            objections.append(report(Code.BAD_ARGUMENT, name="--address", problem=problem, remedy=remedy))
        else:
            addresses.append((host, RAFT_PORT))
    if objections:
        return None, objections
    return Member(NodeName(name), tuple(dict.fromkeys(addresses))), []


def already_here(directory: Path, places: NodePlaces) -> list[ReportItem]:
    """Return what says that this machine belongs to a cluster already."""
    found = [directory / CONFIGURATION_FILE, places.state_directory / IDENTITY_NAME]
    there = [str(path) for path in found if path.exists()]
    if not there:
        return []
    problem = f"this machine is a node already: {', '.join(there)}"
    remedy = "to make another node of it: crm cluster remove, on another node; then move these directories away"
    return [report(Code.REFUSED, problem=problem, remedy=remedy)]
