"""Edits turn one configuration into another, exactly; and nothing that they name can make them fail."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haclusterd.cib.edits import Arrange, Delete, Edit, apply_edits, difference
from haclusterd.model.configuration import Configuration
from tests.examples import examples
from tests.replicated_values import values_of
from tests.written_configurations import configurations

_relaxed = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)


def in_order(configuration: Configuration) -> tuple[list[str], ...]:
    named = (configuration.nodes, configuration.templates, configuration.resources, configuration.constraints)
    return *map(list, named), list(configuration.tags)


@st.composite
def rearranged(draw: st.DrawFn, configuration: Configuration) -> Configuration:
    """Return the configuration with objects dropped and moved."""

    def some(objects: dict[str, object]) -> dict[str, object]:
        kept = draw(st.lists(st.sampled_from(sorted(objects)), unique=True)) if objects else []
        return {key: objects[key] for key in kept}

    sections = (configuration.properties, configuration.resource_defaults, configuration.operation_defaults)
    objects = (configuration.nodes, configuration.resources, configuration.constraints)
    return Configuration(*(some(dict(each)) for each in objects), *sections)


@settings(_relaxed, max_examples=examples(60))
@given(data=st.data(), old=configurations(), other=configurations())
def test_a_difference_leads_from_one_to_the_other(
    data: st.DataObject, old: Configuration, other: Configuration
) -> None:
    for new in (other, data.draw(rearranged(old))):
        reached = apply_edits(old, difference(old, new))
        assert reached == new
        assert in_order(reached) == in_order(new)
        assert difference(new, reached) == ()


@settings(_relaxed, max_examples=examples(30))
@given(configuration=configurations())
def test_equal_configurations_do_not_differ(configuration: Configuration) -> None:
    assert difference(configuration, configuration) == ()


@settings(_relaxed, max_examples=examples(60))
@given(configuration=configurations(), edits=st.lists(values_of(Edit), max_size=5))
def test_no_edit_raises(configuration: Configuration, edits: list[Edit]) -> None:
    before = (configuration, in_order(configuration))
    reached = apply_edits(configuration, edits)
    assert isinstance(reached, Configuration)
    assert (configuration, in_order(configuration)) == before


def test_edits_that_do_not_fit_change_nothing() -> None:
    configuration = Configuration()
    edits = (Delete("resource", "gone"), Delete("what", "x"), Arrange("node", ("a", "a")), Arrange("what", ()))
    assert apply_edits(configuration, edits) == configuration
