"""What a node does with the cluster's secrets (docs/design/0017-secrets.md).

A member that lacks the secret key gets it from one that has it. Level-triggered: the CIB shows who lacks the key. Of
the online members that have it, the first by name gives it, so that one log entry is enough.
"""

import hashlib
from collections.abc import Callable

from haclusterd.cib.commands import Command, ShareSecretKey
from haclusterd.cib.secrets.apply_secrets import lacks_key
from haclusterd.machines.effects import Scope
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.records import replace
from haclusterd.runtime.ports import NodePorts
from haclusterd.runtime.secrets.values import SecretAgents, SecretFenceAgents, SecretValues


class NodeSecrets:
    """One node's use of secrets: its agents get their values, other members the key."""

    def __init__(
        self,
        node: NodeName,
        ports: NodePorts,
        cib: Callable[[], Cib],
        propose: Callable[[Scope, str, Command], None],
    ) -> None:
        """The attribute `ports` has the ports through which agents must be run from now on."""
        self._node = node
        self._keeper = ports.secrets
        self._cib = cib
        self._propose = propose
        self._given = ""
        """The key of the newest proposal: an unchanged one is not repeated."""
        self._version = 0
        """The version of the secrets at the last check of actions that wait for the key."""
        values = SecretValues(ports.secrets, lambda: cib().secrets, ports.background)
        self._agents = SecretAgents(ports.agents, values, ports.clock)
        fence_agents = SecretFenceAgents(ports.fence_agents, values, ports.clock)
        self.ports = replace(ports, agents=self._agents, fence_agents=fence_agents)

    def step(self, incarnation: Incarnation) -> None:
        """Take the newest applied CIB."""
        cib = self._cib()
        self._share(cib, incarnation)
        if cib.secrets.version != self._version:
            self._version = cib.secrets.version
            self._agents.look_again()

    def _share(self, cib: Cib, incarnation: Incarnation) -> None:
        """Give the key to members that lack it, if that is this node's part."""
        secrets = cib.secrets
        if not secrets.key_id:
            return
        lacking = dict(lacks_key(cib))
        if not lacking or self._node != _giver(cib, lacking):
            return
        whom = hashlib.sha256(repr(sorted(lacking.items())).encode()).hexdigest()[:16]
        key = f"secret-key:{incarnation}:{secrets.key_id}:{whom}"
        if key == self._given:
            return
        self._given = key
        keys = self._keeper.share(secrets, lacking)
        if keys:
            self._propose(Scope.INCARNATION, key, ShareSecretKey(secrets.key_id, keys))


def _giver(cib: Cib, lacking: dict[NodeName, str]) -> NodeName | None:
    nodes = cib.status.nodes
    able = (name for name in cib.secrets.keys if name not in lacking and name in nodes)
    return min((name for name in able if nodes[name].state is NodeState.ONLINE), default=None)
