"""Agents that watch their node and publish what they find as node attributes (Pacemaker Explained, "Tracking Node
Health").

Such a resource has no process: it is active while its state file is there, and every recurring monitor takes a sample.
The file lies in the cluster's state directory, which a reboot empties. Invariants: a probe measures nothing; what is
published is published again at every monitor, so that nothing depends on one write; stop takes the attributes away, a
little later, so that a restart is no recovery, and succeeds without the cluster.

It must never fail because of what it measures: a sick node is an attribute, not a failed monitor, or the agent would be
taken from the very node that it has to watch. A monitor that cannot publish says 190 (degraded).
"""

from __future__ import annotations

import json
import os
from typing import Any

from haclusterd.agents.cluster_link import SOCKET_VARIABLE, ClusterError, ClusterLink
from haclusterd.agents.ocf import Agent, ConfigurationError, DegradedError, NotRunningError, Parameter

COLOURS = ("green", "yellow", "red")
PUBLISH_TIMEOUT_S = 8.0
FAREWELL_S = 10
"""How long attributes outlive a stop: a restart publishes before, and a sick node does not look well meanwhile."""

COMMON_PARAMETERS = (
    Parameter(
        "raise_after",
        shortdesc="Bad samples in a row until the node gets worse",
        content="integer",
        default="3",
        is_reloadable=True,
    ),
    Parameter(
        "clear_after",
        shortdesc="Good samples in a row until the node gets better",
        content="integer",
        default="3",
        is_reloadable=True,
    ),
    Parameter(
        "dampen",
        shortdesc="Dampening of the attributes",
        longdesc="How long a new value waits for a newer one before it is written; 0 writes it at once.",
        content="time",
        default="0s",
        is_reloadable=True,
    ),
)


class HealthAgent(Agent):
    """An agent that samples; subclasses say what."""

    def sample(self, state: dict[str, Any]) -> dict[str, str | None]:
        """Take a sample into the state, and return the attributes to publish; None: to be taken away.

        `state` is what the last sample left, empty at the first; it must be JSON. What was published before and is not
        returned is taken away.
        """
        raise NotImplementedError

    # Actions

    def start(self) -> None:
        """Take the first sample and publish it."""
        state = self._read_state() or {}
        self._write_state(state)
        try:
            self._sample_and_publish(state)
        except DegradedError as failure:
            self.say(str(failure))  # Active all the same: the next monitor publishes.

    def stop(self) -> None:
        """Take the attributes away and forget the past."""
        state = self._read_state()
        if state is None:
            return
        try:
            self._publish(dict.fromkeys(state.get("published", ())), FAREWELL_S)
        except DegradedError as failure:
            self.say(str(failure))
        os.unlink(self._state_path)

    def monitor(self) -> None:
        """Take a sample and publish it; a probe only looks whether this is active."""
        state = self._read_state()
        if state is None:
            raise NotRunningError("not started since this node booted")
        if not self.is_probe:
            self._sample_and_publish(state)

    def reload(self) -> None:
        """Nothing to do: the next sample uses the new parameters."""

    def validate(self) -> None:
        """Refuse parameters that cannot work."""
        for name in ("raise_after", "clear_after"):
            if self.integer(name) < 1:
                raise ConfigurationError(f"{name}: must be at least 1")
        self.seconds("dampen")

    # State

    @property
    def _state_path(self) -> str:
        return os.path.join(self.state_directory, f"{self.name}-{self.instance.replace('/', '_')}.state")

    def _read_state(self) -> dict[str, Any] | None:
        try:
            with open(self._state_path) as stream:
                state = json.load(stream)
        except FileNotFoundError:
            return None
        except ValueError:
            return {}  # Torn by a crash: the next samples make it again.
        return state if isinstance(state, dict) else {}

    def _write_state(self, state: dict[str, Any]) -> None:
        os.makedirs(self.state_directory, mode=0o755, exist_ok=True)
        new = f"{self._state_path}.new"
        with open(new, "w") as stream:
            json.dump(state, stream)
        os.replace(new, self._state_path)

    def _sample_and_publish(self, state: dict[str, Any]) -> None:
        attributes = self.sample(state)
        before = state.get("published", ())
        state["published"] = sorted({*before, *(name for name, value in attributes.items() if value is not None)})
        self._write_state(state)
        gone = {name: None for name in before if name not in attributes}
        self._publish({**attributes, **gone}, self.seconds("dampen"))
        state["published"] = sorted(name for name, value in attributes.items() if value is not None)
        self._write_state(state)

    # Publishing

    def _publish(self, attributes: dict[str, str | None], dampen_s: float) -> None:
        """Publish attributes of this node; raise `DegradedError` when they cannot be."""
        if not os.environ.get(SOCKET_VARIABLE):
            self._publish_with_tool(attributes, dampen_s)
            return
        try:
            with ClusterLink(timeout_s=min(PUBLISH_TIMEOUT_S, max(1.0, self.remaining() - 1))) as link:
                for name, value in sorted(attributes.items()):
                    arguments: dict[str, Any] = {"node": self._node, "name": name, "action": "delete"}
                    if value is not None:
                        arguments.update(action="set", value=value)
                    if dampen_s:
                        arguments["dampen_ms"] = int(dampen_s * 1000)
                    link.ask("node.attribute", arguments)
        except ClusterError as error:
            raise DegradedError(f"cannot publish: {error}") from None

    def _publish_with_tool(self, attributes: dict[str, str | None], dampen_s: float) -> None:
        """Publish through the tool that every cluster of this family has."""
        import subprocess

        for name, value in sorted(attributes.items()):
            what = ["-D", "-d", f"{int(dampen_s)}s"] if value is None else ["-U", value, "-d", f"{int(dampen_s)}s"]
            try:
                done = subprocess.run(
                    ["attrd_updater", "-n", name, *what],
                    timeout=PUBLISH_TIMEOUT_S,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise DegradedError(f"cannot publish: attrd_updater: {error}") from None
            if done.returncode:
                raise DegradedError(f"cannot publish: {done.stderr.decode('utf-8', 'replace').strip()}")

    @property
    def _node(self) -> str:
        return os.environ.get("OCF_RESKEY_CRM_meta_on_node") or os.environ.get("HACLUSTERD_NODE", "")  # noqa: SIM112 (the name is Pacemaker's)
