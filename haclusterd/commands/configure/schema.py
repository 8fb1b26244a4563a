"""Verbs about schemas of the configuration: what is read and written, and that nothing waits for an upgrade.

Source: Pacemaker Explained, "Configuration Versioning"; Pacemaker Administration, "Upgrading".
"""

from typing import Never

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.formats.cib_xml.upgrade import NEWEST_NAME, is_known
from haclusterd.formats.cib_xml.writer import WRITTEN
from haclusterd.reports.codes import Code
from haclusterd.reports.items import report
from haclusterd.verbs.answers.configuration import Schema
from haclusterd.verbs.arguments import Arguments


def schema(_context: Context, arguments: Arguments) -> Outcome[Schema]:
    """Answer the schema of Pacemaker in which XML is written (schema `haclusterd.schema/1`)."""
    name = arguments.word("name")
    if name and not is_known(name):
        problem = f"{name!r} is no schema of Pacemaker up to {NEWEST_NAME}"
        return refusal(report(Code.BAD_ARGUMENT, name="NAME", problem=problem))
    if name not in ("", WRITTEN):
        problem = f"XML is written as {WRITTEN} alone; what is written as {name} can be read"
        remedy = "crm configure load xml replace FILE"
        return refusal(report(Code.REFUSED, problem=problem, remedy=remedy))
    return Outcome(answer=Schema(written=WRITTEN, read_up_to=NEWEST_NAME))


def upgrade(_context: Context, _arguments: Arguments) -> Outcome[Never]:
    """Say that the configuration is current: what is loaded is upgraded while it is read."""
    state = "what is loaded is upgraded as it is read"
    return Outcome((report(Code.NOTHING_TO_DO, state=state),))


VERBS = (
    carry_out_by("configure.schema", schema, answers(Schema)),
    carry_out_by("configure.upgrade", upgrade, answers()),
)
