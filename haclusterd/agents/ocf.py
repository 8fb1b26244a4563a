"""The frame of a resource agent in Python: parameters, meta-data, exit codes, one reason for every failure.

Stands alone: standard library only, any Python from 3.9, no cluster needed, and few imports, because an agent is
started for each action. An agent is a subclass of `Agent` with methods named like its actions:

    class Pump(Agent):
        name = "pump"
        parameters = (Parameter("port", content="integer", default="80", longdesc="Where it listens."),)
        def start(self): ...
        def stop(self): ...
        def monitor(self): ...

    Pump().main()

A method returns for success or raises `ActionError` (transient, 1), `NodeError` (this node lacks something, 5),
`ConfigurationError` (wrong on every node, 6) or `NotRunningError` (7).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

OK = 0
ERROR = 1
UNIMPLEMENTED = 3
NOT_INSTALLED = 5
NOT_CONFIGURED = 6
NOT_RUNNING = 7

META_PREFIX = "OCF_RESKEY_CRM_meta_"
DURATION_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "ms": 0.001, "m": 60.0, "min": 60.0, "h": 3600.0}
TRUE = ("1", "true", "yes", "on")
FALSE = ("0", "false", "no", "off")


class ActionError(Exception):
    """The action failed, and may succeed another time."""

    exit_code = ERROR


class NodeError(ActionError):
    """Something that this node lacks: software, a file, a user."""

    exit_code = NOT_INSTALLED


class ConfigurationError(ActionError):
    """A parameter is missing or wrong, on whatever node."""

    exit_code = NOT_CONFIGURED


class NotRunningError(ActionError):
    """The resource is cleanly stopped."""

    exit_code = NOT_RUNNING


class Parameter:
    """One parameter, as it appears in the meta-data."""

    def __init__(
        self,
        name: str,
        *,
        shortdesc: str,
        longdesc: str = "",
        content: str = "string",
        default: str | None = None,
        is_required: bool = False,
        is_unique: bool = False,
        is_private: bool = False,
        is_reloadable: bool = False,
    ) -> None:
        self.name = name
        self.shortdesc = shortdesc
        self.longdesc = longdesc or shortdesc
        self.content = content
        self.default = default
        self.is_required = is_required
        self.is_unique = is_unique
        self.is_private = is_private
        self.is_reloadable = is_reloadable


class Agent:
    """One resource agent; see the module."""

    name = ""
    version = "1.0"
    shortdesc = ""
    longdesc = ""
    parameters: tuple[Parameter, ...] = ()
    timeouts: dict[str, str] = {"start": "60s", "stop": "60s", "monitor": "20s"}  # noqa: RUF012 (agents replace it whole)
    monitors: tuple[tuple[str, str], ...] = (("0", "10s"),)
    """Depth and advised interval of each recurring monitor."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.instance = os.environ.get("OCF_RESOURCE_INSTANCE", "default")
        self.state_directory = os.environ.get("HA_RSCTMP", "/run/resource-agents")
        self.check_level = int(os.environ.get("OCF_CHECK_LEVEL") or 0)

    # What an agent does

    def start(self) -> None:
        """Return when the resource is fully active; at once when it is already."""
        raise NotImplementedError

    def stop(self) -> None:
        """Return when the resource is certainly stopped; at once when it is already."""
        raise NotImplementedError

    def monitor(self) -> None:
        """Return when the resource is active, raise `NotRunningError` when it is cleanly stopped."""
        raise NotImplementedError

    def reload(self) -> None:
        """Take changed parameters over without a restart; for agents with reloadable parameters."""

    def validate(self) -> None:
        """Raise when the parameters cannot work; called before start, monitor and validate-all, not before stop."""

    # What it may ask

    def text(self, name: str) -> str:
        """Return a parameter's value, or its default, or the empty string."""
        return os.environ.get(f"OCF_RESKEY_{name}") or self._declared(name).default or ""

    def integer(self, name: str) -> int:
        """Return a parameter as an integer."""
        try:
            return int(self.text(name))
        except ValueError:
            raise ConfigurationError(f"{name}: not an integer: {self.text(name)!r}") from None

    def seconds(self, name: str) -> float:
        """Return a parameter as a span in seconds: `20`, `20s`, `500ms`, `2min`."""
        text = self.text(name).strip().lower()
        number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
        unit = text[len(number) :].strip()
        try:
            return float(number) * DURATION_UNITS[unit]
        except (ValueError, KeyError):
            raise ConfigurationError(f"{name}: not a duration: {self.text(name)!r}") from None

    @property
    def is_probe(self) -> bool:
        """Tell whether this monitor only asks what is there."""
        return (os.environ.get(f"{META_PREFIX}interval") or "0") == "0"

    def remaining(self) -> float:
        """Return the seconds left until this action is killed; a minute when nobody said."""
        timeout_ms = os.environ.get(f"{META_PREFIX}timeout", "")
        total = int(timeout_ms) / 1000 if timeout_ms.isdigit() else 60.0
        return total - (time.monotonic() - self.begun)

    # What runs it

    def main(self) -> None:
        """Run the action that the command line names, and end the process with its exit code."""
        action = sys.argv[1] if len(sys.argv) == 2 else ""
        sys.exit(self.run(action))

    def run(self, action: str) -> int:
        """Run one action; return its exit code, with the reason of a failure on standard error."""
        if action == "meta-data":
            sys.stdout.write(self.metadata())
            return OK
        methods: dict[str, Callable[[], None]] = {
            "start": self.start,
            "stop": self.stop,
            "monitor": self.monitor,
            "status": self.monitor,
            "validate-all": lambda: None,
        }
        if self._can_reload:
            methods["reload-agent"] = self.reload
        if action not in methods:
            reload = "reload-agent|" if self._can_reload else ""
            sys.stderr.write(f"usage: {self.name} start|stop|monitor|{reload}validate-all|meta-data\n")
            return UNIMPLEMENTED
        try:
            if action != "stop":
                self._check_required()
                self.validate()
            methods[action]()
        except ActionError as failure:
            if not isinstance(failure, NotRunningError) or not self.is_probe:
                self.say(str(failure))
            return failure.exit_code
        except Exception as error:  # noqa: BLE001 -- the agent's own defect: reported in full, then a soft failure.
            import traceback

            traceback.print_exc()
            self.say(f"defect in the agent: {error.__class__.__name__}: {error}")
            return ERROR
        return OK

    def say(self, reason: str) -> None:
        """Print the reason of a failure where the cluster looks for it."""
        prefix = os.environ.get("OCF_EXIT_REASON_PREFIX", "ocf-exit-reason:")
        sys.stderr.write(f"{prefix}{' '.join(reason.split())}\n")

    @property
    def _can_reload(self) -> bool:
        return any(parameter.is_reloadable for parameter in self.parameters)

    def _check_required(self) -> None:
        for parameter in self.parameters:
            if parameter.is_required and not self.text(parameter.name):
                raise ConfigurationError(f"required parameter {parameter.name!r} is missing")

    def _declared(self, name: str) -> Parameter:
        return next(parameter for parameter in self.parameters if parameter.name == name)

    def metadata(self) -> str:
        """Return the meta-data (OCF Resource Agent API 1.1)."""
        lines = [
            '<?xml version="1.0"?>',
            f'<resource-agent name="{escape(self.name)}" version="{self.version}">',
            "  <version>1.1</version>",
            f'  <longdesc lang="en">{escape(self.longdesc)}</longdesc>',
            f'  <shortdesc lang="en">{escape(self.shortdesc)}</shortdesc>',
            "  <parameters>",
        ]
        for parameter in self.parameters:
            lines += _parameter_xml(parameter)
        lines += ["  </parameters>", "  <actions>"]
        for action in ("start", "stop"):
            lines.append(f'    <action name="{action}" timeout="{self.timeouts[action]}"/>')
        for depth, interval in self.monitors:
            timeout = self.timeouts["monitor"]
            lines.append(f'    <action name="monitor" timeout="{timeout}" interval="{interval}" depth="{depth}"/>')
        lines += ['    <action name="reload-agent" timeout="20s"/>'] if self._can_reload else []
        lines += [
            '    <action name="validate-all" timeout="20s"/>',
            '    <action name="meta-data" timeout="5s"/>',
            "  </actions>",
            "</resource-agent>",
            "",
        ]
        return "\n".join(lines)


def read_boolean(name: str, text: str) -> bool:
    """Return what a boolean parameter's text says."""
    if text.lower() in TRUE:
        return True
    if text.lower() in FALSE:
        return False
    raise ConfigurationError(f"{name}: not a boolean: {text!r}")


def escape(text: str) -> str:
    """Return the text as XML character data or attribute value."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(character, entity)
    return text


def _parameter_xml(parameter: Parameter) -> list[str]:
    flags = f' required="{int(parameter.is_required)}" unique="{int(parameter.is_unique)}"'
    flags += ' private="1"' if parameter.is_private else ""
    flags += ' reloadable="1"' if parameter.is_reloadable else ""
    default = "" if parameter.default is None else f' default="{escape(parameter.default)}"'
    return [
        f'    <parameter name="{escape(parameter.name)}"{flags}>',
        f'      <longdesc lang="en">{escape(parameter.longdesc)}</longdesc>',
        f'      <shortdesc lang="en">{escape(parameter.shortdesc)}</shortdesc>',
        f'      <content type="{parameter.content}"{default}/>',
        "    </parameter>",
    ]
