"""Differences between our scheduler and crm_simulate 2.1.5 that are understood, each with its cause.

Ours follows the newest Pacemaker where releases differ. A difference is known only by what differs, in the smallest CIB
that shows it; whatever else differs there as well makes it unknown.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence

Judge = Callable[[ET.Element, Sequence[str]], bool]

_ENTRY = re.compile(r"(?P<level>L\d) (?P<side>[-+]) \('(?P<what>[^']*)', '(?P<resource>[^']*)'")
_ACTIVE = re.compile(r"L1 (?P<side>[-+]) \('(?P<resource>[^']*)', '(?P<node>[^']*)', ")
_BETWEEN_FENCES = re.compile(r"L4 - \(\('fence', .*\), \('fence', ")
_RESOURCE = re.compile(r"\('resource', '[^']*', '([^':]*)")
_NOTICE = re.compile(r"'((?:pre|post)-[^']*)'")
_BEFORE_NOTICE = re.compile(r"L4 - \(\(.*\), \('resource', 'notify', ")
_BLOCKED_START = re.compile(r"L2 (?P<side>[-+]) \('start', '(?P<resource>[^':]*)[^']*', '', '', '[^']*', 'blocked'\)")
_MOVES = frozenset({"move", "migrate", "recover"})


def _entries(details: Sequence[str], level: str) -> list[tuple[str, str, str]]:
    """Return (side, what, resource) of the entries of one level."""
    found = (_ENTRY.match(line) for line in details)
    return [(match["side"], match["what"], match["resource"]) for match in found if match and match["level"] == level]


def instances_are_shuffled(cib: ET.Element, details: Sequence[str]) -> bool:
    """2.1.5 moves an instance of a clone to make place for another; newer releases leave it where it is.

    Releases since 2.1.6 give an instance its present node before the others choose.
    """
    cloned = {primitive.get("id") for clone in cib.iterfind(".//clone") for primitive in clone.iter("primitive")}
    changes = _entries(details, "L2")
    theirs = {resource for side, what, resource in changes if side == "-" and what in _MOVES}
    ours = {resource for side, what, resource in changes if side == "+" and what in ("move", "migrate")}
    is_about_clones = all(resource.partition(":")[0] in cloned for _, _, resource in changes)
    return bool(theirs) and is_about_clones and not ours & theirs


def a_member_inside_a_group_is_colocated(cib: ET.Element, _details: Sequence[str]) -> bool:
    """2.1.5 does not let a colocation of one member decide for its whole group; newer releases do."""
    members = {primitive.get("id") for group in cib.iterfind(".//group") for primitive in group.iter("primitive")}
    return any(
        constraint.get("rsc") in members or constraint.get("with-rsc") in members
        for constraint in cib.iterfind("configuration/constraints/rsc_colocation")
    )


def what_is_on_an_offline_node_is_hidden(cib: ET.Element, details: Sequence[str]) -> bool:
    """crm_simulate does not show what is removed, or an unmanaged clone's, on a node that is offline."""
    configured = {each.get("id") for each in cib.iterfind("configuration/resources//*")}
    clones = [each for each in cib.iterfind("configuration/resources//clone") if _is_any(each, "is-managed", "false")]
    hidden = {each.get("id") for clone in clones for each in clone.iter("primitive")}
    states = cib.iterfind("status/node_state")
    offline = {each.get("uname") for each in states if each.get("in_ccm") not in ("true", "1")}
    active = _active(details)
    names = {(resource.partition(":")[0], node) for _, resource, node in active}
    return (
        len(active) == len(details) > 0
        and all(side == "+" for side, _, _ in active)
        and all(name not in configured or (name in hidden and node in offline) for name, node in names)
    )


def a_circle_of_colocations(cib: ET.Element, details: Sequence[str]) -> bool:
    """Of two resources each is to be with the other, or apart from it: who is placed first is a matter of release."""
    colocations = list(cib.iterfind("configuration/constraints/rsc_colocation"))
    pairs = {(each.get("rsc"), each.get("with-rsc")) for each in colocations}
    is_circle = any((primary, dependent) in pairs for dependent, primary in pairs)
    words = [line.replace("'blocked'", "''") for line in details]
    is_same_but_blocked = all(line.startswith("L2") for line in words) and sorted(
        line[5:] for line in words if line[3] == "-"
    ) == sorted(line[5:] for line in words if line[3] == "+")
    return is_circle and bool(details) and (is_same_but_blocked or _is_only_placed_otherwise(_active(details)))


def a_blocked_start_is_shown_on_another_node(cib: ET.Element, details: Sequence[str]) -> bool:
    """Which instance of a clone is said to be kept from starting; 2.1.5 would have moved another one to make place."""
    cloned = {primitive.get("id") for clone in cib.iterfind(".//clone") for primitive in clone.iter("primitive")}
    starts = [match for match in (_BLOCKED_START.match(line) for line in details) if match]
    sides = [sorted(match["resource"] for match in starts if match["side"] == side) for side in "-+"]
    return len(starts) == len(details) > 0 and sides[0] == sides[1] and cloned.issuperset(sides[0])


def an_expired_probe_said_promoted(cib: ET.Element, _details: Sequence[str]) -> bool:
    """2.1.5 believes a probe that found it failed and promoted even when it has expired; newer releases probe again."""
    is_expiring = any(pair.get("name") == "failure-timeout" for pair in cib.iterfind("configuration//nvpair"))
    probes = cib.iterfind("status//lrm_rsc_op[@operation='monitor'][@interval='0'][@rc-code='9']")
    return is_expiring and next(probes, None) is not None


def a_partly_unmanaged_group_is_colocated(cib: ET.Element, _details: Sequence[str]) -> bool:
    """Groups of which some members are not managed are colocated differently since 2.1.6."""
    named = {
        constraint.get(end)
        for constraint in cib.iterfind("configuration/constraints/rsc_colocation")
        for end in ("rsc", "with-rsc")
    }
    return any(
        pair.get("name") == "is-managed" and pair.get("value") == "false"
        for group in cib.iterfind(".//group")
        if group.get("id") in named
        for pair in group.iterfind("primitive/meta_attributes/nvpair")
    )


def ordered_instances_are_not_all_ordered(cib: ET.Element, details: Sequence[str]) -> bool:
    """2.1.5 orders each instance of an ordered clone after its neighbour; newer releases after all before it."""
    for clone in cib.iterfind(".//clone"):
        pairs = {pair.get("name"): pair.get("value") for pair in clone.iterfind("meta_attributes/nvpair")}
        inside = {primitive.get("id") for primitive in clone.iter("primitive")}
        named = [_RESOURCE.findall(line) for line in details]
        is_only_more_order = all(line.startswith("L4 + ") for line in details)
        if pairs.get("ordered") == "true" and is_only_more_order and all(inside.issuperset(each) for each in named):
            return True
    return False


def a_node_in_maintenance_has_it_too(cib: ET.Element, details: Sequence[str]) -> bool:
    """What is active on a node in maintenance, and on another, is in maintenance everywhere; in 2.1.5 it is not."""
    is_kept = any(
        pair.get("name") == "maintenance" and pair.get("value") == "true" for pair in cib.iterfind(".//nvpair")
    )
    actions = [line for line in details if line.startswith("L3")]
    is_watching = all("'monitor'" in line or "'cancel'" in line for line in actions)
    return is_kept and bool(actions) and is_watching and not any(line.startswith(("L1", "L2")) for line in details)


def fencing_is_serialized(cib: ET.Element, details: Sequence[str]) -> bool:
    """Debian builds 2.1.5 with concurrent-fencing=false as the default; upstream's default is true."""
    is_set = any(pair.get("name") == "concurrent-fencing" for pair in cib.iterfind("configuration/crm_config//nvpair"))
    return not is_set and bool(details) and all(_BETWEEN_FENCES.match(line) for line in details)


def an_expired_start_said_promoted(cib: ET.Element, details: Sequence[str]) -> bool:
    """2.1.5 believes a start that failed promoted even when it has expired, and restarts; here the agent is asked."""
    is_expiring = any(pair.get("name") == "failure-timeout" for pair in cib.iterfind("configuration//nvpair"))
    starts = cib.iterfind("status//lrm_rsc_op[@operation='start'][@rc-code='9']")
    return is_expiring and next(starts, None) is not None and not _entries(details, "L1")


def unique_instances_have_other_numbers(cib: ET.Element, details: Sequence[str]) -> bool:
    """Which instance of a unique clone goes where; as many run on each node (design/0007, seed 138)."""
    unique = {
        primitive.get("id")
        for clone in cib.iterfind(".//clone")
        if any(each.get("name") == "globally-unique" for each in clone.iterfind("meta_attributes/nvpair"))
        for primitive in clone.iter("primitive")
    }
    active = _active(details)
    is_about_them = bool(active) and all(resource.partition(":")[0] in unique for _, resource, _ in active)
    placed = [sorted((name.partition(":")[0], node) for at, name, node in active if at == side) for side in "-+"]
    return is_about_them and placed[0] == placed[1]


def a_start_in_maintenance_is_announced(cib: ET.Element, details: Sequence[str]) -> bool:
    """Pacemaker notifies of the restart of what failed on a node in maintenance, although nobody restarts it there."""
    is_kept = any(_is_any(node, "maintenance", "true") for node in cib.iterfind("configuration/nodes/node"))
    notified = [each for each in cib.iterfind("configuration/resources//clone") if _is_any(each, "notify", "true")]
    inside = {primitive.get("id") for clone in notified for primitive in clone.iter("primitive")}
    is_announced = all(
        (line.startswith("L3 - ('resource', 'notify', ") or _BEFORE_NOTICE.match(line))
        and inside.issuperset(_RESOURCE.findall(line))
        and set(_NOTICE.findall(line)) <= {"pre-start", "post-start"}
        for line in details
    )
    return is_kept and bool(details) and is_announced


def what_ran_on_a_fenced_guest_is_printed(cib: ET.Element, details: Sequence[str]) -> bool:
    """crm_simulate prints what ran on a guest node that was fenced, as if it still ran.

    It shows where the plans are equal, and only what is active afterwards differs.
    """
    guests = {pair.get("value") for pair in cib.iterfind("configuration//nvpair[@name='remote-node']")}
    active = _active(details)
    return len(active) == len(details) > 0 and all(side == "-" and node in guests for side, _, node in active)


def capacities_are_in_no_order(cib: ET.Element, details: Sequence[str]) -> bool:
    """Each of two nodes has more of something, so which has most left depends on who is asked first.

    Pacemaker asks the nodes as a hash table holds them, here the names are in order. Where more is left counts with
    placement-strategy=balanced, and with each strategy for what no node can hold with its company.
    """
    is_counting = any(
        pair.get("name") == "placement-strategy" and pair.get("value") != "default" for pair in cib.iter("nvpair")
    )
    capacities = [
        {str(pair.get("name")): int(pair.get("value", "0")) for pair in node.iterfind("utilization/nvpair")}
        for node in cib.iterfind("configuration/nodes/node")
    ]
    has_tie = any(_has_more(one, two) and _has_more(two, one) for one in capacities for two in capacities)
    return is_counting and has_tie and _is_only_placed_otherwise(_active(details))


def _has_more(one: dict[str, int], two: dict[str, int]) -> bool:
    return any(amount > two.get(name, 0) for name, amount in one.items())


def _is_any(element: ET.Element, name: str, value: str) -> bool:
    return any(pair.get("name") == name and pair.get("value") == value for pair in element.iter("nvpair"))


def _active(details: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (side, resource, node) of what is active on one side only."""
    found = (_ACTIVE.match(line) for line in details)
    return [(match["side"], match["resource"], match["node"]) for match in found if match]


def _is_only_placed_otherwise(active: Sequence[tuple[str, str, str]]) -> bool:
    """Tell whether as many copies of everything run on both sides, on other nodes."""
    names = [sorted(name.partition(":")[0] for at, name, _ in active if at == side) for side in "-+"]
    return bool(active) and names[0] == names[1]


KNOWN: tuple[Judge, ...] = (
    a_node_in_maintenance_has_it_too,
    ordered_instances_are_not_all_ordered,
    instances_are_shuffled,
    a_member_inside_a_group_is_colocated,
    what_is_on_an_offline_node_is_hidden,
    a_circle_of_colocations,
    a_blocked_start_is_shown_on_another_node,
    an_expired_probe_said_promoted,
    a_partly_unmanaged_group_is_colocated,
    fencing_is_serialized,
    an_expired_start_said_promoted,
    unique_instances_have_other_numbers,
    a_start_in_maintenance_is_announced,
    what_ran_on_a_fenced_guest_is_printed,
    capacities_are_in_no_order,
)


def cause_of(xml: str, details: Sequence[str]) -> str:
    """Return why a difference is known; empty when it is not."""
    root = ET.fromstring(xml)
    for judge in KNOWN:
        if judge(root, details):
            assert judge.__doc__ is not None
            return judge.__doc__.strip().splitlines()[0]
    return ""
