"""`crm agent`: what the author of a resource agent needs, on this machine and without a daemon."""

import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from haclusterd.adapters.agent_checks.one_action import Program, perform
from haclusterd.adapters.agents.metadata import MetadataError, read_agent_metadata, read_description
from haclusterd.adapters.agents.surroundings import AGENT_STATE, OWN_PROVIDER, Surroundings
from haclusterd.adapters.agents.survey import metadata_text, why_not_executed
from haclusterd.adapters.agents.tools import named_tools
from haclusterd.adapters.machine.installation import agent_library, share_directory
from haclusterd.cli.replacing import write_new_file
from haclusterd.entry_points.crm_agents import Machine
from haclusterd.entry_points.crm_setup import answer, read_text, read_texts
from haclusterd.model import durations
from haclusterd.model.ids import AgentReference
from haclusterd.model.json_value import Json
from haclusterd.model.ocf import DEFAULT_TIMEOUT_MS
from haclusterd.model.records import replace
from haclusterd.model.requests import Response
from haclusterd.ports.agents import AgentMetadata
from haclusterd.protocol.control import DEFAULT_SOCKET, shown_report
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.exit_codes import ExitStatus
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import did_you_mean
from haclusterd.verbs.answers.agents import (
    AgentDescription,
    AgentEnvironment,
    AgentLint,
    AgentRun,
    AgentTrials,
    LintCounts,
    LintedAgent,
    LintFinding,
    NewAgent,
    TrialCounts,
    TrialRow,
)
from haclusterd.verbs.answers.answer import as_json

if TYPE_CHECKING:  # They take long to import, and only trials need them.
    from haclusterd.adapters.agent_checks.matrix import Row
    from haclusterd.entry_points.stand_in_cluster import StandInCluster

STATE_DIRECTORY = Path(DEFAULT_SOCKET).parent / AGENT_STATE
"""Where the daemon keeps its agents' files."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
ACTIONS_OF_NO_PARAMETERS = ("meta-data",)


class RefusedError(Exception):
    """What was typed cannot be done."""

    def __init__(self, item: ReportItem) -> None:
        super().__init__(str(item))
        self.item = item


def new(arguments: Mapping[str, Json]) -> Response:
    """Write an agent that works (schema `haclusterd.agent_new/1`)."""
    from haclusterd.adapters.agent_checks.scaffold import PYTHON, scaffold

    given = Path(read_text(arguments, "name"))
    if not NAME.match(given.name):
        problem = "a letter first, then letters, digits, - and _"
        return answer([report(Code.BAD_ARGUMENT, name="NAME", problem=f"{given.name!r}: {problem}")])
    language = read_text(arguments, "language") or PYTHON
    is_promotable = arguments.get("promotable") is True
    text = scaffold(given.name, language, agent_library(share_directory()), is_promotable=is_promotable)
    try:
        write_new_file(given, lambda file: file.write(text.encode()), 0o755)
    except FileExistsError:
        return answer([report(Code.EXISTS, kind="file", id=given, remedy="choose another name, or remove it first")])
    except OSError as error:
        return answer([report(Code.INPUT_OUTPUT, what=given, problem=error.strerror or str(error))])
    shown = given if given.is_absolute() else f"./{given}"
    next_steps = (
        f"crm agent test {shown}",
        f"crm agent lint {shown}",
        f"install -m 755 {shown} /usr/lib/ocf/resource.d/PROVIDER/{given.name}   # on every node",
        f"crm configure primitive NAME ocf:PROVIDER:{given.name}",
        *(("crm configure ms NAME-clone NAME   # without it nothing is promoted",) if is_promotable else ()),
    )
    return answer([], as_json(NewAgent(str(given), language, next_steps)))


def info(arguments: Mapping[str, Json]) -> Response:
    """Answer an agent's meta-data (schema `haclusterd.agent/1`)."""
    machine = Machine()
    agent, path = _found(machine, read_text(arguments, "agent"))
    return answer([], as_json(_described(agent, path, machine)))


def environment(arguments: Mapping[str, Json]) -> Response:
    """Answer the environment of an action (schema `haclusterd.agent_environment/1`)."""
    program = _program(arguments)
    action = read_text(arguments, "action")
    metadata = _metadata(arguments, program, action)
    timeout_ms = _timeout_ms(arguments, metadata, action)
    found = program.environment(action, timeout_ms, _level(arguments), _meta(arguments))
    command = (str(program.path), action)
    data = AgentEnvironment(str(program.agent), action, command, dict(sorted(found.items())))
    return answer(_undeclared(program, metadata), as_json(data))


def run(arguments: Mapping[str, Json]) -> Response:
    """Run one action as the daemon would (schema `haclusterd.agent_run/1`); the exit status is the agent's."""
    program = _program(arguments)
    action = read_text(arguments, "action")
    metadata = _metadata(arguments, program, action)
    timeout_ms = _timeout_ms(arguments, metadata, action)
    try:
        program.surroundings.state_directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        with _answered(program, is_promotable=_may_promote(program.path)) as (whole, _):
            done = perform(whole, action, timeout_ms, _level(arguments), _meta(arguments))
    except OSError as error:
        problem = why_not_executed(program.path, error)
        return answer([report(Code.NO_INPUT, file=program.path, problem=problem, remedy="")])
    status = int(ExitStatus.TIMEOUT) if done.is_timeout else 1 if done.code is None else done.code
    ran = AgentRun(
        agent=str(program.agent), action=done.action, code=done.code, name=done.name,
        reason=done.reason if done.code else "", stdout=done.stdout, stderr=done.stderr, wall_ms=done.wall_ms,
    )  # fmt: skip
    return Response("", status, tuple(map(shown_report, _undeclared(program, metadata))), as_json(ran))


def lint(arguments: Mapping[str, Json]) -> Response:
    """Answer what is wrong with agents (schema `haclusterd.agent_lint/1`); status 1: there are errors."""
    from haclusterd.adapters.agent_checks.finding import Severity
    from haclusterd.adapters.agent_checks.lint import lint as lint_one

    machine, counts = Machine(), dict.fromkeys(Severity, 0)
    agents = []
    for word in read_texts(arguments, "agents"):
        program = _of(machine, word)
        try:
            findings = lint_one(program)
        except OSError as error:
            return answer([report(Code.NO_INPUT, file=program.path, problem=error.strerror or str(error), remedy="")])
        for each in findings:
            counts[each.severity] += 1
        shown = tuple(LintFinding(str(each.severity), each.code, each.line, each.message) for each in findings)
        agents.append(LintedAgent(str(program.agent), str(program.path), shown))
    is_wrong = counts[Severity.ERROR] > 0 or (arguments.get("strict") is True and counts[Severity.WARNING] > 0)
    counted = LintCounts(counts[Severity.ERROR], counts[Severity.WARNING], counts[Severity.NOTE])
    return Response("", int(is_wrong), (), as_json(AgentLint(tuple(agents), counted)))


def test(arguments: Mapping[str, Json]) -> Response:
    """Put an agent through the matrix (schema `haclusterd.agent_test/1`); status 1: a trial failed."""
    from haclusterd.adapters.agent_checks.family import adopt_orphans
    from haclusterd.adapters.agent_checks.matrix import CHECKS, Trial, TrialResult
    from haclusterd.adapters.agent_checks.matrix import run as run_matrix
    from haclusterd.entry_points.stand_in_cluster import NODE

    only = read_texts(arguments, "only")
    known = [check.name for check in CHECKS]
    unknown = next((each for each in only if each not in known), None)
    if unknown is not None:
        problem = f"{unknown!r} is none of: {', '.join(known)}"
        return answer([report(Code.BAD_ARGUMENT, name="--only", problem=problem)])
    machine = Machine()
    program = _program(arguments)
    described = _described(program.agent, program.path, machine)
    metadata = read_agent_metadata(metadata_text(program.agent, program.path, machine.directories), program.agent)
    adopt_orphans()
    rows = []
    with tempfile.TemporaryDirectory(prefix="haclusterd-agent-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        (directory / "state").mkdir()
        surroundings = replace(program.surroundings, node=NODE, state_directory=directory / "state")
        meta = _of_a_clone(metadata.actions, program.instance, NODE)
        program = replace(program, surroundings=surroundings, meta=meta)
        with _answered(program, is_promotable="promote" in metadata.actions, directory=directory) as (whole, cluster):
            trial = Trial(
                whole, metadata, directory, _levels(described), cluster.attributes if cluster else dict,
                _duration(arguments, "timeout"),
            )  # fmt: skip
            for row in run_matrix(trial, only):
                _say_progress(row.name)
                rows.append(row)
        _say_progress("")
    passed, failed, skipped = (
        sum(row.verdict is result for row in rows)
        for result in (TrialResult.PASSED, TrialResult.FAILED, TrialResult.SKIPPED)
    )
    data = as_json(AgentTrials(
        agent=str(program.agent), file=str(program.path),
        trials=tuple(TrialRow(row.name, row.what, str(row.verdict), row.detail, row.wall_ms) for row in rows),
        counts=TrialCounts(passed, failed, skipped), wall_ms=sum(row.wall_ms for row in rows),
    ))  # fmt: skip
    if read_text(arguments, "junit"):
        problem_item = _write_junit(Path(read_text(arguments, "junit")), str(program.agent), rows)
        if problem_item is not None:
            return answer([problem_item], data)
    return Response("", int(failed > 0), tuple(map(shown_report, _undeclared(program, metadata))), data)


def _write_junit(path: Path, agent: str, rows: "Sequence[Row]") -> ReportItem | None:
    """Write the trials as JUnit XML, as CI systems read it."""
    counts = {"tests": len(rows), "failures": 0, "skipped": 0}
    suite = ET.Element("testsuite", name=agent, errors="0", time=f"{sum(row.wall_ms for row in rows) / 1000:.3f}")
    for row in rows:
        case = ET.SubElement(suite, "testcase", classname=agent, name=row.name, time=f"{row.wall_ms / 1000:.3f}")
        kind = {"failed": "failure", "skipped": "skipped"}.get(row.verdict)
        if kind:
            counts["failures" if kind == "failure" else "skipped"] += 1
            ET.SubElement(case, kind, message=_printable(row.detail)).text = _printable(f"{row.what}: {row.detail}")
    suite.attrib.update({name: str(count) for name, count in counts.items()})
    try:
        path.write_bytes(ET.tostring(suite, encoding="utf-8", xml_declaration=True))
    except OSError as error:
        return report(Code.INPUT_OUTPUT, what=path, problem=error.strerror or str(error))
    return None


def _printable(text: str) -> str:
    """Return text without the characters that XML cannot hold."""
    return "".join(character if character.isprintable() or character in "\n\t" else "?" for character in text)


def _say_progress(name: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{name}")
        sys.stderr.flush()


# What is asked about


def _found(machine: Machine, word: str) -> tuple[AgentReference, Path]:
    """Return the agent that a word means: a path, or what `crm ra info` takes."""
    path = Path(word)
    if ("/" in word and not word.startswith("stonith:")) or path.is_file():
        if not path.is_file():
            raise RefusedError(report(Code.NO_INPUT, file=word, problem="there is no such file", remedy=""))
        path = path.resolve()
        is_installed = path.parents[1].name == "resource.d" if len(path.parents) > 1 else False
        is_shipped = path.parent == machine.directories.shipped
        provider = path.parent.name if is_installed else OWN_PROVIDER if is_shipped else "local"
        return AgentReference("ocf", provider, path.name), path
    agent = machine.named(word)
    if isinstance(agent, ReportItem):
        raise RefusedError(agent)
    if agent.standard != "ocf":
        raise RefusedError(report(Code.BAD_ARGUMENT, name="AGENT", problem="only agents of class ocf"))
    found = machine.find(agent)
    assert found is not None
    return agent, found


def _of(machine: Machine, word: str) -> Program:
    agent, path = _found(machine, word)
    socket = Path(os.environ.get("HACLUSTERD_SOCKET") or DEFAULT_SOCKET)
    node = os.environ.get("HACLUSTERD_NODE") or os.uname().nodename.partition(".")[0]
    directories = replace(machine.directories, control_socket=socket)
    return Program(agent, path, Surroundings(node, directories, _state_directory()), agent.type)


def _state_directory() -> Path:
    """Return the daemon's directory of agents' files; one of their own for users who may not write there."""
    given = os.environ.get("HA_RSCTMP")
    if given:
        return Path(given)
    if os.getuid() == 0:
        return STATE_DIRECTORY
    return private_directory(Path(tempfile.gettempdir(), f"haclusterd-agents-{os.getuid()}"))


def private_directory(path: Path) -> Path:
    """Return a directory that nobody else can write to; make it where there is none. Another one is refused.

    Its name can be guessed where anybody may make files: records in another user's directory are that user's word.
    """
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = f"others can write to {path}: remove it, or name a directory of yours"
        raise RefusedError(report(Code.BAD_ARGUMENT, name="HA_RSCTMP", problem=problem))
    return path


def _program(arguments: Mapping[str, Json]) -> Program:
    """Return the agent with the parameters and the instance that were given."""
    program = _of(Machine(), read_text(arguments, "agent"))
    parameters = dict(_pair("PARAMETERS", word) for word in read_texts(arguments, "parameters"))
    return replace(program, parameters=parameters, instance=read_text(arguments, "instance") or program.instance)


def _pair(name: str, word: str) -> tuple[str, str]:
    key, has_value, value = word.partition("=")
    if not key or not has_value:
        raise RefusedError(report(Code.BAD_ARGUMENT, name=name, problem=f"{word!r}: write NAME=VALUE"))
    return key, value


def _meta(arguments: Mapping[str, Json]) -> dict[str, str]:
    """Return the meta-attributes of the action: `--meta`, and the interval of a recurring monitor."""
    found = dict(_pair("--meta", word) for word in read_texts(arguments, "meta"))
    interval_ms = _duration(arguments, "interval")
    return found if interval_ms is None else {**found, "interval": str(interval_ms)}


def _level(arguments: Mapping[str, Json]) -> str | None:
    level = arguments.get("level")
    return None if level is None else str(level)


def _duration(arguments: Mapping[str, Json], name: str) -> int | None:
    text = read_text(arguments, name)
    if not text:
        return None
    try:
        return durations.parse(text)
    except ValueError:
        problem = f"{text!r} is no span of time, as 20s"
        raise RefusedError(report(Code.BAD_ARGUMENT, name=f"--{name}", problem=problem)) from None


def _metadata(arguments: Mapping[str, Json], program: Program, action: str) -> AgentMetadata | None:
    """Return what the agent says of itself; None where that cannot be read, or an action needs nothing of it."""
    if action in ACTIONS_OF_NO_PARAMETERS or (read_text(arguments, "timeout") and not program.parameters):
        return None
    try:
        text = metadata_text(program.agent, program.path, program.surroundings.directories)
        return read_agent_metadata(text, program.agent)
    except (OSError, MetadataError):
        return None


def _timeout_ms(arguments: Mapping[str, Json], metadata: AgentMetadata | None, action: str) -> int:
    """Return the timeout that was given, else the one that the agent advises."""
    given = _duration(arguments, "timeout")
    if given is not None:
        return given or DEFAULT_TIMEOUT_MS
    advised = None if metadata is None else metadata.actions.get(action)
    return (advised.timeout_ms if advised else None) or DEFAULT_TIMEOUT_MS


def _undeclared(program: Program, metadata: AgentMetadata | None) -> list[ReportItem]:
    """Warn of given parameters that the meta-data lacks: most are misspelled, and the cluster would refuse them."""
    if metadata is None:
        return []
    return [
        report(
            Code.UNKNOWN_PARAMETER, where="PARAMETERS", agent=program.agent, name=name, severity=Severity.WARNING,
            remedy=did_you_mean(name, metadata.parameters, f"see: crm agent info {program.path}"),
        )
        for name in program.parameters
        if name not in metadata.parameters
    ]


def _described(agent: AgentReference, path: Path, machine: Machine) -> AgentDescription:
    try:
        return read_description(metadata_text(agent, path, machine.directories), str(agent), str(path))
    except (OSError, MetadataError) as error:
        problem = why_not_executed(path, error) if isinstance(error, OSError) else str(error)
        raise RefusedError(report(Code.NO_INPUT, file=f"{path} meta-data", problem=problem, remedy="")) from None


def _levels(described: AgentDescription) -> tuple[str, ...]:
    """Return the depths of the advised monitors."""
    depths = {each.get("depth") or "0" for each in described.actions if each.get("name") == "monitor"}
    return tuple(sorted((each for each in depths | {"0"} if each.isdecimal()), key=int))


def _may_promote(path: Path) -> bool:
    """Tell whether the agent's text speaks of promotion; its meta-data may be what does not end."""
    try:
        return "promot" in path.read_text(errors="replace")
    except OSError:
        return False


def _of_a_clone(actions: Mapping[str, object], instance: str, node: str) -> Mapping[str, str]:
    """Return the meta-attributes of a promotable clone's instance; none for any other agent."""
    if "promote" not in actions:
        return {}
    return {
        "clone": "0", "clone_max": "2", "clone_node_max": "1", "globally_unique": "false", "notify": "true",
        "promotable": "true", "promoted_max": "1", "promoted_node_max": "1", "master_max": "1", "master_node_max": "1",
        "physical_host": node, "resource_name": instance,
    }  # fmt: skip


@contextmanager
def _answered(
    program: Program, *, is_promotable: bool, directory: Path | None = None
) -> "Iterator[tuple[Program, StandInCluster | None]]":
    """Give the agent a cluster that answers its tools: the daemon of this machine, or a stand-in.

    In a `directory` it is always a stand-in, so that a trial changes nothing of a real cluster.
    """
    socket = program.surroundings.directories.control_socket
    is_answered = socket is not None and socket.is_socket()
    if directory is None and (is_answered or not (is_promotable or named_tools(program.path))):
        yield program, None
        return
    from haclusterd.entry_points.stand_in_cluster import NODE, StandInCluster

    with tempfile.TemporaryDirectory(prefix="haclusterd-agent-") as own:
        place = directory or Path(own)
        with StandInCluster(place, program.agent, program.instance, is_promotable=is_promotable) as cluster:
            directories = replace(program.surroundings.directories, control_socket=cluster.socket)
            surroundings = replace(program.surroundings, directories=directories, node=NODE)
            yield replace(program, surroundings=surroundings), cluster


def _refusing(command: Callable[[Mapping[str, Json]], Response]) -> Callable[[Mapping[str, Json]], Response]:
    def carried_out(arguments: Mapping[str, Json]) -> Response:
        try:
            return command(arguments)
        except RefusedError as refusal:
            return answer([refusal.item])

    return carried_out


COMMANDS: Mapping[str, Callable[[Mapping[str, Json]], Response]] = {
    name: _refusing(command)
    for name, command in
    (("new", new), ("info", info), ("env", environment), ("run", run), ("lint", lint), ("test", test))
}  # fmt: skip
