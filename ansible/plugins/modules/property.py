"""Set properties of a cluster: `crm configure property`."""

from __future__ import annotations

DOCUMENTATION = r"""
module: property
short_description: Set properties of a failover cluster, or defaults of resources and operations
version_added: 0.1.0
author:
  - The haclusterd authors (@haclusterd)
description:
  - Sets the properties that are named, all or none, and leaves the others as they are.
  - A property counts as changed when it is written into the configuration for the first time, with its default too.
options:
  properties:
    description:
      - Values by name, as C(crm configure property) has them.
      - A value is what is written; put durations and words like V("yes") into quotes.
    type: dict
    required: true
  section:
    description:
      - V(property) are properties of the cluster, V(rsc_defaults) and V(op_defaults) defaults of the meta-attributes of
        resources and of operations.
    type: str
    choices: [property, rsc_defaults, op_defaults]
    default: property
extends_documentation_fragment:
  - haclusterd.cluster.connection
  - haclusterd.cluster.connection.changes
"""

EXAMPLES = r"""
- name: Let fence agents take a minute and a half
  haclusterd.cluster.property:
    properties:
      fencing-timeout: 90s
      no-quorum-policy: stop

- name: Let resources stay where they are
  haclusterd.cluster.property:
    section: rsc_defaults
    properties:
      resource-stickiness: 100
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

import json

from ansible_collections.haclusterd.cluster.plugins.module_utils.program import (
    CHANGES,
    Program,
    argument_spec,
    finish,
    made_module,
)

SECTIONS = {
    "property": "properties",
    "rsc_defaults": "resource-defaults",
    "op_defaults": "operation-defaults",
}
"""What a section is called in a policy."""
SPEC = {
    "properties": {"type": "dict", "required": True},
    "section": {"type": "str", "choices": list(SECTIONS), "default": "property"},
}


def main():
    """Set what the parameters say."""
    module = made_module(argument_spec(CHANGES, SPEC))
    wanted = {name: _written(value) for name, value in sorted(module.params["properties"].items())}
    if not wanted:
        module.fail_json(msg="properties: there is none (name at least one, as fencing-timeout: 90s)")
    # JSON is YAML, and leaves no doubt what belongs to a value.
    text = json.dumps({SECTIONS[module.params["section"]]: wanted}, indent=1)
    answer = Program(module).change("configure.apply", text=text, format="yaml", difference=module._diff)
    finish(module, answer, answer.change.get("difference"))


def _written(value):
    """Return a value as the configuration has it: YAML has made booleans of words."""
    return str(value).lower() if isinstance(value, bool) else str(value)


if __name__ == "__main__":
    main()
