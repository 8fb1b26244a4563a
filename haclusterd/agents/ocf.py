"""The frame of a resource agent in Python: parameters, meta-data, exit codes, one reason for every failure.

Stands alone: standard library only, any Python from 3.9, no cluster needed, and few imports, because an agent is
started for each action. An agent is a subclass of `Agent` with methods named like its actions:

    class Pump(Agent):
        name = "pump"
        shortdesc = "A pump"
        parameters = (Parameter("port", shortdesc="Where it listens", content="integer", default="80"),)
        def start(self): ...
        def stop(self): ...
        def monitor(self): ...

    if __name__ == "__main__":
        Pump().main()

A method returns for success or raises `ActionError` (transient, 1), `NodeError` (this node lacks something, 5),
`ConfigurationError` (wrong on every node, 6) or `NotRunningError` (7). Of an agent with `is_promotable`, `monitor`
raises `PromotedError` (8) where the resource is promoted, and `promote` and `demote` are methods too; with `has_notify`
there is `notify`, which finds what happens in `self.notification`. `crm agent new` writes a whole one.
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
PROMOTED = 8
FAILED_PROMOTED = 9
DEGRADED = 190
DEGRADED_PROMOTED = 191

TOOL_TIMEOUT_S = 30.0
"""For how long an answer of one of the cluster's tools is waited for; without quorum it takes seconds."""

DOCTYPE = """\
<!DOCTYPE resource-agent SYSTEM "ra-api-1.dtd" [
  <!ATTLIST action name NMTOKEN #REQUIRED>
  <!ATTLIST parameter private (0|1) #IMPLIED reloadable (0|1) #IMPLIED>
]>"""
"""The grammar that `ocf-tester` checks meta-data with is that of OCF 1.0; what 1.1 added to it is declared here."""

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


class PromotedError(ActionError):
    """No failure, but a monitor's answer: the resource is active and promoted."""

    exit_code = PROMOTED


class FailedPromotedError(ActionError):
    """The resource is promoted, and does not work."""

    exit_code = FAILED_PROMOTED


class DegradedError(ActionError):
    """The resource is active, and not as it should be."""

    exit_code = DEGRADED


class DegradedPromotedError(ActionError):
    """The resource is promoted, and not as it should be."""

    exit_code = DEGRADED_PROMOTED


class Notification:
    """What a notify action tells of (Pacemaker Explained, "Clone notifications").

    `when` is `pre` or `post`, `operation` is start, stop, promote or demote. `nodes(what)` are the nodes of the
    instances that are `start`ed, `stop`ped, `promote`d, `demote`d by it, or `active`, `promoted`, `unpromoted`,
    `inactive` before it; `promoted_after()` are those of the instances that are promoted when all of it is done.
    """

    def __init__(self) -> None:
        self.when = _meta("notify_type")
        self.operation = _meta("notify_operation")

    def nodes(self, what: str) -> list[str]:
        """Return the nodes of a list, each as often as it has instances in it."""
        older = {"promoted": "master", "unpromoted": "slave"}.get(what, what)
        return (_meta(f"notify_{what}_uname") or _meta(f"notify_{older}_uname")).split()

    def promoted_after(self) -> list[str]:
        """Return the nodes that have a promoted instance when what is under way is done."""
        leaving = {*self.nodes("demote"), *self.nodes("stop")}
        return sorted({*self.nodes("promoted")} - leaving | {*self.nodes("promote")})


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
    is_promotable = False
    """It has promote and demote; the advised monitor of a promoted instance is a second shorter."""
    has_notify = False

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

    def promote(self) -> None:
        """Return when the resource is promoted; at once when it is already."""
        raise NotImplementedError

    def demote(self) -> None:
        """Return when the resource is active and not promoted; at once when it is so already."""
        raise NotImplementedError

    def notify(self) -> None:
        """Take note of what happens to this clone's instances; see `notification`."""

    def validate(self) -> None:
        """Raise when the parameters cannot work; called before every action but stop.

        That required ones are there, and that each is of its `content` (integer, boolean, time), is checked before.
        """

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

    def boolean(self, name: str) -> bool:
        """Return a parameter as a boolean; an empty one is no."""
        return read_boolean(name, self.text(name) or "no")

    def program(self, name: str) -> str:
        """Return the path of a program; raises `NodeError` when this node lacks it."""
        for directory in [""] if "/" in name else os.environ.get("PATH", os.defpath).split(":"):
            path = os.path.join(directory, name)
            if os.access(path, os.X_OK) and os.path.isfile(path):
                return path
        raise NodeError(f"program {name!r} is not installed")

    @property
    def notification(self) -> Notification:
        """What this notify action tells of."""
        return Notification()

    def set_promotion_score(self, score: int) -> None:
        """Say how much this node wants to be promoted, until it boots again."""
        self._crm_attribute("--update", str(score))

    def forget_promotion_score(self) -> None:
        """Say that this node does not want to be promoted; a stop must not fail because nobody hears it."""
        try:
            self._crm_attribute("--delete")
        except ActionError as failure:
            sys.stderr.write(f"{failure}\n")

    def _crm_attribute(self, *words: str) -> None:
        import subprocess

        command = ["crm_attribute", "--promotion", "--lifetime", "reboot", *words]
        wait_s = max(1.0, min(TOOL_TIMEOUT_S, self.remaining() - 1))
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=wait_s, check=False
            )
        except subprocess.TimeoutExpired:
            raise ActionError(f"no promotion score is set: crm_attribute took over {wait_s:.0f} s") from None
        except OSError as error:
            raise NodeError(f"crm_attribute: {error.strerror}") from None
        if done.returncode != 0:
            raise ActionError(f"the promotion score is not set: {done.stderr.strip()}")

    @property
    def is_probe(self) -> bool:
        """Tell whether this monitor only asks what is there."""
        return (_meta("interval") or "0") == "0"

    def remaining(self) -> float:
        """Return the seconds left until this action is killed; a minute when nobody said."""
        timeout_ms = _meta("timeout")
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
        if self.is_promotable:
            methods |= {"promote": self.promote, "demote": self.demote}
        if self.has_notify:
            methods["notify"] = self.notify
        if action not in methods:
            sys.stderr.write(f"usage: {self.name} {'|'.join(each for each in methods if each != 'status')}|meta-data\n")
            return UNIMPLEMENTED
        try:
            if action != "stop":
                self._check_parameters()
                self.validate()
            methods[action]()
        except ActionError as failure:
            is_expected = isinstance(failure, PromotedError) or (isinstance(failure, NotRunningError) and self.is_probe)
            if not is_expected:
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

    def _check_parameters(self) -> None:
        """Refuse what the declarations rule out: a required one that is missing, all values of another type."""
        for parameter in self.parameters:
            if parameter.is_required and not self.text(parameter.name):
                raise ConfigurationError(f"required parameter {parameter.name!r} is missing")
        readers: dict[str, Callable[[str], object]] = {
            "integer": self.integer, "boolean": self.boolean, "time": self.seconds
        }
        problems = []
        for parameter in self.parameters:
            if parameter.content not in readers or not self.text(parameter.name):
                continue
            try:
                readers[parameter.content](parameter.name)
            except ConfigurationError as problem:
                problems.append(str(problem))
        if problems:
            raise ConfigurationError("; ".join(problems))

    def _declared(self, name: str) -> Parameter:
        return next(parameter for parameter in self.parameters if parameter.name == name)

    def metadata(self) -> str:
        """Return the meta-data (OCF Resource Agent API 1.1)."""
        lines = [
            '<?xml version="1.0"?>',
            DOCTYPE,
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
        further = ("promote", "demote") if self.is_promotable else ()
        for action in (*further, *(("notify",) if self.has_notify else ())):
            lines.append(f'    <action name="{action}" timeout="{self.timeouts.get(action, self.timeouts["start"])}"/>')
        lines += self._monitors_xml()
        lines += ['    <action name="reload-agent" timeout="20s"/>'] if self._can_reload else []
        lines += [
            '    <action name="validate-all" timeout="20s"/>',
            '    <action name="meta-data" timeout="5s"/>',
            "  </actions>",
            "</resource-agent>",
            "",
        ]
        return "\n".join(lines)


    def _monitors_xml(self) -> list[str]:
        found = []
        for depth, interval in self.monitors:
            rest = f'timeout="{self.timeouts["monitor"]}" interval="{interval}" depth="{depth}"'
            if not self.is_promotable:
                found.append(f'    <action name="monitor" {rest}/>')
                continue
            # Two recurring monitors of one resource must differ in their interval.
            shorter = rest.replace(f'interval="{interval}"', f'interval="{int(interval.rstrip("s")) - 1}s"')
            found.append(f'    <action name="monitor" {shorter} role="Promoted"/>')
            found.append(f'    <action name="monitor" {rest} role="Unpromoted"/>')
        return found


def _meta(name: str) -> str:
    """Return a meta-attribute that the cluster gives to the action; empty when it does not."""
    return os.environ.get(f"{META_PREFIX}{name}", "")


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
