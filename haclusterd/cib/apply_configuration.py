"""`apply` for the configuration: compare-and-swap on its version."""

from dataclasses import replace

from haclusterd.cib import apply_watchdog, commands
from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.edits import apply_edits
from haclusterd.cib.verdict import Entry, Verdict, accept, change, refuse
from haclusterd.model.cluster import Cib, ConfigurationVersion


def change_configuration(cib: Cib, command: commands.ChangeConfiguration, entry: Entry) -> Verdict:
    """Make the next version, when the change was made against the present one."""
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
    nodes = apply_watchdog.with_lease_of(cib, configuration)
    if any(nodes[name] is not status for name, status in cib.status.nodes.items()):
        cib = replace(cib, status=replace(cib.status, nodes=nodes))
    epoch = cib.version.epoch + 1
    version = ConfigurationVersion(epoch, command.author, entry.at, command.reason, entry.request)
    text = f"configuration version {epoch} by {command.author}" + (f": {command.reason}" if command.reason else "")
    return accept(
        replace(cib, configuration=configuration, version=version), change(ChangeKind.CONFIGURATION_CHANGED, text)
    )
