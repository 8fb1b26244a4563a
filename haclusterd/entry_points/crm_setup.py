"""`crm cluster setup`: from what was typed to the files of a new cluster."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from haclusterd.entry_points.cluster_setup import SetupRefusedError, make_bundles
from haclusterd.model.addresses import read_address
from haclusterd.model.cluster import Member
from haclusterd.model.ids import NODE_NAME, NodeName
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Response
from haclusterd.protocol.control import shown_report
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, exit_status, report
from haclusterd.verbs.answers.answer import as_json
from haclusterd.verbs.answers.crm import Setup

_EXAMPLE = "write it as n1=10.0.0.1:7400"


def set_up(arguments: Mapping[str, Json]) -> Response:
    """Make one directory for each node; everything wrong with what was typed is shown_report at once."""
    members, objections = read_members(arguments)
    name = read_text(arguments, "name")
    output = read_text(arguments, "output")
    for value, option in ((name, "--name"), (output, "--output")):
        if not value:
            objections.append(report(Code.MISSING_ARGUMENT, verb="cluster setup", name=option, meaning="it is needed"))
    if objections:
        return answer(objections)
    directory = Path(output)
    try:
        bundles = make_bundles(name, members, directory)
    except SetupRefusedError as error:
        return answer([report(Code.UNSAFE, problem=str(error), remedy="")])
    except OSError as error:
        problem = error.strerror or str(error)
        return answer([report(Code.INPUT_OUTPUT, what=error.filename or output, problem=problem)])
    made = Setup(
        name=name,
        nodes=tuple(member.name for member in members),
        directory=str(directory),
        files=tuple(f"{node}: {bundle}" for node, bundle in bundles.items()),
        next_steps=(
            "Copy each directory to its node, as /etc/haclusterd, readable by root only.",
            "Keep the directory `authority` apart: who has it can admit nodes.",
            "Then on each node, once: haclusterd --initialize",
            "and: systemctl enable --now haclusterd",
            "Then look: crm status",
        ),
    )
    return answer(advice(members), as_json(made))


def read_text(arguments: Mapping[str, Json], name: str) -> str:
    """Return an option's text; empty when it was not given."""
    value = arguments.get(name)
    return value if isinstance(value, str) else ""


def read_texts(arguments: Mapping[str, Json], name: str) -> list[str]:
    """Return what was given for an option that can be given several times."""
    value = arguments.get(name)
    if isinstance(value, str):
        return [value]
    return [str(each) for each in value] if isinstance(value, Sequence) else []


def read_members(
    arguments: Mapping[str, Json], verb: str = "cluster setup", known: Sequence[Member] = ()
) -> tuple[list[Member], list[ReportItem]]:
    """Read `--node` and `--witness`, with everything that is wrong with them; none given: those that are known."""
    members: list[Member] = []
    objections: list[ReportItem] = []
    for option, is_witness in (("node", False), ("witness", True)):
        for text in read_texts(arguments, option):
            try:
                member = _member(text, is_witness=is_witness)
            except ValueError as error:
                objections.append(report(Code.BAD_ARGUMENT, name=f"--{option} {text}", problem=error, remedy=_EXAMPLE))
                continue
            if any(member.name == other.name for other in members):
                objections.append(report(Code.BAD_ARGUMENT, name=f"--{option} {text}", problem="it is named twice"))
            if any(set(member.addresses) & set(other.addresses) for other in members):
                objections.append(report(Code.BAD_ARGUMENT, name=f"--{option} {text}", problem="the address is taken"))
            members.append(member)
    if not members and not objections and known:
        return list(known), []
    if not members and not objections:
        objections.append(
            report(Code.MISSING_ARGUMENT, verb=verb, name="--node", meaning=f"a node; {_EXAMPLE}")
        )
    return members, objections


def _member(text: str, *, is_witness: bool) -> Member:
    """Read NAME=HOST:PORT; more addresses of the same node follow after commas."""
    name, has_address, addresses = text.partition("=")
    if not NODE_NAME.match(name):
        raise ValueError(f"{name!r} cannot be a node's name")
    if not has_address:
        raise ValueError("the address is missing")
    return Member(NodeName(name), tuple(map(read_address, addresses.split(","))), is_voter=True, is_witness=is_witness)


def advice(members: Sequence[Member]) -> list[ReportItem]:
    """Return reports on these members."""
    count = sum(member.is_voter for member in members)
    return [report(Code.EVEN_VOTERS, count=count)] if count % 2 == 0 else []


def answer(reports: Sequence[ReportItem], data: Json = None) -> Response:
    """Return the answer of a command that asks no daemon."""
    return Response("", int(exit_status(reports)), tuple(map(shown_report, reports)), data)
