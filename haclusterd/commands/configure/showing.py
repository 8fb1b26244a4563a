"""The verb that shows the configuration.

It imports nothing that only reads or changes one: about a file, `crm` waits for what is imported.
"""

from collections.abc import Callable, Mapping

from haclusterd.commands.configure.filters import chosen_ids, obscured
from haclusterd.commands.configure.view import ids_of, masked, part_of
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.formats.cib_xml.document import write_configuration
from haclusterd.formats.crm.writer import Arrangement
from haclusterd.formats.crm.writer import show as show_crm
from haclusterd.model.configuration import Configuration
from haclusterd.model.json_value import Json
from haclusterd.reports.items import ReportItem
from haclusterd.verbs.answers.configuration import ConfigurationText
from haclusterd.verbs.arguments import Arguments


def show(context: Context, arguments: Arguments) -> Outcome[ConfigurationText]:
    """Answer the configuration as text, or some objects of it (schema `haclusterd.configuration/1`)."""
    configuration, objections = _with_pending(context, arguments.word("pending"))
    if objections:
        return Outcome(objections)
    ids, format_ = arguments.words("ids"), arguments.word("format") or "crm"
    known = ids_of(configuration)
    if ids[:1] == ("xml",) and "xml" not in known:
        ids, format_ = ids[1:], "xml"
    chosen, objections = chosen_ids(configuration, ids, context.cib.configuration)
    if objections:
        return refusal(*objections)
    patterns = obscured(ids)
    shown = part_of(configuration, chosen) if len(ids) > len(patterns) else configuration
    shown = shown if arguments.flag("secrets") else masked(shown, context.agents, patterns)
    return Outcome(answer=ConfigurationText(
        version=context.cib.version.epoch,
        author=context.cib.version.author,
        at=context.cib.version.at,
        format=format_,
        text=show_document(shown) if arguments.flag("document") and format_ == "crm" else _WRITERS[format_](shown),
        configuration=_structured(shown) if arguments.flag("structured") else None,
    ))  # fmt: skip


def _with_pending(context: Context, text: str) -> tuple[Configuration, tuple[ReportItem, ...]]:
    if not text:
        return context.cib.configuration, ()
    from haclusterd.commands.configure.script import with_pending

    return with_pending(context, text)


def show_document(configuration: Configuration) -> str:
    """Write crm text in the configuration's own order, in which it can be loaded again."""
    return show_crm(configuration, arrangement=Arrangement.DOCUMENT)


def _as_yaml(configuration: Configuration) -> str:
    from haclusterd.formats.policy.yaml import dump_policy

    return dump_policy(configuration)


def _structured(configuration: Configuration) -> Mapping[str, Json]:
    from haclusterd.cib.tags import REPLICATED

    written: Mapping[str, Json] = REPLICATED.schema_of(Configuration).write(configuration)
    return written


_WRITERS: Mapping[str, Callable[[Configuration], str]] = {
    "crm": show_crm,
    "yaml": _as_yaml,
    "xml": write_configuration,
}

VERBS = (carry_out_by("configure.show", show, answers(ConfigurationText)),)
