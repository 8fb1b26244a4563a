"""CIBs of any size, the same for the same arguments, in Pacemaker's XML: what schedulers are measured with.

The mix, counted in primitives: 60 % plain, 30 % in groups of three, 10 % in clones (each clone counts as one; clone-max
is the number of nodes, at most 4); for each plain resource 0.3 colocations, 0.3 orderings and 0.5 preferences for a
node. Colocations and orderings look back in the document only, so nothing is circular. One fence device, stickiness
100.
"""

import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence

from haclusterd.model.records import dataclass

DIGEST_ONCE = "f2317cad3d54cec5d7d7aa7d0bf35cf8"
"""Of an action without parameters, as Pacemaker records it."""
DIGEST_RECURRING = "4811cef7f7f94e3a35a70be7916cb2fd"
UUID = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Size:
    """How large a CIB is."""

    nodes: int
    resources: int
    has_probes: bool = True

    @property
    def name(self) -> str:
        """`24x600p`: with probes."""
        return f"{self.nodes}x{self.resources}{'p' if self.has_probes else ''}"


def cold(size: Size, histories: Mapping[str, str] | None = None, seed: int = 1) -> str:
    """Return a CIB of which nothing runs yet, or (with `lrm` elements by node) what they say runs."""
    chance = random.Random(seed)
    names = [f"n{index:03d}" for index in range(size.nodes)]
    plain, body = _resources(size)
    tops = [f"g{index}" for index in range(size.resources * 3 // 10 // 3)]
    tops += [f"c{index}" for index in range(size.resources // 10)]
    options = {"stonith-enabled": "true", "no-quorum-policy": "stop"}
    options["enable-startup-probes"] = "true" if size.has_probes else "false"
    states = "".join(
        f'<node_state id="{index}" uname="{name}" in_ccm="true" crmd="online" join="member" expected="member">'
        f"{(histories or {}).get(name, '')}</node_state>\n"
        for index, name in enumerate(names, start=1)
    )
    nodes = "".join(f'<node id="{index}" uname="{name}"/>' for index, name in enumerate(names, start=1))
    return (
        '<cib crm_feature_set="3.16.1" validate-with="pacemaker-3.7" epoch="1" num_updates="0" admin_epoch="0" '
        'have-quorum="1" dc-uuid="1"><configuration><crm_config><cluster_property_set id="opts">'
        f"{_pairs('opts', options)}</cluster_property_set></crm_config><nodes>{nodes}</nodes>"
        f"<resources>{body}</resources><constraints>{_constraints(plain, tops, names, chance)}</constraints>"
        f'<rsc_defaults><meta_attributes id="rd">{_pairs("rd", {"resource-stickiness": "100"})}</meta_attributes>'
        f"</rsc_defaults></configuration><status>{states}</status></cib>\n"
    )


def _pairs(owner: str, pairs: Mapping[str, str]) -> str:
    return "".join(f'<nvpair id="{owner}-{name}" name="{name}" value="{value}"/>' for name, value in pairs.items())


def _primitive(name: str) -> str:
    return (
        f'<primitive id="{name}" class="ocf" provider="pacemaker" type="Dummy"><operations>'
        f'<op id="{name}-mon" name="monitor" interval="10s" timeout="20s"/></operations></primitive>'
    )


def _resources(size: Size) -> tuple[list[str], str]:
    clones, groups = size.resources // 10, size.resources * 3 // 10 // 3
    plain = [f"r{index}" for index in range(size.resources - clones - 3 * groups - 1)]
    body = [
        '<primitive id="fence" class="stonith" type="fence_dummy"><operations>'
        '<op id="fence-mon" name="monitor" interval="60s"/></operations></primitive>'
    ]
    body.extend(map(_primitive, plain))
    for index in range(groups):
        members = "".join(_primitive(f"g{index}m{member}") for member in range(3))
        body.append(f'<group id="g{index}">{members}</group>')
    for index in range(clones):
        meta = _pairs(f"c{index}-meta", {"clone-max": str(min(size.nodes, 4)), "interleave": "true"})
        inside = f'<meta_attributes id="c{index}-meta">{meta}</meta_attributes>{_primitive(f"c{index}p")}'
        body.append(f'<clone id="c{index}">{inside}</clone>')
    return plain, "\n".join(body)


def _constraints(plain: Sequence[str], tops: Sequence[str], nodes: Sequence[str], chance: random.Random) -> str:
    found = []
    for index, name in enumerate(plain):
        if index and chance.random() < 0.3:
            other, score = plain[chance.randrange(index)], chance.choice(["50", "200", "INFINITY"])
            found.append(f'<rsc_colocation id="col-{name}" rsc="{name}" with-rsc="{other}" score="{score}"/>')
        if index and chance.random() < 0.3:
            first, kind = chance.choice([*plain[:index], *tops]), chance.choice(["Mandatory", "Optional"])
            found.append(f'<rsc_order id="ord-{name}" first="{first}" then="{name}" kind="{kind}"/>')
    for name in (*plain, *tops):
        if chance.random() < 0.5:
            node, score = chance.choice(nodes), chance.choice([-50, 20, 150])
            found.append(f'<rsc_location id="loc-{name}" rsc="{name}" node="{node}" score="{score}"/>')
    return "\n".join(found)


@dataclass(frozen=True, slots=True)
class _Call:
    rank: int
    """Of several actions without an interval, the greatest is the one that is recorded."""
    task: str
    interval: str
    key: str


def histories_after(graph: str) -> dict[str, str]:
    """Return by node the `lrm` element that says: every agent call of this transition graph succeeded."""
    calls: dict[str, dict[str, list[_Call]]] = {}
    agents: dict[str, str] = {}
    for action in ET.fromstring(graph).iterfind("synapse/action_set/rsc_op"):
        primitive, attributes = action.find("primitive"), action.find("attributes")
        assert primitive is not None
        assert attributes is not None
        task, interval = action.get("operation", ""), attributes.get("CRM_meta_interval", "0")
        rank = {"start": 1, "promote": 2}.get(task, 0)
        name = primitive.get("id", "")
        agents[name] = "".join(
            f' {key}="{primitive.get(key)}"' for key in ("class", "provider", "type") if primitive.get(key)
        )
        call = _Call(rank, task, interval, action.get("operation_key", ""))
        calls.setdefault(action.get("on_node", ""), {}).setdefault(name, []).append(call)
    return {node: _lrm(by_resource, agents) for node, by_resource in calls.items()}


def _lrm(calls: Mapping[str, Sequence[_Call]], agents: Mapping[str, str]) -> str:
    number, rows = 0, []
    for name, found in sorted(calls.items()):
        once = sorted((call for call in found if call.interval == "0"), key=lambda call: call.rank)[-1:]
        recorded = []
        for call in (*once, *(call for call in found if call.interval != "0")):
            number += 1
            recorded.append(_operation(name, call, number))
        rows.append(f'<lrm_resource id="{name}"{agents[name]}>{"".join(recorded)}</lrm_resource>')
    return f'<lrm id="1"><lrm_resources>{"".join(rows)}</lrm_resources></lrm>'


def _operation(name: str, call: _Call, number: int) -> str:
    is_once = call.interval == "0"
    code = 7 if call.task == "monitor" and is_once else 0
    return (
        f'<lrm_rsc_op id="{f"{name}_last_0" if is_once else call.key}" operation_key="{call.key}" '
        f'operation="{call.task}" op-digest="{DIGEST_ONCE if is_once else DIGEST_RECURRING}" '
        f'crm_feature_set="3.16.1" transition-key="1:1:{code}:{UUID}" transition-magic="0:{code};1:1:{code}:{UUID}" '
        f'call-id="{number}" rc-code="{code}" op-status="0" interval="{call.interval}"/>'
    )


def without_node(text: str, index: int) -> str:
    """Return a CIB in which a node is gone: lost, and not fenced yet."""

    def lost(match: re.Match[str]) -> str:
        tag = match[0].replace('in_ccm="true"', 'in_ccm="false"').replace('crmd="online"', 'crmd="offline"')
        return tag.replace('join="member"', 'join="down"')

    return re.sub(rf'<node_state\b[^>]*\buname="n{index:03d}"[^>]*>', lost, text, count=1)
