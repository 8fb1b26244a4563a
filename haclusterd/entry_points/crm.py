"""`crm`: the composition root of the command line. Everything slow to import is imported only when it is needed.

Here nothing of the package is imported at once: until `run` can catch an interrupt, one just ends the process.
"""

import gc
import os
import signal
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from haclusterd.cli.main import World
    from haclusterd.model.agents import AgentFacts
    from haclusterd.model.ids import AgentReference
    from haclusterd.model.json_value import Json
    from haclusterd.model.requests import Response
    from haclusterd.ports.control import CommandClient, DaemonLink


OBJECTS_BEFORE_COLLECTION = 100_000
"""More than the modules and the answer of a usual command are made of; a shell or a large file goes beyond it."""


def main() -> int:
    """Run `crm` with this process's arguments and streams."""
    gc.set_threshold(OBJECTS_BEFORE_COLLECTION)
    if sys.argv[1:2] == ["--as-tool"]:  # AS_TOOL of haclusterd.agents.cluster_tool
        from haclusterd.cli.tool_on_file import main as answer

        return answer(sys.argv[2], sys.argv[3:], os.environ, author())
    interrupted = signal.getsignal(signal.SIGINT)
    if interrupted is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from haclusterd.cli.main import run
    from haclusterd.cli.output import let_go

    made = world()
    signal.signal(signal.SIGINT, interrupted)
    try:
        return run(sys.argv[1:], made)
    finally:
        let_go(made.streams.stdout)
        # At its end the interpreter looks for garbage in all that is not frozen.
        gc.freeze()


def world() -> "World":
    """Return what `crm` is given: this process's streams and environment, the control socket, and its own tools."""
    from haclusterd.adapters.control.client import ControlClient
    from haclusterd.cli.main import World
    from haclusterd.cli.output import messages, output, readable
    from haclusterd.cli.session import Streams

    return World(
        streams=Streams(readable(sys.stdin), output(sys.stdout), messages(sys.stderr)),
        environment=os.environ,
        connect=ControlClient,
        open_file=_open_file,
        setup=_setup,
        version=_version,
        link=_link,
        tools={
            "cluster restore": _restore, "cluster recover": _recover, "cluster init": _init, "cluster join": _join,
            "cluster this-is": _this_is,
            "migrate check": _check,
            **{f"ra {name}": partial(_agents, name) for name in ("classes", "list", "info", "providers", "validate")},
            **{f"gpu {name}": partial(_gpu, name) for name in ("explain", "lint", "simulate-fail")},
            **{f"agent {name}": partial(_agent, name) for name in ("new", "info", "env", "run", "lint", "test")},
        },
    )


def _open_file(path: str) -> "CommandClient":
    from haclusterd.cli.offline import OfflineClient

    return OfflineClient(path, author(), survey=_survey)


def _survey(agents: "Iterable[AgentReference]") -> "Mapping[str, AgentFacts]":
    from haclusterd.entry_points.crm_agents import survey_here

    return survey_here(agents)


def _link(socket: str) -> "DaemonLink":
    from haclusterd.adapters.control.link import ControlLink

    return ControlLink(socket, 1)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("haclusterd")
    except PackageNotFoundError:
        return "from a source tree"


def author() -> str:
    """Return who is at work, as `user@host`."""
    import pwd
    import socket

    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def _setup(arguments: "Mapping[str, Json]") -> "Response":
    from haclusterd.entry_points.crm_setup import set_up

    return set_up(arguments)


def _restore(arguments: "Mapping[str, Json]") -> "Response":
    from haclusterd.entry_points.crm_restore import restore

    return restore(arguments, author())


def _recover(arguments: "Mapping[str, Json]") -> "Response":
    from haclusterd.entry_points.crm_recover import recover

    return recover(arguments, author())


def _this_is(arguments: "Mapping[str, Json]") -> "Response":
    from haclusterd.entry_points.crm_this_is import this_is

    return this_is(arguments)


def _init(arguments: "Mapping[str, Json]") -> "Response":
    from haclusterd.entry_points.crm_init import init

    return init(arguments)


def _join(arguments: "Mapping[str, Json]") -> "Response":
    from haclusterd.entry_points.crm_join import join

    return join(arguments)


def _agents(name: str, arguments: "Mapping[str, Json]") -> "Response":
    from haclusterd.entry_points.crm_agents import COMMANDS

    return COMMANDS[name](arguments)


def _agent(name: str, arguments: "Mapping[str, Json]") -> "Response":
    from haclusterd.entry_points.crm_agent import COMMANDS

    return COMMANDS[name](arguments)


def _gpu(name: str, arguments: "Mapping[str, Json]") -> "Response":
    from haclusterd.adapters.devices.machine_faults import COMMANDS

    return COMMANDS[name](arguments)


def _check(arguments: "Mapping[str, Json]") -> "Response":
    from haclusterd.entry_points.crm_migrate import check

    return check(arguments)


if __name__ == "__main__":
    sys.exit(main())
