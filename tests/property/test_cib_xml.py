"""A configuration written as CIB XML is read back equal."""

from typing import TypeVar

from hypothesis import HealthCheck, assume, given, settings

from haclusterd.formats.cib_xml.document import read_cib, write_configuration
from haclusterd.model.configuration import Bundle, Clone, Configuration, Group, Operation, Primitive, Resource, Template
from haclusterd.model.ids import ResourceId
from haclusterd.model.operations import OPERATION_ATTRIBUTES
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from tests.examples import examples
from tests.written_configurations import configurations

_relaxed = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)

NOT_IN_XML = frozenset("\ufffe\uffff")
OWN_NAMES = {row.name for row in OPERATION_ATTRIBUTES} | {"record-pending", "interval-origin"}

Made = TypeVar("Made", Primitive, Template)


def without_own_meta(operation: Operation) -> Operation:
    """What an operation's meta block says of the operation itself is moved there on reading, unless a rule decides."""
    if any(block.rule is not None for block in operation.meta):
        return operation
    kept = (b for b in operation.meta if b.pairs and not any(n in OWN_NAMES for n, _ in b.pairs))
    return replace(operation, meta=tuple(kept))


def with_operations(made: Made) -> Made:
    return replace(made, operations=tuple(map(without_own_meta, made.operations)))


class Fitting:
    """Makes a configuration that XML can say: what is contained stands in one place, in the order of the document."""

    def __init__(self, written: Configuration) -> None:
        self._written = written
        self._templates = {
            id_: with_operations(each) for id_, each in written.templates.items() if id_ not in written.resources
        }
        self._free = {id_: each for id_, each in written.resources.items() if isinstance(each, Primitive)}
        self._groups = {id_: each for id_, each in written.resources.items() if isinstance(each, Group)}
        self._held: dict[ResourceId, Resource] = {}

    def configuration(self) -> Configuration:
        for kind in (Bundle, Clone, Group, Primitive):
            for each in self._written.resources.values():
                if isinstance(each, kind) and each.id not in self._held:
                    self._put(each)
        return replace(self._written, templates=self._templates, resources=self._held)

    def _put(self, resource: Resource) -> None:
        match resource:
            case Primitive():
                self._primitive(resource)
            case Group():
                self._group(resource)
            case Clone():
                self._clone(resource)
            case Bundle():
                inside = self._free.pop(resource.primitive, None) if resource.primitive else None
                self._held[resource.id] = replace(resource, primitive=None if inside is None else inside.id)
                if inside is not None:
                    self._primitive(inside)

    def _primitive(self, primitive: Primitive) -> None:
        self._free.pop(primitive.id, None)
        template = self._templates.get(primitive.template) if primitive.template else None
        agent = primitive.agent if template is None else template.agent
        made = replace(primitive, agent=agent, template=None if template is None else template.id)
        self._held[primitive.id] = with_operations(made)

    def _group(self, group: Group) -> None:
        self._groups.pop(group.id, None)
        inside = [self._free.pop(member) for member in dict.fromkeys(group.members) if member in self._free]
        self._held[group.id] = replace(group, members=tuple(each.id for each in inside))
        for each in inside:
            self._primitive(each)

    def _clone(self, clone: Clone) -> None:
        if clone.child in self._free:
            self._held[clone.id] = clone
            self._primitive(self._free[clone.child])
        elif clone.child in self._groups:
            self._held[clone.id] = clone
            self._group(self._groups[clone.child])


@settings(_relaxed, max_examples=examples(150))
@given(written=configurations())
def test_a_configuration_reads_back_equal(written: Configuration) -> None:
    configuration = Fitting(written).configuration()
    text = write_configuration(configuration)
    assume(not NOT_IN_XML & set(text))
    made = read_cib(text, "written")
    assert [item.message for item in made.reports if item.code != Code.UNKNOWN_RESOURCE] == []
    assert made.cib.configuration == configuration
    assert write_configuration(made.cib.configuration) == text
