"""A configuration written as CIB XML is read back equal; whatever a file holds, reading it and planning for it ends."""

import random
from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.formats.cib_xml import read_cib, write_configuration
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Colocation, Configuration, Constraint, Group, Location, Ordering, Primitive
from haclusterd.model.operations import operation_row
from tests.written_cibs import MEMBER, RUNNING, cib, pair
from tests.written_configurations import configurations

_relaxed = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)

NOT_IN_XML = frozenset("\ufffe\uffff")


def without_own_meta(primitive: Primitive) -> Primitive:
    """What an operation's meta block says of the operation itself is moved there on reading."""
    operations = tuple(
        replace(each, meta=tuple(b for b in each.meta if b.pairs and not any(operation_row(n) for n, _ in b.pairs)))
        for each in primitive.operations
    )
    return replace(primitive, operations=operations)


def related(constraint: Constraint, known: list[str]) -> Constraint:
    """Let a constraint name resources that exist."""

    def pick(name: str) -> str:
        return known[len(name) % len(known)]

    match constraint:
        case Location():
            return replace(constraint, resource=pick(constraint.resource))
        case Colocation():
            return replace(constraint, dependent=pick(constraint.dependent), primary=pick(constraint.primary))
        case Ordering():
            return replace(constraint, first=pick(constraint.first), then=pick(constraint.then))


def fitting(configuration: Configuration) -> Configuration:
    """Keep of a group what is a primitive and in no other group: XML can say nothing else."""
    free = {id_ for id_, each in configuration.resources.items() if isinstance(each, Primitive)}
    resources = {}
    for id_, each in configuration.resources.items():
        if isinstance(each, Group):
            members = tuple(dict.fromkeys(member for member in each.members if member in free))
            free -= set(members)
            resources[id_] = replace(each, members=members)
        else:
            resources[id_] = without_own_meta(each)
    known = list(resources)
    constraints = {id_: related(each, known) for id_, each in configuration.constraints.items()} if known else {}
    return replace(configuration, resources=resources, constraints=constraints)


@settings(_relaxed, max_examples=150)
@given(written=configurations())
def test_a_configuration_reads_back_equal(written: Configuration) -> None:
    configuration = fitting(written)
    text = write_configuration(configuration)
    assume(not NOT_IN_XML & set(text))
    made = read_cib(text, "written")
    assert [item.message for item in made.reports if item.code != "NOT_YET"] == []
    assert made.cib.configuration == configuration
    assert write_configuration(made.cib.configuration) == write_configuration(
        read_cib(write_configuration(made.cib.configuration), "again").cib.configuration
    )


WHOLE = cib(
    properties=pair("stonith-enabled", "true") + pair("no-quorum-policy", "stop"),
    resources='<primitive id="fence" class="stonith" type="fence_x"/><group id="g">'
    '<primitive id="web" class="ocf" provider="pacemaker" type="Dummy"><operations>'
    '<op id="m" name="monitor" interval="10s" timeout="20s"/></operations></primitive></group>',
    constraints='<rsc_location id="l" rsc="g" node="n1" score="INFINITY"/>'
    '<rsc_colocation id="c" rsc="g" with-rsc="fence" score="-5"/><rsc_order id="o" first="fence" then="g"/>',
    status=f'<node_state id="1" uname="n1" {MEMBER}/><node_state id="2" uname="n2" {MEMBER}>{RUNNING}</node_state>',
)


def damaged(seed: int) -> str:
    """Change a document in a few places."""
    chance = random.Random(seed)
    text = WHOLE
    words = ["", " ", '"', "<", ">", "/", "&", "&amp;", "-1", "99999999999999999999", "true", "id", "web", "n1", "\x00"]
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice(words) + text[at + chance.choice((0, 0, 1, 3, 40)) :]
    return text


def revalued(seed: int) -> str:
    """Change values of attributes only, so that the document stays well-formed."""
    chance = random.Random(seed)
    parts = WHOLE.split('"')
    values = parts[1::2]
    for _ in range(chance.randint(1, 8)):
        parts[1 + 2 * chance.randrange(len(values))] = chance.choice([*values, "", "-1", "9" * 30, "INFINITY", "x y"])
    return '"'.join(parts)


@settings(_relaxed, max_examples=400)
@given(seed=st.integers(0, 2**32), is_whole=st.booleans())
def test_no_document_is_too_strange(seed: int, is_whole: bool) -> None:
    text = revalued(seed) if is_whole else damaged(seed)
    context = Context(Cib(), 1_700_000_000_000, "tests", is_forced=True)
    outcome = registry.run("simulate", {"text": text, "source": "cib.xml"}, context)
    assert "SCHEDULER_FAILED" not in [item.code for item in outcome.reports], text
    assert outcome.data is not None or outcome.is_refused
