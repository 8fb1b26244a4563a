"""`crm cluster join`: this machine becomes a node of the cluster that invited it.

It makes its own key, which never leaves it, and keeps it before it applies: when the answer is lost on the way, the
same command applies again for the same key and gets the same certificate. Nothing is overwritten, and the configuration
file comes last: a machine that was not admitted is no node.
"""

import getpass
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from haclusterd.adapters.control.client import ControlClient
from haclusterd.adapters.network.authority_files import utc_now
from haclusterd.adapters.network.certificates import (
    CertificateRequest,
    Credentials,
    request_certificate,
    require_credentials,
    write_private,
)
from haclusterd.adapters.network.enrolment_client import NoMemberAnswersError, WrongAuthorityError, enrol
from haclusterd.cib.codec import FEATURE_LEVEL
from haclusterd.entry_points.cluster_setup import NodePlaces, initialize, installation_of, write_node
from haclusterd.entry_points.crm_init import already_here, is_usual, own_member, places_of, read_places, start_by_hand
from haclusterd.entry_points.crm_setup import answer, read_text
from haclusterd.entry_points.own_machine import address_toward, start_services
from haclusterd.model.addresses import read_address
from haclusterd.model.cluster import Member
from haclusterd.model.enrolment import Admitted, Apply, Denied, Hello
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.model.requests import Progress, Request, Response, refused
from haclusterd.ports.store import StoreDamagedError, StoreRefusedError
from haclusterd.protocol.enrolment_token import Token, TokenUnreadableError, read_token
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.runtime.settings import CONFIGURATION_FILE, Installation, load
from haclusterd.verbs.answers.answer import as_json
from haclusterd.verbs.answers.crm import Setup

VERB: Final = "cluster join"
PENDING_KEY: Final = "joining.key"
PENDING_REQUEST: Final = "joining.csr"
STANDARD_INPUT: Final = "-"
PROMPT: Final = "Token, as `crm cluster invite` printed it: "
FOLLOW_S: Final = 120.0
FOLLOW_PAUSE_S: Final = 0.3
CLOCKS_NOTED_MS: Final = 2_000


def join(arguments: Mapping[str, Json]) -> Response:
    """Apply with the token, become a node, and start it where systemd runs."""
    response = _join_by_token(arguments)
    is_seen = read_text(arguments, "token") not in ("", STANDARD_INPUT)
    warning = answer([report(Code.TOKEN_SEEN)] if is_seen else [])
    return replace(response, reports=(*warning.reports, *response.reports))


def _join_by_token(arguments: Mapping[str, Json]) -> Response:
    directory, places = read_places(arguments)
    token = _read_token(arguments)
    if isinstance(token, ReportItem):
        return answer([token, *already_here(directory, places)])
    member, objections = own_member(arguments, address_toward(token.addresses[0]))
    objections += already_here(directory, places)
    if objections or member is None:
        return answer(objections)
    try:
        return _join(token, member, directory, places)
    except WrongAuthorityError as error:
        return answer([report(Code.NOT_ADMITTED, problem=error, remedy="take the token that this cluster printed")])
    except NoMemberAnswersError as error:
        return answer([report(Code.NO_INVITER, problem=error)])
    except (StoreRefusedError, StoreDamagedError, ValueError) as error:
        return answer([report(Code.REFUSED, problem=error)])
    except OSError as error:
        problem = error.strerror or str(error)
        what, remedy = error.filename or VERB, "the same command may be given again"
        return answer([report(Code.INPUT_OUTPUT, what=what, problem=problem, remedy=remedy)])


def _join(token: Token, member: Member, directory: Path, places: NodePlaces) -> Response:
    mine = _pending_request(directory, member.name)

    def application(hello: Hello) -> Apply:
        _progress(f"found the cluster {hello.name}, whose authority is the token's; applying as {member.name}")
        now = WallTime(int(utc_now().timestamp() * 1000))
        return Apply("", member.name, member.addresses, mine.request.decode(), b"", now, FEATURE_LEVEL)

    hello, found = enrol(token, application, _progress)
    if isinstance(found, Denied):
        return refused(found.code, found.problem, found.remedy, found.exit_status)
    own = Credentials(found.certificate.encode(), mine.key)
    require_credentials(hello.authority.encode(), member.name, own)
    installation = replace(
        installation_of(found.name, found.cluster, member.name, found.members, directory=directory, places=places),
        node_timeout_ms=found.node_timeout_ms,
    )
    _settle(hello, own, installation)
    to_do = start_services() if is_usual(directory) else start_by_hand(directory, places)
    reports = [] if to_do else _follow(member.name, places)
    return answer([*_clocks(hello), *reports], as_json(_made(found, member, directory, places, to_do)))


def _settle(hello: Hello, own: Credentials, installation: Installation) -> None:
    """Make this machine a node: certificate, empty state, settings."""
    directory = installation.directory
    write_node(directory, hello.authority.encode(), own, installation)
    initialize(load(directory / CONFIGURATION_FILE))
    for name in (PENDING_KEY, PENDING_REQUEST):
        (directory / name).unlink(missing_ok=True)


def _read_token(arguments: Mapping[str, Json]) -> Token | ReportItem:
    text, file = read_text(arguments, "token"), read_text(arguments, "token_file")
    try:
        if file:
            text = Path(file).read_text(encoding="utf-8", errors="replace")
        elif not text and sys.stdin.isatty():
            text = getpass.getpass(PROMPT)
        elif text in ("", STANDARD_INPUT):
            text = sys.stdin.readline()
        if not text.strip():
            meaning = "typed when asked for, on standard input, or --token-file FILE"
            return report(Code.MISSING_ARGUMENT, verb=VERB, name="the token", meaning=meaning)
        token = read_token(text)
    except OSError as error:
        return report(Code.NO_INPUT, file=file, problem=error.strerror or str(error))
    except TokenUnreadableError as error:
        return report(Code.BAD_ARGUMENT, name="the token", problem=error)
    host = read_text(arguments, "host")
    if not host:
        return token
    try:
        first = read_address(host, token.addresses[0][1])
    except ValueError as error:
        return report(Code.BAD_ARGUMENT, name="HOST", problem=error)
    return replace(token, addresses=(first, *(each for each in token.addresses if each != first)))


def _pending_request(directory: Path, node: NodeName) -> CertificateRequest:
    """Return the key and request of an earlier attempt under this name, or new ones, which are kept first."""
    key, request = directory / PENDING_KEY, directory / PENDING_REQUEST
    if key.exists() and request.exists() and request.read_text().startswith(f"{node}\n"):
        return CertificateRequest(request.read_bytes().partition(b"\n")[2], key.read_bytes())
    made = request_certificate(node)
    directory.mkdir(parents=True, mode=0o700, exist_ok=True)
    directory.chmod(0o700)
    write_private(key, made.key)
    write_private(request, f"{node}\n".encode() + made.request)
    return made


def _clocks(hello: Hello) -> list[ReportItem]:
    difference_ms = abs(int(utc_now().timestamp() * 1000) - hello.now)
    is_noted = difference_ms > CLOCKS_NOTED_MS
    return [report(Code.CLOCKS_DIFFER, seconds=difference_ms // 1000)] if is_noted else []


def _progress(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _follow(node: NodeName, places: NodePlaces) -> list[ReportItem]:
    """Watch the daemon that was started until it has joined, and has the vote that it is to have."""
    client = ControlClient(str(places.runtime_directory / "control.sock"))
    until, last_shown = time.monotonic() + FOLLOW_S, ""
    while time.monotonic() < until:
        state = _standing(client, node)
        if state != last_shown:
            last_shown = state
            _progress(state)
        if state.endswith("done"):
            return []
        time.sleep(FOLLOW_PAUSE_S)
    return [report(Code.TIMEOUT, time=f"{FOLLOW_S:.0f} s", what=f"{node} to have caught up")]


def _standing(client: ControlClient, node: NodeName) -> str:
    response = client.call(Request("1", "cluster.members"), _quiet)
    data = response.data if isinstance(response.data, Mapping) else {}
    listed = data.get("members")
    members = listed if isinstance(listed, list) else []
    mine = next((each for each in members if isinstance(each, Mapping) and each.get("name") == node), None)
    if mine is None or mine.get("state") != "online":
        return f"{node} starts, and reads what was decided so far"
    if mine.get("wants_vote") is True:
        return f"{node} has joined without a vote; it gets one when it has caught up"
    return f"{node} is {'a voter' if mine.get('is_voter') is True else 'a member without a vote'}: done"


def _quiet(progress: Progress) -> None:
    """Nobody watches."""


def _made(found: Admitted, member: Member, directory: Path, places: NodePlaces, to_do: list[str]) -> Setup:
    return Setup(
        name=found.name,
        nodes=(member.name,),
        directory=str(directory),
        is_started=not to_do,
        files=(
            f"settings and certificate of {member.name} ({places_of(member)}): {directory}",
            f"state: {places.state_directory}",
        ),
        next_steps=(*(to_do or ["It is started, and will be at each boot."]), "Then look: crm status"),
    )
