"""The configuration of a Pacemaker cluster as this cluster's own (`crm configure load xml`).

Invariant: a document is adopted wholly or not at all. What cannot be held or obeyed here is an error with its line;
what is left out because nothing follows from it, and what Pacemaker would replace by a default, is named (`settling`).
"""

from collections.abc import Iterable

from haclusterd.commands.configure.script import Reading
from haclusterd.commands.configure.settling import settle
from haclusterd.formats.cib_xml.document import read_configuration
from haclusterd.model.configuration import AttributeSet, Configuration, FencingLevel, with_id_of
from haclusterd.model.properties import set_over
from haclusterd.model.records import replace
from haclusterd.reports.items import ReportItem, has_errors


def adopt(text: str, source: str, base: Configuration, *, stays_foreign: bool = False) -> Reading:
    """Read CIB XML and put it over a base: objects of the same id are replaced, names in blocks are set.

    `stays_foreign`: the base is Pacemaker's, too, so that nothing is brought to how it is kept here.
    """
    made = read_configuration(text, source, keeps_ids=stays_foreign)
    settled = made.configuration
    reports: tuple[ReportItem, ...] = ()
    if not stays_foreign:
        settled, reports = settle(made.configuration, made.places, is_foreign=True)
    unread = None if has_errors(made.reports) else frozenset[str]()
    return Reading(_over(base, settled), (*made.reports, *reports), made.places, unread)


def _over(base: Configuration, new: Configuration) -> Configuration:
    return Configuration(
        nodes={**base.nodes, **{name: with_id_of(base.nodes.get(name), node) for name, node in new.nodes.items()}},
        resources={**base.resources, **new.resources},
        constraints={**base.constraints, **new.constraints},
        properties=_merged(base.properties, new.properties),
        resource_defaults=_merged(base.resource_defaults, new.resource_defaults),
        operation_defaults=_merged(base.operation_defaults, new.operation_defaults),
        templates={**base.templates, **new.templates},
        tags={**base.tags, **new.tags},
        alerts={**base.alerts, **new.alerts},
        acl_roles={**base.acl_roles, **new.acl_roles},
        acl_targets={**base.acl_targets, **new.acl_targets},
        acl_groups={**base.acl_groups, **new.acl_groups},
        fencing_levels=_levels(base.fencing_levels, new.fencing_levels),
    )


def _merged(base: tuple[AttributeSet, ...], new: Iterable[AttributeSet]) -> tuple[AttributeSet, ...]:
    """Set the names of blocks that the base has, too; put the other blocks after them."""
    blocks = {block.id: block for block in base}
    for block in new:
        before = blocks.get(block.id)
        pairs = block.pairs if before is None else set_over(before.pairs, block.pairs)
        blocks[block.id] = replace(block, pairs=pairs)
    return tuple(blocks.values())


def _levels(base: Iterable[FencingLevel], new: Iterable[FencingLevel]) -> tuple[FencingLevel, ...]:
    levels = {level.id: level for level in base}
    levels.update((level.id, level) for level in new)
    return tuple(levels.values())
