"""`crm cluster start|stop|restart|enable|disable` and `run|copy|diff`: daemons and files of machines.

What is about this machine asks its systemd. Of other nodes it is done by ssh, as the person who asks: keys and rights
are theirs, and what a node refuses is reported with its name. All nodes are asked.
"""

import difflib
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from haclusterd.cli.grammar import Invocation
from haclusterd.cli.session import Session
from haclusterd.model.records import dataclass
from haclusterd.model.requests import Response, ShownReport, refused
from haclusterd.verbs.answers.answer import as_json, read
from haclusterd.verbs.answers.crm import NodeOutput, NodeOutputs
from haclusterd.verbs.answers.node import Members

UNITS = ("haclusterd-pacer.service", "haclusterd.service")
DAEMON = UNITS[1:]
LONGEST_S: Mapping[str, int] = {"stop": 1800, "restart": 1800}
"""A stop moves everything away first."""
USUALLY_S = 120
AT_ONCE = 16
BACK_WITHIN_S = 180.0
"""In a restart of several nodes: until each is online again, and the next one follows."""
LOOK_EVERY_S = 0.5
SSH = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10")


@dataclass(frozen=True, slots=True)
class Machine:
    """Where something is done."""

    node: str
    host: str
    """Empty: here."""


def carry_out(session: Session, invocation: Invocation) -> Response:
    """Carry out a command on this machine, on named nodes or on all."""
    name, arguments = invocation.command.name, invocation.arguments
    is_everywhere = name in ("run", "copy", "diff") or bool(arguments.get("all"))
    named = arguments.get("nodes")
    words = [str(word) for word in named] if isinstance(named, Sequence) and not isinstance(named, str) else []
    machines = _machines(session, words, is_everywhere=is_everywhere and not words)
    if isinstance(machines, Response):
        return machines
    match name:
        case "run":
            return _run(machines, str(arguments["shell"]), dry_run=session.options.dry_run)
        case "copy":
            return _copy(machines, str(arguments["path"]), dry_run=session.options.dry_run)
        case "diff":
            return _differences(machines, str(arguments["path"]), by_checksum=bool(arguments.get("checksum")))
        case _:
            return _service(session, name, machines)


def _machines(session: Session, words: Sequence[str], *, is_everywhere: bool) -> list[Machine] | Response:
    if not words and not is_everywhere:
        return [Machine("this node", "")]
    answer = session.ask("cluster.members", {})
    if answer.exit or answer.data is None:
        return answer
    members = read(Members, answer.data)
    hosts = {each.name: each.addresses[0].rpartition(":")[0].strip("[]") for each in members.members if each.addresses}
    unknown = [word for word in words if word not in hosts]
    if unknown:
        problem = f"there is no node {', '.join(unknown)}"
        return refused("NO_SUCH_NODE", problem, "crm cluster members", 68)
    chosen = words or list(hosts)
    return [Machine(name, "" if name == members.answered_by else hosts[name]) for name in chosen]


def _called(machine: Machine, command: Sequence[str]) -> list[str]:
    """Return how a command is called there; a shell on the other side takes its words apart again."""
    return ["ssh", *SSH, machine.host, "--", *command] if machine.host else list(command)


def _output(command: Sequence[str], limit_s: int) -> NodeOutput:
    try:
        ended = subprocess.run(command, capture_output=True, check=False, timeout=limit_s, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return NodeOutput("", 124, "", f"not done within {limit_s} s")
    except OSError as error:
        return NodeOutput("", 127, "", f"{command[0]}: {error.strerror or error}")
    return NodeOutput(
        "", ended.returncode, ended.stdout.decode(errors="replace"), ended.stderr.decode(errors="replace").strip()
    )


def _everywhere(machines: Sequence[Machine], commands: Sequence[Sequence[str]], limit_s: int) -> list[NodeOutput]:
    """Run a command for each machine, several at once; return what each said, in the order of the machines."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(partial(_output, limit_s=limit_s), commands))
    return [
        NodeOutput(machine.node, each.status, each.output, each.error)
        for machine, each in zip(machines, found, strict=True)
    ]  # fmt: skip


def _answer(outputs: Sequence[NodeOutput], done: str = "") -> Response:
    failed = [each for each in outputs if each.status]
    reports = [
        ShownReport("error", "FAILED", f"{each.node}: {_in_one_line(each.error) or f'ended with status {each.status}'}")
        for each in failed
    ]
    if done and not failed:
        reports.append(ShownReport("info", "REQUESTED", done))
    return Response("", 1 if failed else 0, tuple(reports), as_json(NodeOutputs(tuple(outputs))))


def _in_one_line(text: str) -> str:
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def _service(session: Session, name: str, machines: Sequence[Machine]) -> Response:
    """Start, stop, restart, enable or disable the daemons."""
    units = DAEMON if name in ("stop", "restart") else UNITS
    where = ", ".join(machine.node for machine in machines)
    if session.options.dry_run:
        would = ShownReport("info", "REQUESTED", f"would run on {where}: systemctl {name} {' '.join(units)}")
        return Response("", 0, (would,))
    if name == "stop" and not session.options.force:
        objection = _objection_to_stop(session, machines)
        if objection is not None:
            return objection
    commands = [_called(machine, ("systemctl", name, *units)) for machine in machines]
    limit_s = LONGEST_S.get(name, USUALLY_S)
    if name not in ("stop", "restart"):
        return _answer(_everywhere(machines, commands, limit_s), f"{name}: done on {where}")
    def ask() -> Response:
        return session.ask("cluster.members", {})

    before = _online(ask())
    outputs: list[NodeOutput] = []
    for number, (machine, command) in enumerate(zip(machines, commands, strict=True), 1):
        outputs += _everywhere([machine], [command], limit_s)
        if outputs[-1].status:
            break
        left = ", ".join(each.node for each in machines[number:])
        away = still_away(ask, before) if name == "restart" and left else frozenset()
        if away:
            late = ", ".join(sorted(away))
            problem = f"{late} is not online again after {BACK_WITHIN_S:.0f} s; not restarted: {left}"
            return refused("TIMEOUT", problem, "crm status", 124)
    return _answer(outputs, f"{name}: done on {where}")


def still_away(
    ask: Callable[[], Response], before: frozenset[str], within_s: float = BACK_WITHIN_S
) -> frozenset[str]:
    """Wait until the nodes that were online before are so again; return which are not.

    Two voters that are away at the same time can end the quorum.
    """
    deadline = time.monotonic() + within_s
    while True:
        away = before - _online(ask())
        if not away or time.monotonic() >= deadline:
            return away
        time.sleep(LOOK_EVERY_S)


def _online(answer: Response) -> frozenset[str]:
    """Return which nodes are online; none where no daemon answers."""
    if answer.exit or answer.data is None:
        return frozenset()
    return frozenset(each.name for each in read(Members, answer.data).members if each.state == "online")


def _objection_to_stop(session: Session, machines: Sequence[Machine]) -> Response | None:
    """Object where the rest would have no quorum; a cluster that does not answer has nothing to lose."""
    answer = session.ask("cluster.members", {})
    if answer.exit or answer.data is None:
        return None
    members = read(Members, answer.data)
    leaving = {members.answered_by if machine.node == "this node" else machine.node for machine in machines}
    voters = [each for each in members.members if each.is_voter]
    staying = [each for each in voters if each.name not in leaving and each.state == "online"]
    if len(staying) * 2 > len(voters):
        return None
    problem = f"{len(staying)} of {len(voters)} voters would stay: the cluster would stop everything"
    return refused("UNSAFE", problem, "repeat it with --force if that is meant", 107)


def _run(machines: Sequence[Machine], shell: str, *, dry_run: bool) -> Response:
    if dry_run:
        where = ", ".join(machine.node for machine in machines)
        return Response("", 0, (ShownReport("info", "REQUESTED", f"would run on {where}: {shell}"),))
    commands = [_called(machine, (shell,)) if machine.host else ["sh", "-c", shell] for machine in machines]
    return _answer(_everywhere(machines, commands, USUALLY_S))


def _copy(machines: Sequence[Machine], path: str, *, dry_run: bool) -> Response:
    others = [machine for machine in machines if machine.host]
    if dry_run:
        where = ", ".join(machine.node for machine in others)
        return Response("", 0, (ShownReport("info", "REQUESTED", f"would copy {path} to {where}"),))
    commands = [["scp", *SSH, "-p", path, f"{_bracketed(machine.host)}:{path}"] for machine in others]
    return _answer(_everywhere(others, commands, USUALLY_S), f"copied {path} to {len(others)} nodes")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _differences(machines: Sequence[Machine], path: str, *, by_checksum: bool) -> Response:
    """Compare a file with that of the first machine; status 11: it differs."""
    command = ("sha256sum", path) if by_checksum else ("cat", path)
    outputs = _everywhere(machines, [_called(machine, command) for machine in machines], USUALLY_S)
    if by_checksum or any(each.status for each in outputs):
        return _answer(outputs)
    first = outputs[0]
    compared = [
        NodeOutput(each.node, 0, "".join(difflib.unified_diff(
            first.output.splitlines(keepends=True), each.output.splitlines(keepends=True), first.node, each.node,
        )), "")
        for each in outputs[1:]
    ]  # fmt: skip
    answer = _answer([each for each in compared if each.output])
    return Response("", 11 if any(each.output for each in compared) else 0, answer.reports, answer.data)

