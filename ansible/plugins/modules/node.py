"""Bring a node of a cluster into a state: `crm node`."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node
short_description: Bring a node of a failover cluster into a state
version_added: 0.1.0
author:
  - The haclusterd authors (@haclusterd)
description:
  - Empties a node, lets it run resources again, sets it in maintenance or ends that.
options:
  name:
    description:
      - The name of the node.
    type: str
    required: true
    aliases: [node]
  state:
    description:
      - V(standby) moves all resources away and keeps them away.
      - V(online) ends that.
      - V(maintenance) leaves everything on the node alone, monitors too.
      - V(ready) ends that.
    type: str
    required: true
    choices: [online, standby, maintenance, ready]
extends_documentation_fragment:
  - haclusterd.cluster.connection
  - haclusterd.cluster.connection.changes
"""

EXAMPLES = r"""
- name: Empty this node before it is rebooted
  haclusterd.cluster.node:
    name: "{{ inventory_hostname }}"
    state: standby
    wait: 5min
    reason: new kernel

- name: Let it run resources again
  haclusterd.cluster.node:
    name: "{{ inventory_hostname }}"
    state: online
"""

RETURN = r"""
edits:
  description: What is changed in the configuration; C(+) added, C(~) changed, C(-) removed.
  returned: success
  type: list
  elements: str
  sample: ["+ primitive web"]
version:
  description: The version of the configuration afterwards; null where the configuration is not concerned.
  returned: success
  type: int
  sample: 12
actions:
  description: What the cluster would do then.
  returned: in check mode, when something would be changed
  type: list
  elements: str
  sample: ["start web on n1"]
interruptions:
  description: What would be stopped meanwhile, where it is begun again, and after how many milliseconds at most.
  returned: in check mode, when something would be changed
  type: list
  elements: dict
reports:
  description: Everything that the program says, each with C(severity), C(code), C(message), C(place) and C(remedy).
  returned: always
  type: list
  elements: dict
code:
  description: The code of the first error.
  returned: failure
  type: str
  sample: NO_SUCH_NODE
"""

from ansible_collections.haclusterd.cluster.plugins.module_utils.program import (
    CHANGES,
    Program,
    argument_spec,
    difference,
    finish,
    made_module,
)

SPEC = {
    "name": {"type": "str", "required": True, "aliases": ["node"]},
    "state": {"type": "str", "required": True, "choices": ["online", "standby", "maintenance", "ready"]},
}
VERBS = {
    "online": ("node.online", {}, {"standby": False}),
    "standby": ("node.standby", {}, {"standby": True}),
    "maintenance": ("node.maintenance", {}, {"maintenance": True}),
    "ready": ("node.maintenance", {"ready": True}, {"maintenance": False}),
}
"""By state: the verb, its arguments beside the node, and what is so afterwards."""


def main():
    """Bring the node into the state that the parameters say."""
    module = made_module(argument_spec(CHANGES, SPEC))
    program, node = Program(module), module.params["name"]
    verb, arguments, after = VERBS[module.params["state"]]
    shown = program.read("node.show", node=node)["nodes"][0]
    before = {"node": node, "standby": shown["is_standby"], "maintenance": shown["is_maintenance"]}
    answer = program.change(verb, node=node, **arguments)
    finish(module, answer, difference(answer, before, after))


if __name__ == "__main__":
    main()
