"""`apply` for the configuration: compare-and-swap on its version."""

from dataclasses import replace

from haclusterd.cib import commands
from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.edits import apply_edits
from haclusterd.cib.verdict import Entry, Verdict, accept, change, refuse
from haclusterd.model.cluster import Cib, ConfigurationVersion


def change_configuration(cib: Cib, command: commands.ChangeConfiguration, entry: Entry) -> Verdict:
    """Make the next version, when the change was made against the present one."""
    if command.expected_epoch != cib.version.epoch:
        text = f"made for configuration version {command.expected_epoch}; the version now is {cib.version.epoch}"
        return refuse(cib, RefusalCode.CONFIGURATION_CONFLICT, text)
    configuration = apply_edits(cib.configuration, command.edits)
    epoch = cib.version.epoch + 1
    version = ConfigurationVersion(epoch, command.author, entry.at, command.reason)
    text = f"configuration version {epoch} by {command.author}" + (f": {command.reason}" if command.reason else "")
    return accept(
        replace(cib, configuration=configuration, version=version), change(ChangeKind.CONFIGURATION_CHANGED, text)
    )
