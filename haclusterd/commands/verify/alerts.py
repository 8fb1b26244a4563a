"""Alerts: programs that exist by their paths, meta-attributes that are known, values that can be passed on."""

from haclusterd.commands.verify.judgement import Judgement, pairs
from haclusterd.model.alerts import READERS
from haclusterd.model.configuration import Alert, AlertRecipient, AttributeSet
from haclusterd.model.words import HIDDEN, bad_character
from haclusterd.reports.codes import Code
from haclusterd.reports.suggestions import did_you_mean

_OWN = "CRM_"
"""Environment variables with this prefix are the cluster's."""
_Path = tuple[str, ...]


def check_alerts(judgement: Judgement) -> None:
    """Judge every alert and recipient."""
    for alert in judgement.configuration.alerts.values():
        path = ("alert", alert.id)
        if not alert.path.startswith("/"):
            problem = f"{alert.path!r} is not an absolute path of a program"
            judgement.note(Code.BAD_VALUE, (*path, "path"), name=f"{alert.id}: path", problem=problem)
        _check(judgement, alert, alert.id, path)
        for number, recipient in enumerate(alert.recipients):
            _check(judgement, recipient, recipient.id, (*path, "recipient", str(number)))


def _check(judgement: Judgement, owner: Alert | AlertRecipient, name: str, path: _Path) -> None:
    for section, blocks in (("attributes", owner.parameters), ("meta", owner.meta)):
        _check_rules(judgement, blocks, name, (*path, section))
    for key, value in pairs(owner.meta):
        own = (*path, "meta", key)
        if key not in READERS:
            judgement.unknown(Code.UNKNOWN_META, own, remedy=did_you_mean(key, tuple(READERS)), where=name, name=key)
            continue
        try:
            READERS[key](value)
        except ValueError as error:
            judgement.note(Code.BAD_VALUE, own, name=f"{name}: {key}", problem=error)
    for key, value in pairs(owner.parameters):
        own = (*path, "attributes", key)
        character = bad_character(value)
        if value == HIDDEN:
            judgement.note(Code.SECRET_HIDDEN, own, name=f"{name}: {key}")
        elif character:
            judgement.note(Code.BAD_CHARACTER, own, name=f"{name}: {key}", character=character)
        elif key.startswith(_OWN):
            problem = f"variables that begin with {_OWN} are the cluster's"
            judgement.note(Code.BAD_VALUE, own, name=f"{name}: {key}", problem=problem)


def _check_rules(judgement: Judgement, blocks: tuple[AttributeSet, ...], name: str, path: _Path) -> None:
    for block in blocks:
        if block.rule is not None:
            own = (*path, block.pairs[0][0]) if block.pairs else path
            judgement.note(Code.NOT_YET, own, construct=f"{name}: a rule in an alert", remedy="write the block without")
