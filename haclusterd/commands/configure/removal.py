"""Resources that a new configuration does not have any more: the cluster stops them, so that must be meant."""

from haclusterd.commands.context import Context
from haclusterd.commands.status.headlines import named
from haclusterd.commands.status.overview import Overview
from haclusterd.model.configuration import Configuration
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import ReportItem, report


def removal(context: Context, new: Configuration) -> tuple[ReportItem, ...]:
    """Name them: an error, unless it is forced or only a preview."""
    gone = [name for name in context.cib.configuration.resources if name not in new.resources]
    if not gone:
        return ()
    overview = Overview(context.cib)
    running = [name for name in gone if overview.instances(name)]
    what = "every resource" if not new.resources else "a resource" if len(gone) == 1 else f"{len(gone)} resources"
    text = f"this removes {what}: {named(gone)}"
    text += f"; running: {named(running)}" if running else ""
    is_meant = context.is_forced or context.is_preview
    return (report(Code.UNSAFE, problem=text, severity=Severity.WARNING if is_meant else None),)
