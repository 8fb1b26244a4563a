"""The words of crmsh about sbd: watchdogs that count as fencing, and the disks of fence_sbd or external/sbd.

Source: crmsh 5, "sbd"; docs/design/agents-and-fencing.md.
"""

from haclusterd.commands.attribute_sets import with_value
from haclusterd.commands.configure.change import change
from haclusterd.commands.configure.script import every_error, read_words
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.records import replace
from haclusterd.model.sbd_disks import DISK_PARAMETERS, disks_of
from haclusterd.reports.codes import Code
from haclusterd.reports.items import has_errors, report
from haclusterd.verbs.answers.configuration import Change
from haclusterd.verbs.answers.resource import Setting
from haclusterd.verbs.arguments import Arguments


def watchdog(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Set whether a node that is lost counts as reset once its watchdog must have fired."""
    is_on = arguments.word("state") == "on"
    made = read_words(context, ("property", f"watchdog-fencing={'true' if is_on else 'false'}"))
    if has_errors(made.reports):
        return Outcome(every_error(context, made))
    words = "counted on: a lost node is reset by its own" if is_on else "not counted on"
    return change(context, made.configuration, done=f"watchdogs are {words}", reports=made.reports)


def device(context: Context, arguments: Arguments) -> Outcome[Setting | Change]:
    """Show or change the disks of the fence device that uses them."""
    configuration = context.cib.configuration
    found = next((each for each in configuration.fence_devices() if each.agent.type in DISK_PARAMETERS), None)
    if found is None:
        problem, remedy = f"none is of {' or '.join(DISK_PARAMETERS)}", "crm script run sbd id=NAME sbd_device=DISK"
        return refusal(report(Code.BAD_ARGUMENT, name="device", problem=problem, remedy=remedy))
    name, separator = DISK_PARAMETERS[found.agent.type]
    before, named = list(disks_of(found)), list(arguments.words("disks"))
    written = separator.join(before)
    if not before and arguments.word("action") != "show":
        problem = f"{found.id} names no disk: the disks are named in a file on each node (SBD_DEVICE)"
        remedy = f"name all of them: crm resource param {found.id} set {name} DISK{separator}DISK"
        return refusal(report(Code.BAD_ARGUMENT, name="device", problem=problem, remedy=remedy))
    match arguments.word("action"):
        case "show":
            return Outcome(answer=Setting(of=found.id, section="params", values={name: written}))
        case "add":
            after = [*before, *(each for each in named if each not in before)]
        case _:
            unknown = [each for each in named if each not in before]
            if unknown:
                return refusal(report(Code.UNKNOWN_OBJECT, id=f"{', '.join(unknown)} of {found.id}"))
            after = [each for each in before if each not in named]
    if not named or not after:
        problem = "a disk is to be named" if not named else f"{found.id} would have no disk"
        return refusal(report(Code.BAD_ARGUMENT, name="disks", problem=problem))
    if after == before:
        return Outcome((report(Code.NOTHING_TO_DO, state=f"{found.id} has {written}"),))
    blocks = with_value(found.parameters, owner=found.id, section="params", name=name, value=separator.join(after))
    new = replace(configuration, resources={**configuration.resources, found.id: replace(found, parameters=blocks)})
    return change(context, new, done=f"{found.id}: {name}={separator.join(after)}")


VERBS = (
    carry_out_by("sbd.watchdog", watchdog, answers(Change)),
    carry_out_by("sbd.device", device, answers(Setting, Change)),
)
