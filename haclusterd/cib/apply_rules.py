"""`apply` for rules on dates: which blocks are in force, for every node alike (safety.md §1, "Rules on dates").

Invariant: a block comes into force only by a DC's judgement of the present configuration. Consequences of its values,
such as the longest lease, are the same as if an administrator had configured them.
"""

from haclusterd.cib import apply_watchdog, commands
from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.verdict import Entry, Verdict, accept, change, refuse, with_status
from haclusterd.model.cluster import Cib, JudgedRules
from haclusterd.model.configuration import Configuration
from haclusterd.model.dated_blocks import dated_blocks
from haclusterd.model.records import replace


def judge_rules(cib: Cib, command: commands.JudgeRules, entry: Entry) -> Verdict:
    """Record which blocks are in force."""
    controller = cib.status.controller
    if entry.rules.refuse_old_term and (controller is None or controller.term != command.dc_term):
        return refuse(cib, RefusalCode.OLD_TERM, f"term {command.dc_term} is not the DC's")
    if command.epoch != cib.version.epoch:
        text = f"rules of configuration version {command.epoch}; the version now is {cib.version.epoch}"
        return refuse(cib, RefusalCode.CONFIGURATION_CONFLICT, text)
    known = dated_blocks(cib.configuration)
    in_force = tuple(sorted({key for key in command.in_force if key in known}))
    before = cib.status.rules.in_force if cib.status.rules is not None else ()
    rules = JudgedRules(command.epoch, command.at, in_force)
    after = with_status(cib, replace(cib.status, rules=rules))
    if entry.rules.ruled_lease_is_recorded:
        nodes = apply_watchdog.with_lease_of(after, after.in_force)
        after = with_status(after, replace(after.status, nodes=nodes))
    begun = [f"{key} is in force" for key in in_force if key not in before]
    ended = [f"{key} is in force no more" for key in before if key not in in_force]
    text = "; ".join((*begun, *ended)) or "rules on dates judged: nothing new is in force"
    return accept(after, change(ChangeKind.RULES_JUDGED, text))


def carried_over(cib: Cib, configuration: Configuration, epoch: int) -> JudgedRules | None:
    """Return what another version of the configuration inherits: the judgement of rules that did not change.

    If no rule changed, nothing needs to be judged again.
    """
    known = cib.status.rules
    after = dated_blocks(configuration)
    if known is None or not after:
        return None
    before = dated_blocks(cib.configuration)
    kept = {key for key, block in after.items() if key in before and before[key].rule == block.rule}
    is_judged = known.epoch == cib.version.epoch and kept == after.keys()
    in_force = tuple(key for key in known.in_force if key in kept)
    return replace(known, epoch=epoch if is_judged else known.epoch, in_force=in_force)
