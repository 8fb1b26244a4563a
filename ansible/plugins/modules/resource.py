"""Bring a resource of a cluster into a state: `crm resource`."""

from __future__ import annotations

DOCUMENTATION = r"""
module: resource
short_description: Bring a resource of a failover cluster into a state
version_added: 0.1.0
author:
  - The haclusterd authors (@haclusterd)
description:
  - Starts, stops, moves or promotes a resource, takes it out of the hands of the cluster or gives it back, and forgets
    its failures.
  - What is stopped or let alone so is kept with the resource in the configuration; M(haclusterd.cluster.configuration)
    removes what its text does not say. Declare there what is to stay.
options:
  name:
    description:
      - The id of the resource.
    type: str
    required: true
    aliases: [resource]
  state:
    description:
      - V(started) lets it run, V(stopped) stops it and keeps it stopped.
      - V(promoted) lets a promotable clone be promoted, V(demoted) keeps it from that.
      - V(unmanaged) has it watched, not started or stopped; V(managed) ends that.
      - V(maintenance) has it left alone, monitors too; V(no_maintenance) ends that.
      - V(moved) moves it to O(node), with its group; a constraint stays only where it would go back otherwise.
      - V(cleared) removes the constraints that moves and bans left.
      - V(cleaned) forgets its failures, on O(node) or everywhere.
    type: str
    required: true
    choices:
      - started
      - stopped
      - promoted
      - demoted
      - managed
      - unmanaged
      - maintenance
      - no_maintenance
      - moved
      - cleared
      - cleaned
  node:
    description:
      - Where to, for V(moved), which requires it; on which node alone, for V(cleaned).
    type: str
extends_documentation_fragment:
  - haclusterd.cluster.connection
  - haclusterd.cluster.connection.changes
"""

EXAMPLES = r"""
- name: Move the database to n2, and wait until it runs there
  haclusterd.cluster.resource:
    name: db
    state: moved
    node: n2
    wait: 2min

- name: Forget its failures
  haclusterd.cluster.resource:
    name: db
    state: cleaned
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

VERBS = {
    "started": ("resource.start", {}, {"may_run": True}),
    "stopped": ("resource.stop", {}, {"may_run": False}),
    "promoted": ("resource.promote", {}, {"may_be_promoted": True}),
    "demoted": ("resource.demote", {}, {"may_be_promoted": False}),
    "managed": ("resource.manage", {}, {"managed": True}),
    "unmanaged": ("resource.manage", {"unmanage": True}, {"managed": False}),
    "maintenance": ("resource.maintenance", {"state": "on"}, {"maintenance": True}),
    "no_maintenance": ("resource.maintenance", {"state": "off"}, {"maintenance": False}),
    "moved": ("resource.move", {}, {}),
    "cleared": ("resource.clear", {}, {"moves": []}),
    "cleaned": ("resource.cleanup", {}, {"failures": []}),
}
"""By state: the verb, its arguments beside the resource, and what is so afterwards."""
OF_MANY = ("resource.start", "resource.stop", "resource.manage")
"""What takes a list of resources."""
SPEC = {
    "name": {"type": "str", "required": True, "aliases": ["resource"]},
    "state": {"type": "str", "required": True, "choices": list(VERBS)},
    "node": {"type": "str"},
}
WITH_NODE = ("moved", "cleaned")


def main():
    """Bring the resource into the state that the parameters say."""
    module = made_module(argument_spec(CHANGES, SPEC), required_if=[("state", "moved", ["node"])])
    program, name, state, node = Program(module), *(module.params[each] for each in ("name", "state", "node"))
    if node and state not in WITH_NODE:
        module.fail_json(msg=f"node: state={state} concerns all nodes (leave node out, or say state=moved)")
    verb, more, after = VERBS[state]
    before = _before(program, name, state)
    arguments = {"resources": [name]} if verb in OF_MANY else {"resource": name}
    answer = program.change(verb, node=node, **arguments, **more)
    if state == "moved":
        # The constraint that moves it is gone when it is there; before, nobody knows whether one must stay.
        shown = {"before": before, "after": dict(before, nodes=[node]) if answer.is_changed else before}
    else:
        shown = difference(answer, before, after)
    finish(module, answer, shown)


def _before(program, name, state):
    """Return what the difference is shown from: what this state is about."""
    row = program.read("resource.status", resources=[name])["resources"][0]
    known = {
        "moved": lambda: {"nodes": sorted(each["node"] for each in row["instances"])},
        "cleared": lambda: {"moves": _of(program, "moves", name)},
        "cleaned": lambda: {"failures": _of(program, "failures", name)},
        "managed": lambda: {"managed": row["is_managed"]},
        "unmanaged": lambda: {"managed": row["is_managed"]},
        "maintenance": lambda: {"maintenance": row["is_maintenance"]},
        "no_maintenance": lambda: {"maintenance": row["is_maintenance"]},
        "started": lambda: {"may_run": not row["not_wanted"]},
        "stopped": lambda: {"may_run": not row["not_wanted"]},
    }
    return dict(resource=name, **known.get(state, dict)())


def _of(program, section, name):
    return [each for each in program.read("status")[section] if each["resource"] == name]


if __name__ == "__main__":
    main()
