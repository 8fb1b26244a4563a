"""References to secrets: those that name no secret, and those that are where nothing resolves them."""

from haclusterd.commands.verify.judgement import Judgement, pairs
from haclusterd.model.configuration import Alert, AlertRecipient
from haclusterd.model.secrets import PREFIX, parameter_blocks, reference_of, references_of
from haclusterd.reports.codes import Code


def check_secrets(judgement: Judgement) -> None:
    """Judge every reference; of a cluster whose secrets are not known, only where it stands."""
    known = judgement.secrets
    for kind, owner, path, blocks in parameter_blocks(judgement.configuration):
        for parameter, name in references_of(blocks):
            if known is not None and name not in known:
                guess = judgement.nearest(name, known)
                remedy = f"did you mean {guess}?" if guess else f"crm secret set {name}"
                where = f"{owner}: {parameter}"
                judgement.note(Code.SECRET_UNKNOWN, (kind, owner, *path, parameter), remedy=remedy, where=where,
                               name=name)  # fmt: skip
        for block in blocks:
            for parameter, value in block.pairs:
                reference = reference_of(value)
                is_malformed = reference is None and value.startswith(PREFIX)
                if is_malformed or (reference is not None and reference[1] is not None):
                    problem = f"{value!r} is no reference to a secret, which is {PREFIX}NAME"
                    judgement.note(Code.WITHOUT_EFFECT, (kind, owner, *path, parameter),
                                   what=f"{owner}: {parameter}", why=problem)  # fmt: skip
    for alert in judgement.configuration.alerts.values():
        path = ("alert", alert.id)
        _check_alert(judgement, alert, alert.id, path)
        for number, recipient in enumerate(alert.recipients):
            _check_alert(judgement, recipient, recipient.id, (*path, "recipient", str(number)))


def _check_alert(judgement: Judgement, owner: Alert | AlertRecipient, name: str, path: tuple[str, ...]) -> None:
    for key, value in pairs(owner.parameters):
        if reference_of(value) is not None:
            problem = "agents of alerts get no secrets; put it into a file, and configure its path"
            judgement.note(Code.BAD_VALUE, (*path, "attributes", key), name=f"{name}: {key}", problem=problem)
