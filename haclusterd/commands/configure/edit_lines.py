"""A change of the configuration in lines: what is added, changed and removed, and of what is changed, what is other.

Secrets are hidden; what differs is said in the words of the configuration language.
"""

import shlex
from collections.abc import Iterator, Mapping

from haclusterd.cib.edits import (
    Arrange,
    Delete,
    Edit,
    PutAccess,
    PutAlert,
    PutConstraint,
    PutFencingLevels,
    PutNode,
    PutResource,
    PutSets,
    PutTag,
    PutTemplate,
)
from haclusterd.commands.configure.dependants import TOPOLOGY
from haclusterd.commands.configure.view import masked, part_of
from haclusterd.formats.crm.writer import show
from haclusterd.model.access import kind_of
from haclusterd.model.agents import AgentFacts
from haclusterd.model.configuration import (
    Colocation,
    Configuration,
    Constraint,
    Location,
    Ordering,
    Resource,
    TicketConstraint,
)

DETAILED_MAX = 50
"""Of more edits, nobody reads in a line what each changes; `crm history diff` shows it."""
DETAILS_MAX = 6
"""Of one edit."""
_HEADINGS = frozenset({
    "attributes", "fencing_topology", "meta", "op_defaults", "params", "property", "rsc_defaults", "utilization",
})  # fmt: skip
"""Words that say of what kind the following are, and nothing else."""
_LONGEST = 60
"""Of a word that is shown whole."""


def describe_edits(
    old: Configuration, new: Configuration, edits: tuple[Edit, ...], agents: Mapping[str, AgentFacts] | None
) -> Iterator[str]:
    """Yield a line for each edit: `+` added, `~` changed, with what is other now, `-` removed."""
    differ = _Differences(old, new, agents) if len(edits) <= DETAILED_MAX else None
    for edit in edits:
        match edit:
            case PutFencingLevels(_):
                yield f"~ fencing topology{differ.of(TOPOLOGY) if differ else ''}"
            case PutSets(section, _):
                ids = {block.id for each in (old, new) for block in getattr(each, section)}
                yield f"~ {section.replace('_', ' ')}{differ.of(*ids) if differ else ''}"
            case Delete(kind, key):
                yield f"- {kind} {key}"
            case Arrange(kind, _):
                yield f"~ order of the {kind}s"
            case _:
                kind, name, is_known = _put(old, edit)
                details = differ.of(name) if differ and is_known else ""
                yield f"{'~' if is_known else '+'} {kind} {name}{details}"


class _Differences:
    """What differs between two configurations, object by object."""

    def __init__(
        self, old: Configuration, new: Configuration, agents: Mapping[str, AgentFacts] | None
    ) -> None:
        self._old, self._new, self._agents = old, new, agents

    def of(self, *ids: str) -> str:
        """Return `: NAME=VALUE (was VALUE), WORD, without WORD`; empty: no word differs, or only their order."""
        before, after = (self._words(each, ids) for each in (self._old, self._new))
        gone = [each for each in before if each not in after]
        said = []
        for word in (each for each in after if each not in before):
            name, equals, _ = word.partition("=")
            was = next((each for each in gone if equals and each.startswith(f"{name}=")), None)
            if was is not None:
                gone.remove(was)
            said.append(_short(word) if was is None else f"{_short(word)} (was {_short(was.partition('=')[2])})")
        said += [f"without {_short(each)}" for each in gone]
        rest = [f"{len(said) - DETAILS_MAX} more"] if len(said) > DETAILS_MAX else []
        return f": {', '.join([*said[:DETAILS_MAX], *rest])}" if said else ""

    def _words(self, configuration: Configuration, ids: tuple[str, ...]) -> list[str]:
        text = show(masked(part_of(configuration, ids), self._agents))
        headings = {*_HEADINGS, *(f"{each}:" for each in ids)}
        words = shlex.split(text.replace("\\\n", " "))
        return [each for each in words if each not in headings and not each.startswith("$id=")]


def _short(word: str) -> str:
    return word if len(word) <= _LONGEST else f"{word[: _LONGEST - 3]}..."


_Put = PutNode | PutResource | PutConstraint | PutTemplate | PutTag | PutAlert | PutAccess


def _put(old: Configuration, edit: _Put) -> tuple[str, str, bool]:
    """Return the kind and name of an object that is put, and whether there was one before."""
    match edit:
        case PutNode(entry):
            return "node", entry.name, entry.name in old.nodes
        case PutResource(resource):
            return _kind(resource), resource.id, resource.id in old.resources
        case PutConstraint(constraint):
            return _constraint(constraint), constraint.id, constraint.id in old.constraints
        case PutTemplate(template):
            return "template", template.id, template.id in old.templates
        case PutTag(tag):
            return "tag", tag.id, tag.id in old.tags
        case PutAlert(alert):
            return "alert", alert.id, alert.id in old.alerts
        case PutAccess(access):
            kind = kind_of(access)
            known = {"acl_role": old.acl_roles, "acl_target": old.acl_targets, "acl_group": old.acl_groups}
            return kind, access.id, access.id in known[kind]


def _kind(resource: Resource) -> str:
    return type(resource).__name__.lower()


def _constraint(constraint: Constraint) -> str:
    match constraint:
        case Location():
            return "location"
        case Colocation():
            return "colocation"
        case Ordering():
            return "order"
        case TicketConstraint():
            return "ticket constraint"
