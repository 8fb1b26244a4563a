"""`apply` for the configuration: compare-and-swap on its version."""

from haclusterd.cib import apply_watchdog, commands
from haclusterd.cib.apply_rules import carried_over
from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.edits import apply_edits
from haclusterd.cib.verdict import Entry, Verdict, accept, change, refuse
from haclusterd.model.cluster import Cib, ConfigurationVersion
from haclusterd.model.configuration import Configuration
from haclusterd.model.dated_blocks import with_judged
from haclusterd.model.records import replace
from haclusterd.model.timing import derive, longest_round_trip_ms


def change_configuration(cib: Cib, command: commands.ChangeConfiguration, entry: Entry) -> Verdict:
    """Make the next version, if the change was made against the present one."""
    if command.expected_epoch != cib.version.epoch:
        text = f"made for configuration version {command.expected_epoch}; the version now is {cib.version.epoch}"
        return refuse(cib, RefusalCode.CONFIGURATION_CONFLICT, text)
    if command.expected_request and command.expected_request != cib.version.request:
        text = f"made for version {command.expected_epoch} by request {command.expected_request}, which was never made"
        return refuse(cib, RefusalCode.CONFIGURATION_CONFLICT, text)
    configuration = apply_edits(cib.configuration, command.edits)
    unsafe = apply_watchdog.objection(configuration)
    if unsafe and not apply_watchdog.objection(cib.configuration):
        return refuse(cib, RefusalCode.UNSAFE_CONFIGURATION, unsafe)
    slow = _objection_to_lease(cib.configuration, configuration, command.round_trip_ms)
    if slow:
        return refuse(cib, RefusalCode.UNSAFE_CONFIGURATION, slow)
    epoch = cib.version.epoch + 1
    rules = carried_over(cib, configuration, epoch)
    holds = with_judged(configuration, rules.in_force if rules is not None else ())
    nodes = apply_watchdog.with_lease_of(cib, holds)
    if rules != cib.status.rules or any(nodes[name] is not status for name, status in cib.status.nodes.items()):
        cib = replace(cib, status=replace(cib.status, nodes=nodes, rules=rules))
    version = ConfigurationVersion(epoch, command.author, entry.at, command.reason, entry.request)
    text = f"configuration version {epoch} by {command.author}" + (f": {command.reason}" if command.reason else "")
    return accept(
        replace(cib, configuration=configuration, version=version), change(ChangeKind.CONFIGURATION_CHANGED, text)
    )


def _objection_to_lease(old: Configuration, new: Configuration, round_trip_ms: int) -> str:
    """Return why a lease would not hold on this network: L >= 3h + RTT (safety.md §2); empty when it would."""
    other = apply_watchdog.possible_leases_ms(new) - apply_watchdog.possible_leases_ms(old)
    node_timeout_ms = min(other, default=0)
    if not other:
        return ""
    longest_ms = longest_round_trip_ms(derive(node_timeout_ms))
    if round_trip_ms <= longest_ms:
        return ""
    return (
        f"with node-timeout={node_timeout_ms}ms the network may take {longest_ms} ms to a voter and back, "
        f"and takes at least {round_trip_ms} ms: nodes would lose their leases"
    )
