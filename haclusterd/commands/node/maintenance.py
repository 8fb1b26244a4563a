"""The verb `maintenance`: leave the whole cluster or some resources wholly alone, or no longer.

Source: Pacemaker Explained, "Cluster Options" (maintenance-mode) and "Resource Meta-Attributes" (maintenance).
"""

from haclusterd.commands.configure.change import change
from haclusterd.commands.configure.script import every_error, read_words
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.resource.settings import flagged
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.reports.items import has_errors
from haclusterd.verbs.answers.configuration import Change
from haclusterd.verbs.arguments import Arguments

_ON = "in maintenance: nothing is started, stopped or watched"
_OFF = "managed again"


def maintenance(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Set or end maintenance, of the named resources or of everything."""
    is_on = arguments.word("state") == "on"
    value, words = ("true", _ON) if is_on else ("false", _OFF)
    resources = arguments.words("resources")
    if resources:
        return flagged(context, resources, "maintenance", value, words)
    made = read_words(context, ("property", f"maintenance-mode={value}"))
    if has_errors(made.reports):
        return Outcome(every_error(context, made))
    return change(context, made.configuration, done=f"the cluster is {words}", reports=made.reports)


VERBS = (carry_out_by("maintenance", maintenance, answers(Change)),)
