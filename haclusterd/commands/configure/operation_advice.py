"""Timeouts of operations as the agents' metadata advise them (crmsh 4.4, "configure default-timeouts")."""

from collections.abc import Mapping, Sequence

from haclusterd.formats.generated_ids import operation_base
from haclusterd.model.agents import AgentFacts
from haclusterd.model.configuration import Configuration, Operation, Primitive
from haclusterd.model.ids import ResourceId
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import SHOW_ALL, did_you_mean

_ALWAYS_RUN = ("start", "stop")
"""Operations that every primitive has, configured or not; an advice for others is for those that are configured."""


def with_advised_timeouts(
    configuration: Configuration, words: Sequence[str], agents: Mapping[str, AgentFacts] | None
) -> tuple[Configuration, tuple[ReportItem, ...]]:
    """Return the configuration with the timeouts that the agents advise; not to be used when there are errors."""
    if not words:
        return configuration, (report(Code.USAGE, problem="default-timeouts needs the ids of primitives"),)
    if agents is None:
        return configuration, (report(Code.NOT_OFFLINE, what="what agents advise"),)
    resources = dict(configuration.resources)
    reports: list[ReportItem] = []
    known = [primitive.id for primitive in configuration.primitives()]
    for word in dict.fromkeys(words):
        primitive = resources.get(ResourceId(word))
        if not isinstance(primitive, Primitive):
            remedy = did_you_mean(word, known, SHOW_ALL)
            reports.append(report(Code.NO_SUCH_RESOURCE, resource=repr(word), remedy=remedy))
            continue
        facts = agents.get(str(primitive.agent))
        if facts is None:
            reports.append(report(Code.UNKNOWN_AGENT, where=word, agent=primitive.agent, severity=Severity.ERROR))
            continue
        advice = {name: timeout for name, timeout in facts.action_timeouts_ms.items() if timeout}
        resources[primitive.id] = replace(primitive, operations=_advised(primitive, advice))
    return replace(configuration, resources=resources), tuple(reports)


def _advised(primitive: Primitive, advice: Mapping[str, int]) -> tuple[Operation, ...]:
    there = tuple(
        replace(each, timeout_ms=advice[each.name]) if each.name in advice else each for each in primitive.operations
    )
    names = {each.name for each in there}
    return there + tuple(
        Operation(operation_base(primitive.id, name, ""), name, timeout_ms=advice[name])
        for name in _ALWAYS_RUN if name in advice and name not in names
    )  # fmt: skip
