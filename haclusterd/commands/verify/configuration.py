"""Whether a configuration makes sense as a whole: the one judgement, whatever text or verb it comes from.

Formats only know whether a text can be read. Here is looked at what the parts say of each other, of the cluster's
members and of the installed agents. Errors refuse a change; warnings are shown with it. Nothing is changed or guessed
here, and everything found is reported at once, in the order of the text.
"""

from collections.abc import Collection, Mapping

from haclusterd.commands.verify.access import check_access
from haclusterd.commands.verify.agents import check_agents
from haclusterd.commands.verify.alerts import check_alerts
from haclusterd.commands.verify.constraints import check_constraints
from haclusterd.commands.verify.containment import check_containment
from haclusterd.commands.verify.devices import check_devices
from haclusterd.commands.verify.fencing import check_fence_devices, check_fencing, check_topology
from haclusterd.commands.verify.judgement import Judgement
from haclusterd.commands.verify.operations import check_operations
from haclusterd.commands.verify.references import check_references
from haclusterd.commands.verify.roles import check_roles
from haclusterd.commands.verify.ruled import check_ruled
from haclusterd.commands.verify.rules import check_rules
from haclusterd.commands.verify.schema import check_schema
from haclusterd.commands.verify.secrets import check_secrets
from haclusterd.commands.verify.sizes import check_sizes
from haclusterd.commands.verify.support import check_support
from haclusterd.commands.verify.values import check_values
from haclusterd.model.agents import AgentFacts
from haclusterd.model.cluster import Member
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import NodeName
from haclusterd.reports.items import ReportItem, in_reading_order
from haclusterd.reports.places import Places

CHECKS = (
    check_references,
    check_containment,
    check_support,
    check_values,
    check_operations,
    check_agents,
    check_constraints,
    check_roles,
    check_rules,
    check_ruled,
    check_fencing,
    check_topology,
    check_fence_devices,
    check_alerts,
    check_devices,
    check_access,
    check_secrets,
    check_schema,
    check_sizes,
)
"""All checks; each looks at one concern and does not mind what the others find."""

_OF_WHAT_RUNS_HERE = (check_support, check_ruled, check_sizes)


def verify(
    configuration: Configuration,
    *,
    members: Mapping[NodeName, Member],
    agents: Mapping[str, AgentFacts] | None,
    places: Places | None = None,
    is_foreign: bool = False,
    keeps_unknown: bool = False,
    secrets: Collection[str] | None = None,
) -> tuple[ReportItem, ...]:
    """Judge a configuration; `is_foreign`: of a cluster of Pacemaker, which need not run here.

    `keeps_unknown`: names of attributes that mean nothing are warned of, not refused.
    `members` is the cluster's (empty: not known, then nodes are looked for in the configuration only). `agents` are the
    installed ones by `str(AgentReference)`; None: not known, then nothing is said of agents and their parameters.
    `secrets` are the names of those that there are; None: not known.
    """
    judgement = Judgement(
        configuration, members, agents, places or Places(), is_foreign=is_foreign, keeps_unknown=keeps_unknown,
        secrets=secrets,
    )  # fmt: skip
    for check in CHECKS:
        if not (is_foreign and check in _OF_WHAT_RUNS_HERE):
            check(judgement)
    return in_reading_order(judgement.reports)
