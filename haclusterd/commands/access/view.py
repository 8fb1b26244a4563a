"""The CIB as a principal sees it: without what they may not read.

Of the configuration an object is there when its own element may be read, without its parts that may not. Of the status
what XML shows is judged by XML; what only this program knows (orders, locks) goes with the resource that it is about.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar

from haclusterd.commands.access.rights import Rights, filtered, pruned, tree_of
from haclusterd.commands.permissions import Rules
from haclusterd.formats.cib_xml.document import read_configuration
from haclusterd.formats.cib_xml.elements import write_elements
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.formats.cib_xml.writer import write_cib, write_configuration
from haclusterd.model.cluster import Cib, NodeStatus, Status
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import ResourceId
from haclusterd.model.records import dataclass, field, fields, is_dataclass, replace
from haclusterd.model.secrets import NO_SECRETS
from haclusterd.reports.items import ReportItem

HIDDEN_NAME = "(hidden)"
_IDENTITIES = ("id", "name", "resource", "node", "target", "ticket")
_NAMED = frozenset({"primitive", "template", "group", "clone", "master", "bundle", "node"})
_IDENTIFYING = frozenset({"id", "uname", "class", "provider", "type", "template"})
_HOLDING = frozenset({
    "cib", "configuration", "crm_config", "rsc_defaults", "op_defaults", "nodes", "resources", "constraints", "tags",
    "alerts", "acls", "fencing-topology", "operations", "meta_attributes", "instance_attributes", "utilization",
    "cluster_property_set",
})  # fmt: skip
"""What stands around other elements, and means nothing without them."""
WORDS = re.compile(r"[A-Za-z0-9][\w.-]*")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class View:
    """What is seen of a CIB."""

    cib: Cib
    rights: Rights = field(repr=False)
    names: "Names"

    @property
    def shows_nothing(self) -> bool:
        """Whether nothing at all may be read."""
        return filtered(self.rights, self.rights.root) is None

    def hides_nothing(self, cib: Cib) -> bool:
        """Whether this is all of that CIB."""
        shows_elements = all(self.rights.of(each).may_read for each in self.rights.root.every())
        return shows_elements and self.cib.secrets == cib.secrets


@dataclass(frozen=True, slots=True)
class Names:
    """Names of what may not be seen, which no answer may have in it."""

    hidden: frozenset[str] = frozenset()
    _pattern: "re.Pattern[str] | None" = None
    """Finds hidden names, and seen ones that begin with one of them."""

    def out_of(self, value: _Value) -> _Value:
        """Return a value (dataclasses, tuples, mappings, texts) without these names; what is about one is left out."""
        if self._pattern is None:
            return value
        cleaned: _Value = self._clean(value)
        return cleaned

    def _clean(self, value: Any) -> Any:
        if isinstance(value, Enum) or value is None or isinstance(value, int):
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, tuple | list):
            return type(value)(self._clean(each) for each in value if not self._is_about_hidden(each))
        if isinstance(value, Mapping):
            return {self._clean(key): self._clean(each) for key, each in value.items()
                    if key not in self.hidden and not self._is_about_hidden(each)}  # fmt: skip
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{each.name: self._clean(getattr(value, each.name)) for each in fields(value)})
        return value

    def _is_about_hidden(self, value: object) -> bool:
        if isinstance(value, str):
            return value in self.hidden
        if isinstance(value, Mapping):
            return any(value.get(name) in self.hidden for name in _IDENTITIES if isinstance(value.get(name), str))
        return any(getattr(value, name, None) in self.hidden for name in _IDENTITIES
                   if isinstance(getattr(value, name, None), str))  # fmt: skip

    def _text(self, text: str) -> str:
        assert self._pattern is not None
        return self._pattern.sub(lambda found: HIDDEN_NAME if found[0] in self.hidden else found[0], text)

    def item(self, item: ReportItem) -> ReportItem:
        """Return a report without these names."""
        if self._pattern is None:
            return item
        parameters = {key: self._text(value) for key, value in item.parameters.items()}
        return replace(item, parameters=parameters, remedy=self._text(item.remedy))


def view_of(cib: Cib, rules: Rules, *, is_operating: bool = False, said: frozenset[str] = frozenset()) -> View:
    """Return what rules leave of a CIB; `said`: names that who asks has written, and so knows."""
    root = tree_of(write_cib(cib, has_quorum=True, controller=None))
    rights = Rights(root, rules, is_operating=is_operating)
    configuration = configuration_seen(cib.configuration, rules)
    seen = replace(
        cib,
        configuration=configuration,
        status=_status(cib, rights, configuration),
        api_tokens={},
        staged={},
        secrets=cib.secrets if rights.of(root).may_write else NO_SECRETS,
    )
    return View(seen, rights, _names(cib, rights, said))


def configuration_seen(configuration: Configuration, rules: Rules) -> Configuration:
    """Return what rules leave of a configuration."""
    root = tree_of(write_configuration(configuration))
    seen = pruned(Rights(root, rules), root) or Element("cib", {}, 0)
    section = seen.first("configuration")
    if section is None:
        return Configuration()
    return read_configuration(write_elements(seen), "cib").configuration


def bare_of(cib: Cib, view: View, rules: Rules, *, keeps_agents: bool) -> Cib:
    """Return a view with those objects too that constraints and verbs name, without anything of them that is hidden.

    `keeps_agents`: with their agents, by which permissions may name what is in them; who only operates states none.
    """
    root = tree_of(write_configuration(cib.configuration))
    bare = _bare(Rights(root, rules), root, keeps_agents=keeps_agents)
    if bare is None or bare.first("configuration") is None:
        return view.cib
    return replace(view.cib, configuration=read_configuration(write_elements(bare), "cib").configuration)


def _bare(rights: Rights, element: Element, *, keeps_agents: bool) -> Element | None:
    inside = [each for each in (_bare(rights, child, keeps_agents=keeps_agents) for child in element.children)
              if each is not None]  # fmt: skip
    if rights.of(element).may_read:
        return replace(element, children=inside)
    if element.tag in _NAMED:
        attributes = {name: value for name, value in element.attributes.items() if name in _IDENTIFYING}
        if keeps_agents or "type" not in attributes or element.tag == "node":
            return replace(element, attributes=attributes, children=inside)
        return replace(element, attributes={**attributes, "type": f"{attributes['type']}-or-not"}, children=inside)
    if not inside or element.tag not in _HOLDING:
        return None
    return replace(element, attributes={name: value for name, value in element.attributes.items() if name == "id"},
                   children=inside)  # fmt: skip


def text_seen(text: str, rules: Rules) -> str:
    """Return what rules leave of a CIB in XML, as `cibadmin --query` shows it."""
    root = tree_of(text)
    shown = filtered(Rights(root, rules), root)
    return write_elements(Element("cib", {}, 0) if shown is None else shown)


def _status(cib: Cib, rights: Rights, configuration: Configuration) -> Status:
    """Return the status without nodes, resources, attributes and tickets that may not be read."""
    section = rights.root.first("status")
    states = {} if section is None else {str(each.get("uname")): each for each in section.all("node_state")}
    status = cib.status
    nodes = {
        name: _node(node, states.get(name), rights) if name in states else NodeStatus(name)
        for name, node in status.nodes.items()
    }
    seen = {resource for node in nodes.values() for resource in node.histories} | set(configuration.resources)
    return replace(
        status,
        nodes=nodes,
        fencing_history=tuple(each for each in status.fencing_history if _may_read(states.get(each.target), rights)),
        tickets={name: each for name, each in status.tickets.items() if _may_see_ticket(name, section, rights)},
        restarts={name: each for name, each in status.restarts.items() if name in seen},
    )


def _may_read(element: Element | None, rights: Rights) -> bool:
    return element is not None and rights.of(element).may_read


def _may_see_ticket(name: str, section: Element | None, rights: Rights) -> bool:
    tickets = section.first("tickets") if section is not None else None
    found = [each for each in tickets.all("ticket_state") if each.get("id") == name] if tickets is not None else []
    return any(_may_read(each, rights) for each in found)


def _node(node: NodeStatus, state: Element | None, rights: Rights) -> NodeStatus:
    if state is None or not rights.of(state).may_read:
        return NodeStatus(node.name)
    readable = set(_readable(state, rights))
    attributes = {str(each.get("name")) for each in _inside(state, "nvpair") if rights.of(each).may_read}

    def may(resource: ResourceId) -> bool:
        return resource in readable

    return replace(
        node,
        attributes={name: value for name, value in node.attributes.items() if name in attributes},
        private_attributes={},
        histories={name: each for name, each in node.histories.items() if may(name)},
        locks={name: each for name, each in node.locks.items() if may(name)},
        probed=frozenset(filter(may, node.probed)),
        unverified=frozenset(filter(may, node.unverified)),
        orders={key: each for key, each in node.orders.items() if may(each.resource)},
    )


def _readable(state: Element, rights: Rights) -> Iterator[str]:
    for each in _inside(state, "lrm_resource"):
        if rights.of(each).may_read:
            yield str(each.get("id"))


def _inside(element: Element, tag: str) -> Iterator[Element]:
    return (each for each in element.every() if each.tag == tag)


def _names(cib: Cib, rights: Rights, said: frozenset[str]) -> Names:
    """Return which names are nowhere in what may be read, nor were written by who asks."""
    shown = filtered(rights, rights.root)
    words = said.union(_words(shown) if shown is not None else ())
    known = set(_known(cib))
    hidden = frozenset(name for name in known if name and name not in words)
    if not hidden:
        return Names()
    alike = {name for name in known - hidden if any(each in name for each in hidden)}
    ordered = sorted(hidden | alike, key=lambda name: (-len(name), name))
    pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, ordered))})(?![A-Za-z0-9])")
    return Names(hidden, pattern)


def _words(shown: Element) -> Iterator[str]:
    for element in shown.every():
        for value in element.attributes.values():
            yield value
            yield from WORDS.findall(value)


def _known(cib: Cib) -> Iterable[str]:
    """Yield every name in a CIB that tells that something is there."""
    configuration = cib.configuration
    yield from (*configuration.nodes, *configuration.resources, *configuration.templates, *configuration.tags)
    yield from (*configuration.constraints, *configuration.alerts, *configuration.acl_roles)
    yield from (*cib.members, *cib.status.tickets, *cib.api_tokens, *cib.status.nodes)
    for node in cib.status.nodes.values():
        yield from node.histories
