"""Whether a principal may make a change, by the access control lists of the CIB that it was decided over.

A change of the configuration is judged as Pacemaker's daemon judges one: the elements of the CIB in XML before and
after are compared. What is added is judged by the CIB with it, what is changed or removed by the CIB before. Elements
that only hold others (no attribute but an id) come with what they hold. What acts on the status needs the right to
write that part of the status; what is neither needs the right to write everything.
"""

from collections.abc import Iterable, Iterator

from haclusterd.cib.commands import (
    ChangeConfiguration,
    CleanUp,
    Command,
    ForgetFencings,
    ForgetHistory,
    RequestFence,
    RestartResource,
    SetTicket,
    SetTransientAttribute,
)
from haclusterd.cib.edits import apply_edits
from haclusterd.commands.access.rights import Decision, Rights, path_of, step_of, tree_of
from haclusterd.commands.permissions import Rules
from haclusterd.commands.resource.settings import TARGET_ROLE, with_meta
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.formats.cib_xml.writer import write_cib
from haclusterd.model.cluster import Cib, Status
from haclusterd.model.configuration import Configuration
from haclusterd.model.records import dataclass, replace
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report

OBJECTIONS_MAX = 20
"""Of one change; more would say the same."""


@dataclass(frozen=True, slots=True)
class Objection:
    """An element that may not be changed."""

    element: str
    """Its path."""
    act: str
    """added, changed, removed, put in another order, written."""
    decision: Decision


def objections(cib: Cib, rules: Rules, commands: Iterable[Command], *, is_operating: bool) -> list[Objection]:
    """Return what of these commands may not be done; empty: all may."""
    found: list[Objection] = []
    judge = _Judge(cib, rules, is_operating=is_operating)
    for command in commands:
        found += judge.objections(command)
        if len(found) >= OBJECTIONS_MAX:
            break
    return found[:OBJECTIONS_MAX]


def refused(verb: str, objection: Objection, *, is_seen: bool) -> ReportItem:
    """Return the report; an element that may not be read is not named."""
    what = f"{objection.element} may not be {objection.act}" if is_seen else "something may not be changed"
    rule = objection.decision.rule if is_seen else "a rule that denies also the sight of it"
    return report(Code.ACL_DENIED, verb=verb, what=what, rule=rule)


class _Judge:
    def __init__(self, cib: Cib, rules: Rules, *, is_operating: bool) -> None:
        self._cib = cib
        self._rules = rules
        self._is_operating = is_operating
        self._whole: Rights | None = None

    def _rights(self, cib: Cib) -> Rights:
        root = tree_of(write_cib(cib, has_quorum=True, controller=None))
        return Rights(root, self._rules, is_operating=self._is_operating)

    @property
    def _now(self) -> Rights:
        if self._whole is None:
            self._whole = self._rights(self._cib)
        return self._whole

    def objections(self, command: Command) -> Iterator[Objection]:
        match command:
            case ChangeConfiguration(edits=edits):
                yield from self._changes(apply_edits(self._cib.configuration, edits))
            case RestartResource(resource=resource):
                yield from self._changes(with_meta(self._cib.configuration, (resource,), TARGET_ROLE, "Stopped"))
            case _:
                yield from self._acts(command)

    def _changes(self, new: Configuration) -> Iterator[Objection]:
        bare = replace(self._cib, status=Status())
        before, after = self._rights(bare), self._rights(replace(bare, configuration=new))
        yield from _Comparison(before, after).changed(before.root, after.root)

    def _acts(self, command: Command) -> Iterator[Objection]:
        """Judge what acts on the status, or on the cluster as a whole."""
        rights = self._now
        for element in _places(rights.root, command):
            decision = rights.of(element)
            if not decision.may_write:
                yield Objection(path_of(rights.root, element), "written", decision)


def _places(root: Element, command: Command) -> list[Element]:
    """Return the elements that a command writes; those around them where they are not there."""
    status = root.first("status") or root
    states = list(status.all("node_state"))
    match command:
        case CleanUp(resource=resource, node=node) | ForgetHistory(resource=resource, node=node):
            chosen = [each for each in states if node in (None, each.get("uname"))]
            if resource is None:
                return chosen or [status]
            found = [each for state in chosen for each in state.every()
                     if each.tag == "lrm_resource" and each.get("id") in (resource, str(resource).partition(":")[0])]
            return found or chosen or [status]
        case SetTransientAttribute(name=name):
            return [_attribute(each, name) for each in states if each.get("uname") in command.nodes] or [status]
        case SetTicket(ticket=ticket):
            tickets = status.first("tickets")
            found = [each for each in tickets.all("ticket_state") if each.get("id") == ticket] if tickets else []
            return found or [tickets or status]
        case RequestFence(node=node) | ForgetFencings(node=node):
            return [each for each in states if node in (None, each.get("uname"))] or [status]
        case _:
            return [root]


def _attribute(state: Element, name: str) -> Element:
    """Return a node's transient attribute, or else the nearest element in which it would stand."""
    nearest = state
    for each in state.every():
        if each.tag == "nvpair" and each.get("name") == name:
            return each
        if each.tag == "transient_attributes":
            nearest = each
    return nearest


class _Comparison:
    """Finds what is not the same in two documents, and may not be."""

    def __init__(self, before: Rights, after: Rights) -> None:
        self._before = before
        self._after = after

    def changed(self, old: Element, new: Element, path: str = "") -> Iterator[Objection]:
        path = f"{path}{step_of(new)}"
        if old.attributes != new.attributes:
            yield from self._unless_writable(self._before.of(old), path, "changed")
        olds, news = _keyed(old), _keyed(new)
        for key, child in news.items():
            if key in olds:
                yield from self.changed(olds[key], child, path)
            else:
                yield from self._whole(child, self._after, path, "added")
        for key, child in olds.items():
            if key not in news:
                yield from self._whole(child, self._before, path, "removed")
        if [key for key in olds if key in news] != [key for key in news if key in olds]:
            yield from self._unless_writable(self._before.of(old), path, "put in another order")

    def _whole(self, element: Element, rights: Rights, path: str, act: str) -> Iterator[Objection]:
        """Judge an element with everything in it; what only holds others is judged by them."""
        path = f"{path}{step_of(element)}"
        is_frame = set(element.attributes) <= {"id"} and bool(element.children) and act == "added"
        if not is_frame:
            yield from self._unless_writable(rights.of(element), path, act)
        for child in element.children:
            yield from self._whole(child, rights, path, act)

    def _unless_writable(self, decision: Decision, path: str, act: str) -> Iterator[Objection]:
        if not decision.may_write:
            yield Objection(path, act, decision)


def _keyed(element: Element) -> dict[tuple[str, str, int], Element]:
    """Return the children by kind and id; those without an id by their number among their kind."""
    found: dict[tuple[str, str, int], Element] = {}
    for child in element.children:
        name, number = child.get("id") or child.get("id-ref") or "", 0
        while (child.tag, name, number) in found:
            number += 1
        found[child.tag, name, number] = child
    return found
