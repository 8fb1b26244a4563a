"""Renaming is undone by renaming back; what is deleted with everything that uses it is named nowhere any more."""

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from haclusterd.commands.configure.deletion import delete
from haclusterd.commands.configure.dependants import dependants, renamed
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Configuration
from haclusterd.reports.items import has_errors
from tests.examples import examples
from tests.written_configurations import configurations

_relaxed = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None, max_examples=examples(60)
)

FRESH = "quite-another-name"


def named(configuration: Configuration) -> list[str]:
    return [*configuration.resources, *configuration.templates, *configuration.tags]


@_relaxed
@given(configuration=configurations(), data=st.data())
def test_renaming_back_is_as_before(configuration: Configuration, data: st.DataObject) -> None:
    names = named(configuration)
    assume(names)
    name = data.draw(st.sampled_from(names))
    there = renamed(configuration, name, FRESH)
    assert name not in named(there)
    assert list(dependants(there, name)) == []
    assert renamed(there, FRESH, name) == configuration


@_relaxed
@given(configuration=configurations(), data=st.data())
def test_what_is_deleted_with_all_that_uses_it_is_named_nowhere(
    configuration: Configuration, data: st.DataObject
) -> None:
    names = [name for name in named(configuration) if name not in configuration.constraints]
    assume(names)
    name = data.draw(st.sampled_from(names))
    after, reports = delete(Cib(configuration=configuration), [name], cascade=True, is_forced=False)
    assert not has_errors(reports)
    assert name not in named(after)
    assert list(dependants(after, name)) == []
