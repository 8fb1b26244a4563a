"""What the modules take in common, for their documentation."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragments that modules extend their documentation with."""

    DOCUMENTATION = r"""
options:
  crm:
    description:
      - The command that is run on the managed machine, which is a node of the cluster.
    type: str
    default: crm
  socket:
    description:
      - The control socket of the node's daemon, if it is not at its usual place.
      - Excludes O(url).
    type: path
  url:
    description:
      - The REST interface of any node, as V(https://n1.example.org:7443), instead of C(crm).
      - It is asked from the managed machine; with C(delegate_to=localhost) from the controller.
    type: str
  token:
    description:
      - The token with which the REST interface is asked, made by C(crm api token add NAME --role admin).
      - Required with O(url).
    type: str
  ca_path:
    description:
      - A file with the certificates of authorities that are believed, in PEM, for O(url).
    type: path
  validate_certs:
    description:
      - Whether the certificate of O(url) must be valid.
    type: bool
    default: true
  timeout:
    description:
      - How many seconds O(url) may take for an answer; longer than what is waited for.
    type: int
    default: 90
"""

    CHANGES = r"""
options:
  reason:
    description:
      - Why, in one line; kept in the history of the cluster.
    type: str
  force:
    description:
      - Do what is refused as unsafe, as removing resources that run. The rules of safety stay.
    type: bool
    default: false
  wait:
    description:
      - Return when the cluster has got there, and fail after this span, as V(60s). Left out, only moves are waited for.
      - In check mode nothing is waited for.
    type: str
attributes:
  check_mode:
    description: Asks the program for a dry run, which changes nothing and answers what would be changed.
    support: full
  diff_mode:
    description: Shows what is changed, or would be, before and after.
    support: full
"""
