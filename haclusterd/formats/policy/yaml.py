"""Policy YAML: a configuration as a readable file (docs/reference/policy-yaml.md is its schema).

Other packages use this module only, not the rest of the room. Reading is strict: an unknown or doubled key, a wrong
type, an undefined variable are errors with their place, all at once. It never raises, whatever the text. Like a crm
script, a file is a list of statements; `assemble` makes them on a base.
"""

from collections.abc import Collection, Mapping

from haclusterd.formats.assembly import Assembly, Mode, assemble
from haclusterd.formats.policy.reader import read_statements
from haclusterd.formats.policy.writer import dump_policy
from haclusterd.formats.policy.yaml_tree import read_tree
from haclusterd.formats.statements import Script
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import AgentReference
from haclusterd.model.records import dataclass
from haclusterd.reports.items import ReportItem, has_errors, in_reading_order
from haclusterd.reports.places import Places

__all__ = ["Assembly", "Mode", "Policy", "assemble", "dump_policy", "load_policy", "read_policy"]


@dataclass(frozen=True, slots=True)
class Policy:
    """What a file says on its own; `configuration` is None when it has errors."""

    configuration: Configuration | None
    reports: tuple[ReportItem, ...]
    places: Places


def read_policy(
    text: str,
    file: str,
    variables: Mapping[str, str] | None = None,
    *,
    known_agents: Collection[AgentReference] = (),
) -> Script:
    """Read a file into statements; `variables` fill `${NAME}` in its values."""
    tree, faults = read_tree(text, file, variables or {})
    if tree is None:
        return Script((), in_reading_order(faults))
    statements, reports = read_statements(tree, known_agents)
    return Script(tuple(statements), in_reading_order((*faults, *reports)))


def load_policy(
    text: str,
    file: str,
    variables: Mapping[str, str] | None = None,
    *,
    known_agents: Collection[AgentReference] = (),
) -> Policy:
    """Read a file that stands for itself."""
    script = read_policy(text, file, variables, known_agents=known_agents)
    made = assemble(script.statements)
    reports = in_reading_order((*script.reports, *made.reports))
    return Policy(None if has_errors(reports) else made.configuration, reports, made.places)
