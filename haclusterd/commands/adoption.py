"""The configuration of a Pacemaker cluster as this cluster's own (`crm configure load xml`).

Invariant: a document is adopted wholly or not at all. What cannot be held or obeyed here is an error with its line; the
only things left out, each with a warning, are properties in which Pacemaker's daemons keep notes or tune themselves.
"""

from collections.abc import Iterable
from dataclasses import replace

from haclusterd.commands.configure_script import Reading
from haclusterd.formats.cib_xml import read_configuration
from haclusterd.model.configuration import AttributeSet, Configuration, FencingLevel
from haclusterd.model.properties import read_boolean
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, has_errors, report
from haclusterd.reports.places import Places

_ONLY_PACEMAKERS = frozenset(
    {
        "cluster-delay", "cluster-infrastructure", "dc-deadtime", "dc-version", "election-timeout", "enable-acl",
        "fence-reaction", "fencing-reaction", "fencing-watchdog-timeout", "join-finalization-timeout",
        "join-integration-timeout", "last-lrm-refresh", "load-threshold", "network-delay", "node-action-limit",
        "pe-error-series-max", "pe-input-series-max", "pe-warn-series-max",
        "stonith-watchdog-timeout", "transition-delay", "transition-idle-timeout",
    }
)  # fmt: skip
"""Properties about which nothing here has to be decided."""


def adopt(text: str, source: str, base: Configuration) -> Reading:
    """Read CIB XML and put it over a base: objects of the same id are replaced, names in blocks are set."""
    made = read_configuration(text, source)
    properties, reports = _without_pacemakers(made.configuration.properties, made.places)
    nodes = {name: replace(node, id="") for name, node in made.configuration.nodes.items()}
    adopted = replace(made.configuration, properties=properties, nodes=nodes)
    unread = None if has_errors(made.reports) else frozenset[str]()
    return Reading(_over(base, adopted), (*made.reports, *reports), made.places, unread)


def _without_pacemakers(
    blocks: tuple[AttributeSet, ...], places: Places
) -> tuple[tuple[AttributeSet, ...], tuple[ReportItem, ...]]:
    reports = []
    kept = []
    for block in blocks:
        pairs = tuple(pair for pair in block.pairs if not _is_only_pacemakers(*pair))
        kept.append(replace(block, pairs=pairs))
        for name, value in block.pairs:
            if _is_only_pacemakers(name, value):
                problem = f"the property {name}={value}, which only Pacemaker's daemons read"
                reports.append(report(Code.LEFT_OUT, place=places.find("properties", name), problem=problem))
    return tuple(kept), tuple(reports)


def _is_only_pacemakers(name: str, value: str) -> bool:
    if name != "have-watchdog":
        return name in _ONLY_PACEMAKERS
    try:
        return not read_boolean(value)
    except ValueError:
        return False


def _over(base: Configuration, new: Configuration) -> Configuration:
    return Configuration(
        nodes={**base.nodes, **new.nodes},
        resources={**base.resources, **new.resources},
        constraints={**base.constraints, **new.constraints},
        properties=_merged(base.properties, new.properties),
        resource_defaults=_merged(base.resource_defaults, new.resource_defaults),
        operation_defaults=_merged(base.operation_defaults, new.operation_defaults),
        templates={**base.templates, **new.templates},
        tags={**base.tags, **new.tags},
        fencing_levels=_levels(base.fencing_levels, new.fencing_levels),
    )


def _merged(base: tuple[AttributeSet, ...], new: Iterable[AttributeSet]) -> tuple[AttributeSet, ...]:
    """Set the names of blocks that the base has, too; put the other blocks behind them."""
    blocks = {block.id: block for block in base}
    for block in new:
        before = blocks.get(block.id)
        pairs = block.pairs if before is None else tuple({**dict(before.pairs), **dict(block.pairs)}.items())
        blocks[block.id] = replace(block, pairs=pairs)
    return tuple(blocks.values())


def _levels(base: Iterable[FencingLevel], new: Iterable[FencingLevel]) -> tuple[FencingLevel, ...]:
    levels = {level.id: level for level in base}
    levels.update((level.id, level) for level in new)
    return tuple(levels.values())
