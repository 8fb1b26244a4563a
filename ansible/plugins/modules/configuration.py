"""Declare the configuration of a cluster: `crm configure apply`."""

from __future__ import annotations

DOCUMENTATION = r"""
module: configuration
short_description: Declare the configuration of a failover cluster
version_added: 0.1.0
author:
  - The haclusterd authors (@haclusterd)
description:
  - Makes the configuration what a text says, in the crm language, YAML or the XML of Pacemaker.
  - What the text does not name is left as it is, unless O(prune) says that it was defined by an earlier text.
  - What an object has beside what the text says of it is removed. So a resource that is to be stopped is declared with
    C(meta target-role=Stopped), not stopped by M(haclusterd.cluster.resource).
  - A text that is applied twice changes nothing the second time.
options:
  text:
    description:
      - The text. Excludes O(file).
    type: str
  file:
    description:
      - A file on the managed machine with the text. Excludes O(text).
    type: path
  format:
    description:
      - The language of the text; left out, it is found out from the text or the name of the file.
    type: str
    choices: [crm, yaml, xml]
  prune:
    description:
      - A tag for everything that the text defines. What an earlier text with the tag defined, and this one does not, is
        removed.
    type: str
  variables:
    description:
      - Values for C(${NAME}) in the text, by name.
    type: dict
    default: {}
extends_documentation_fragment:
  - haclusterd.cluster.connection
  - haclusterd.cluster.connection.changes
seealso:
  - module: haclusterd.cluster.property
"""

EXAMPLES = r"""
- name: Declare a web service, and remove what the file says no more
  haclusterd.cluster.configuration:
    text: "{{ lookup('ansible.builtin.template', 'site.crm.j2') }}"
    prune: site
  run_once: true

- name: Declare it over REST, from the controller
  haclusterd.cluster.configuration:
    url: https://n1.example.org:7443
    token: "{{ haclusterd_token }}"
    format: yaml
    text: |
      resources:
        - primitive: web
          agent: ocf:haclusterd:dummy
          operations:
            - monitor: {interval: 10s, timeout: 20s}
    wait: 60s
  delegate_to: localhost
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
    file_text,
    finish,
    made_module,
)

SPEC = {
    "text": {"type": "str"},
    "file": {"type": "path"},
    "format": {"type": "str", "choices": ["crm", "yaml", "xml"]},
    "prune": {"type": "str"},
    "variables": {"type": "dict", "default": {}},
}


def main():
    """Declare what the parameters say."""
    module = made_module(
        argument_spec(CHANGES, SPEC), required_one_of=[("text", "file")], mutually_exclusive=[("text", "file")]
    )
    given = module.params
    answer = Program(module).change(
        "configure.apply",
        text=given["text"] if given["file"] is None else file_text(module, given["file"]),
        source=given["file"],
        format=given["format"],
        prune=given["prune"],
        variables=[f"{name}={value}" for name, value in sorted(given["variables"].items())],
        difference=module._diff,
    )
    finish(module, answer, answer.change.get("difference"))


if __name__ == "__main__":
    main()
