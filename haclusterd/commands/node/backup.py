"""The verb that backs up a cluster. Going back to a backup is no verb: it makes another cluster."""

from collections.abc import Callable
from typing import TypeVar

from haclusterd.cib.backup import Backup, state_of, write_backup
from haclusterd.commands.configure.view import masked
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.cluster import ConfigurationVersion
from haclusterd.model.configuration import AttributeSet, Configuration, Primitive, Resource, Template
from haclusterd.model.records import replace
from haclusterd.model.words import HIDDEN
from haclusterd.reports.codes import Code
from haclusterd.reports.items import report
from haclusterd.verbs.answers.configuration import BackupText
from haclusterd.verbs.arguments import Arguments

VERSIONS_MAX = 50
"""Earlier versions in a backup, newest first."""
BYTES_MAX = 4 * 1024 * 1024


def backup(context: Context, arguments: Arguments) -> Outcome[BackupText]:
    """Answer a backup as text (schema `haclusterd.backup/1`); secrets are left out unless they are asked for."""
    is_whole = arguments.flag("secrets")

    def kept(configuration: Configuration) -> Configuration:
        return configuration if is_whole else masked(configuration, context.agents)

    shown = kept(context.cib.configuration)
    hidden = hidden_parameters(shown)
    text = write_backup(
        Backup(context.now, state_of(context.cib, shown), _earlier(context, kept), hidden), BYTES_MAX
    )
    reports = tuple(report(Code.SECRET_LEFT_OUT, what=what) for what in hidden)
    return Outcome(
        reports=reports,
        answer=BackupText(
            cluster=context.cib.cluster_name,
            uuid=context.cib.cluster_uuid,
            version=context.cib.version.epoch,
            text=text,
        ),
    )


def _earlier(
    context: Context, kept: Callable[[Configuration], Configuration]
) -> tuple[tuple[ConfigurationVersion, Configuration], ...]:
    if context.versions is None:
        return ()
    found = []
    for each in context.versions.listed()[-VERSIONS_MAX:]:
        content = context.versions.configuration(each.number)
        if content is not None and each.number < context.cib.version.epoch:
            found.append((ConfigurationVersion(each.number, each.author, each.at, each.reason), kept(content)))
    return tuple(found)


def hidden_parameters(configuration: Configuration) -> tuple[str, ...]:
    """Return the parameters whose values are hidden, as `OWNER NAME`."""
    owners: list[Resource | Template] = [*configuration.resources.values(), *configuration.templates.values()]
    return tuple(
        f"{owner.id} {name}"
        for owner in owners
        if isinstance(owner, Primitive | Template)
        for name in dict.fromkeys(name for block in _blocks(owner) for name, text in block.pairs if text == HIDDEN)
    )


def without_hidden(configuration: Configuration) -> Configuration:
    """Return the configuration without the parameters whose values are hidden, so that it can be loaded."""
    return replace(
        configuration,
        resources={key: _known(each) for key, each in configuration.resources.items()},
        templates={key: _known(each) for key, each in configuration.templates.items()},
    )


_Owner = TypeVar("_Owner", Resource, Template)


def _known(owner: _Owner) -> _Owner:
    if not isinstance(owner, Primitive | Template):
        return owner
    operations = tuple(replace(each, parameters=_known_blocks(each.parameters)) for each in owner.operations)
    return replace(owner, parameters=_known_blocks(owner.parameters), operations=operations)


def _known_blocks(blocks: tuple[AttributeSet, ...]) -> tuple[AttributeSet, ...]:
    return tuple(replace(each, pairs=tuple(pair for pair in each.pairs if pair[1] != HIDDEN)) for each in blocks)


def _blocks(owner: Primitive | Template) -> tuple[AttributeSet, ...]:
    return (*owner.parameters, *(block for operation in owner.operations for block in operation.parameters))


VERBS = (carry_out_by("cluster.backup", backup, answers(BackupText)),)
