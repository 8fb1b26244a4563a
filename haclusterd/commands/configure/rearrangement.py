"""Edits of a configuration in place: another name for an object, another member in a group."""

from collections.abc import Sequence

from haclusterd.commands.configure.dependants import renamed
from haclusterd.commands.status.resource_state import instances
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Configuration, Group
from haclusterd.model.ids import NCNAME, ResourceId
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import SHOW_ALL, did_you_mean

Edited = tuple[Configuration, tuple[ReportItem, ...]]
"""The new configuration, not to be used when there are errors among the reports."""

ADD, REMOVE, AFTER, BEFORE = "add", "remove", "after", "before"


def rename(cib: Cib, words: Sequence[str], *, is_forced: bool) -> Edited:
    """Rename an object, and all references to it: `rename OLD NEW`."""
    configuration = cib.configuration
    if len(words) != 2:
        return configuration, (report(Code.USAGE, problem="rename needs two names: rename OLD NEW"),)
    old, new = words
    known = {*configuration.resources, *configuration.constraints, *configuration.templates, *configuration.tags,
             *configuration.alerts, *configuration.acl_roles}
    if old not in known:
        remedy = did_you_mean(old, sorted(known), SHOW_ALL)
        return configuration, (report(Code.UNKNOWN_OBJECT, id=repr(old), remedy=remedy),)
    if not NCNAME.match(new):
        return configuration, (report(Code.BAD_ID, id=new),)
    if new in known:
        return configuration, (report(Code.EXISTS, kind="object", id=new, remedy="choose another name"),)
    running = ", ".join(dict.fromkeys(each.node for each in instances(cib, ResourceId(old))))
    if running and not is_forced:
        problem = f"{old} is running on {running}; under another name it is stopped and started again"
        return configuration, (report(Code.UNSAFE, problem=problem),)
    return renamed(configuration, old, new), ()


def modify_group(cib: Cib, words: Sequence[str]) -> Edited:
    """Add or remove a member: `modgroup GROUP add ID [after|before ID]`, `modgroup GROUP remove ID`."""
    configuration = cib.configuration
    if not _is_well_formed(words):
        problem = "modgroup GROUP add RESOURCE [after|before MEMBER], or modgroup GROUP remove RESOURCE"
        return configuration, (report(Code.USAGE, problem=problem),)
    group, member = configuration.resources.get(ResourceId(words[0])), ResourceId(words[2])
    if not isinstance(group, Group):
        remedy = did_you_mean(words[0], [each.id for each in configuration.groups()], SHOW_ALL)
        return configuration, (report(Code.NO_SUCH_RESOURCE, resource=f"{words[0]!r} that is a group", remedy=remedy),)
    members = _members(group, words, member)
    if isinstance(members, ReportItem):
        return configuration, (members,)
    resources = {**configuration.resources, group.id: replace(group, members=members)}
    return replace(configuration, resources=resources), ()


def _is_well_formed(words: Sequence[str]) -> bool:
    if len(words) == 3:
        return words[1] in (ADD, REMOVE)
    return len(words) == 5 and words[1] == ADD and words[3] in (AFTER, BEFORE)


def _members(group: Group, words: Sequence[str], member: ResourceId) -> tuple[ResourceId, ...] | ReportItem:
    if words[1] == REMOVE:
        if member not in group.members:
            return _no_member(group, member)
        if len(group.members) == 1:
            return report(Code.GROUP_EMPTY, group=group.id, remedy=f"delete the group: crm configure delete {group.id}")
        return tuple(each for each in group.members if each != member)
    if len(words) == 3:
        return (*group.members, member)
    anchor = ResourceId(words[4])
    if anchor not in group.members:
        return _no_member(group, anchor)
    position = group.members.index(anchor) + (1 if words[3] == AFTER else 0)
    return (*group.members[:position], member, *group.members[position:])


def _no_member(group: Group, name: str) -> ReportItem:
    remedy = did_you_mean(name, group.members, f"see: crm configure show {group.id}")
    return report(Code.UNKNOWN_RESOURCE, where=f"group {group.id}", id=name, remedy=remedy)
