"""The table of verbs with what carries them out: what the control socket and tests may call.

Invariant: `run` is the only way in to a verb by its name. It never raises for what a caller sends; it answers with
reports.
"""

from collections.abc import Mapping

from haclusterd.commands import alert, api_tokens, certificates, devices, metrics, secrets, simulate, ticket, validation
from haclusterd.commands.access import gate, questions
from haclusterd.commands.configure import assistance, configure, declaration, schema, showing
from haclusterd.commands.configure import graph as configure_graph
from haclusterd.commands.context import Context
from haclusterd.commands.history import availability, history, past_status
from haclusterd.commands.history import check as history_check
from haclusterd.commands.history import transitions as history_transitions
from haclusterd.commands.history import versions as history_versions
from haclusterd.commands.node import (
    backup,
    cluster,
    fencing,
    leadership,
    maintenance,
    membership,
    node,
    node_attributes,
    sbd,
)
from haclusterd.commands.outcome import AnyOutcome, refusal
from haclusterd.commands.permissions import Access
from haclusterd.commands.resource import constraints as resource_constraints
from haclusterd.commands.resource import operations, resource, tracing
from haclusterd.commands.resource import settings as resource_settings
from haclusterd.commands.status import status
from haclusterd.commands.tools import tools
from haclusterd.commands.verb import RunnableVerb
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs import table as described
from haclusterd.verbs.arguments import MAX_SHOWN

VERBS: Mapping[str, RunnableVerb] = {
    verb.name: verb
    for level in (status.VERBS, metrics.VERBS, showing.VERBS, configure.VERBS, configure_graph.VERBS, schema.VERBS,
                  declaration.VERBS, validation.VERBS, assistance.VERBS,
                  node.VERBS, fencing.VERBS, resource.VERBS, cluster.VERBS, backup.VERBS,
                  leadership.VERBS, membership.VERBS, certificates.VERBS,
                  history.VERBS, history_check.VERBS, history_versions.VERBS, history_transitions.VERBS,
                  past_status.VERBS, availability.VERBS,
                  simulate.VERBS, api_tokens.VERBS, node_attributes.VERBS, resource_constraints.VERBS,
                  resource_settings.VERBS, operations.VERBS, tracing.VERBS, maintenance.VERBS, sbd.VERBS,
                  ticket.VERBS, alert.VERBS, devices.VERBS, tools.VERBS, questions.VERBS,
                  secrets.VERBS)
    for verb in level
}
assert VERBS.keys() == described.VERBS.keys(), "a verb that is described is carried out, and no other"


def find(name: str) -> RunnableVerb | None:
    """Return a verb of the table."""
    return VERBS.get(name)


def run(name: str, arguments: Mapping[str, Json], context: Context) -> AnyOutcome:
    """Find the verb, see that the asker may, check the arguments and ask it."""
    verb = find(name)
    if verb is None:
        shown = name[:MAX_SHOWN]
        remedy = "crm and this daemon are of different versions; see: crm --help"
        return refusal(report(Code.UNKNOWN_VERB, verb=repr(shown), remedy=remedy))

    def attempt(other: str, given: Mapping[str, Json], access: Access) -> tuple[ReportItem, ...]:
        return gate.ask(VERBS[other], given, replace(context, access=access, is_forced=True)).reports

    return gate.ask(verb, arguments, replace(context, attempt=attempt))
