"""`apply` for how far back the long memory of all nodes reaches (safety.md §7, "History")."""

from dataclasses import replace

from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.commands import Forget
from haclusterd.cib.verdict import Entry, Verdict, accept, change, refuse
from haclusterd.model.cluster import Cib, HistoryMark


def forget(cib: Cib, command: Forget, entry: Entry) -> Verdict:
    """Let every node drop what entries up to an index did; only the DC's word counts, and it never goes back."""
    controller = cib.status.controller
    if controller is None or controller.term != command.dc_term:
        return refuse(cib, RefusalCode.OLD_TERM, f"term {command.dc_term} is not the DC's")
    if not cib.history.forgotten < command.through < entry.index:
        text = f"entries up to {command.through} cannot be forgotten at entry {entry.index}"
        return refuse(cib, RefusalCode.UNKNOWN_KEY, text)
    mark = HistoryMark(cib.history.digest, command.through, command.digest)
    text = f"the history up to entry {command.through} is forgotten: {command.reason}"
    return accept(replace(cib, history=mark), change(ChangeKind.HISTORY_FORGOTTEN, text))
