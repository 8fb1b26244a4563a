"""Ask a cluster how it is, and change nothing."""

from __future__ import annotations

DOCUMENTATION = r"""
module: info
short_description: Gather what is known of a failover cluster
version_added: 0.1.0
author:
  - The haclusterd authors (@haclusterd)
description:
  - Asks a cluster for its status, nodes, resources, properties and configuration. Nothing is changed.
  - A node without quorum answers too; C(status.stale_ms) says how old its answer may be.
options:
  gather:
    description:
      - What to ask for.
    type: list
    elements: str
    choices: [status, nodes, resources, properties, configuration]
    default: [status, nodes, resources]
extends_documentation_fragment:
  - haclusterd.cluster.connection
attributes:
  check_mode:
    description: It changes nothing, so it does the same.
    support: full
  diff_mode:
    description: There is never a difference.
    support: none
"""

EXAMPLES = r"""
- name: Ask the cluster
  haclusterd.cluster.info:
    gather: [status, resources]
  register: cluster

- name: See that it is well
  ansible.builtin.assert:
    that: cluster.status.verdict == 'HEALTHY'
    fail_msg: "{{ cluster.status.headlines | map(attribute='text') | join('; ') }}"
"""

RETURN = r"""
status:
  description: What C(crm -o json status) answers.
  returned: when it is gathered
  type: dict
  sample: {verdict: HEALTHY, dc: n1}
nodes:
  description: The nodes, as in C(crm -o json node show).
  returned: when it is gathered
  type: list
  elements: dict
resources:
  description: The resources, as in C(crm -o json resource status).
  returned: when it is gathered
  type: list
  elements: dict
properties:
  description: The properties of the cluster with their values in force, by name.
  returned: when it is gathered
  type: dict
  sample: {fencing-timeout: 60s}
configuration:
  description: The configuration, with C(version), C(author) and C(text) in the crm language; secrets are hidden.
  returned: when it is gathered
  type: dict
"""

from ansible_collections.haclusterd.cluster.plugins.module_utils.program import Program, argument_spec, made_module

QUESTIONS = {
    "status": ("status", lambda data: data),
    "nodes": ("node.show", lambda data: data["nodes"]),
    "resources": ("resource.status", lambda data: data["resources"]),
    "properties": ("configure.get_property", lambda data: {each["name"]: each["value"] for each in data["properties"]}),
    "configuration": ("configure.show", lambda data: data),
}
"""What to ask for: the verb, and what of its answer."""
SPEC = {
    "gather": {
        "type": "list",
        "elements": "str",
        "choices": list(QUESTIONS),
        "default": ["status", "nodes", "resources"],
    },
}


def main():
    """Ask for what the parameters say."""
    module = made_module(argument_spec(SPEC))
    program, found = Program(module), {}
    for name in module.params["gather"]:
        verb, part = QUESTIONS[name]
        found[name] = part(program.read(verb))
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
