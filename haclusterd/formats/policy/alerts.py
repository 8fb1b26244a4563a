"""Alerts in policy YAML: read and written."""

from haclusterd.formats.generated_ids import allocate, are_natural, block_base, recipient_base
from haclusterd.formats.policy.blocks import read_blocks
from haclusterd.formats.policy.blocks_writer import add_blocks
from haclusterd.formats.policy.dumper import InlineList, Tree, given, text
from haclusterd.formats.policy.fields import Fields, read_id
from haclusterd.formats.policy.resources import Kind
from haclusterd.formats.policy.rules import read_words
from haclusterd.model.configuration import Alert, AlertKind, AlertRecipient, AttributeSet
from haclusterd.model.words import ATTRIBUTE_NAME
from haclusterd.reports.codes import Code

_RECIPIENT_KEYS = ("id", "value", "description", "parameters", "meta")


def _read(fields: Fields, id_: str) -> Alert:
    fields.mark("path", "alert", id_, "path")
    select = None if fields.tree("select") is None else _kinds(fields)
    return Alert(
        id=id_,
        path=fields.text("path") or "",
        description=fields.text("description") or "",
        select=select,
        attribute_names=_names(fields),
        parameters=_blocks(fields, id_, "parameters", "attributes", "alert", id_),
        meta=_blocks(fields, id_, "meta", "meta", "alert", id_),
        recipients=_recipients(fields, id_),
    )


def _kinds(fields: Fields) -> tuple[AlertKind, ...] | None:
    found: set[str] = set()
    for word, item in read_words(fields.findings, fields.tree("select"), f"{fields.where}: select"):
        if word not in set(AlertKind):
            problem = f"{word!r} is not one of: {', '.join(AlertKind)}"
            fields.findings.note(Code.BAD_VALUE, item.place, name=f"{fields.where}: select", problem=problem)
        found.add(word)
    if not found:
        fields.findings.note(Code.SYNTAX, fields.map.place, problem=f"{fields.where}: select names nothing")
    return tuple(kind for kind in AlertKind if kind in found)


def _names(fields: Fields) -> tuple[str, ...]:
    key = "attribute-names"
    found = read_words(fields.findings, fields.tree(key), f"{fields.where}: {key}")
    for word, item in found:
        if not ATTRIBUTE_NAME.match(word):
            problem = f"{word!r} cannot be a name"
            fields.findings.note(Code.BAD_VALUE, item.place, name="attribute name", problem=problem)
    return tuple(dict.fromkeys(word for word, _ in found))


def _recipients(fields: Fields, alert: str) -> tuple[AlertRecipient, ...]:
    where = f"{fields.where}: recipient"
    items = [Fields(fields.findings, where, item, _RECIPIENT_KEYS, ("value",)) for item in fields.items("recipients")]
    ids = allocate([(each.value("id", read_id), recipient_base(alert)) for each in items])
    made: list[AlertRecipient] = []
    for number, (each, id_) in enumerate(zip(items, ids, strict=True)):
        path = ("alert", alert, "recipient", str(number))
        each.mark("value", *path)
        made.append(
            AlertRecipient(
                id=id_,
                value=each.text("value") or "",
                description=each.text("description") or "",
                parameters=_blocks(each, id_, "parameters", "attributes", *path),
                meta=_blocks(each, id_, "meta", "meta", *path),
            )
        )
    return tuple(made)


def _blocks(fields: Fields, owner: str, key: str, section: str, *path: str) -> tuple[AttributeSet, ...]:
    base = block_base(owner, section)
    return read_blocks(fields.findings, fields.tree(key), f"{fields.where}: {key}", base, *path, section)


_KEYS = ("path", "description", "select", "attribute-names", "parameters", "meta", "recipients")
ALERT_KINDS = {"alert": Kind("alert", _read, _KEYS, ("path",))}


def write_alert(alert: Alert) -> Tree:
    """Write one alert."""
    tree = given(
        {
            "alert": alert.id,
            "path": text(alert.path),
            "description": text(alert.description or None),
            "select": None if alert.select is None else InlineList(map(str, alert.select)),
            "attribute-names": InlineList(alert.attribute_names) if alert.attribute_names else None,
        }
    )
    add_blocks(tree, alert.id, parameters=("attributes", alert.parameters), meta=("meta", alert.meta))
    ids = [each.id for each in alert.recipients]
    with_ids = not are_natural(ids, [recipient_base(alert.id)] * len(ids))
    if alert.recipients:
        tree["recipients"] = [_recipient(each, with_id=with_ids) for each in alert.recipients]
    return tree


def _recipient(recipient: AlertRecipient, *, with_id: bool) -> Tree:
    tree = given(
        {
            "id": recipient.id if with_id else None,
            "value": text(recipient.value),
            "description": text(recipient.description or None),
        }
    )
    add_blocks(tree, recipient.id, parameters=("attributes", recipient.parameters), meta=("meta", recipient.meta))
    return tree
