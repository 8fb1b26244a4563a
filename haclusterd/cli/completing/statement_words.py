"""What may come next in a statement of the configuration language: its words, names, attributes and their values.

Attributes of the cluster's own come from the tables of properties, those of agents from their meta-data.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from haclusterd.cli.completing.offers import Offer, Source
from haclusterd.cli.render.fields import Fields, flag, listed, text, texts
from haclusterd.formats.constraint_words import LOSS_POLICIES
from haclusterd.model.operations import DEFAULTABLE, OPERATION_ATTRIBUTES
from haclusterd.model.properties import CLUSTER_PROPERTIES, META_ATTRIBUTES
from haclusterd.model.rows import Row, ValueType

_SECTIONS: Mapping[str, str] = {
    "meta": "Meta-attributes: how the cluster treats it", "op": "An operation: start, stop, monitor, ...",
    "params": "Parameters of the agent", "utilization": "Capacities that it uses",
}  # fmt: skip
_ACTIONS = ("start", "stop", "monitor", "promote", "demote", "notify", "migrate_to", "migrate_from")
_SCORES = (
    Offer("-inf:", "Never"), Offer("100:", "Rather; any number says how much"), Offer("inf:", "Always, if it can be"),
)  # fmt: skip
_KINDS = (
    Offer("Mandatory:", "The second starts only after the first, and stops before it"),
    Offer("Optional:", "Only when both start or stop at once"), Offer("Serialize:", "Never both at once, in any order"),
)  # fmt: skip
_BOOLEANS = ("true", "false")
_HELP_LENGTH = 70


def of_statement(name: str, given: list[str], current: str, source: Source) -> Sequence[Offer]:
    """Return what may follow the words of a statement; `name` is its keyword."""
    return _STATEMENTS[name](given, current, source) if name in _STATEMENTS else ()


# -- attributes -----------------------------------------------------------------------------------------------------


def property_names(after: str = "=") -> list[Offer]:
    """Return the cluster's properties."""
    return _of_rows(CLUSTER_PROPERTIES, after)


def meta_names(after: str = "=") -> list[Offer]:
    """Return the meta-attributes of resources."""
    return _of_rows(META_ATTRIBUTES, after)


def setting_paths(source: Source, current: str) -> list[Offer]:
    """Return how the path of one value goes on: ID.NAME or ID.OPERATION.NAME."""
    owners = [*source.names("resource"), *source.names("node")]
    owner = _owner_of(owners, current)
    if not owner:
        return [Offer(f"{name}.") for name in owners]
    action, has_action, _ = current[len(owner) + 1 :].partition(".")
    if has_action:
        found, owner = _of_rows(OPERATION_ATTRIBUTES, ""), f"{owner}.{action}"
    elif owner in source.names("resource"):
        agent = source.agent_of(owner)
        actions = [Offer(f"{name}.", "An operation") for name in _ACTIONS] if agent else []
        found = [*parameter_names(source, agent, ""), *meta_names(""), *actions]
    else:
        found = []
    return [Offer(f"{owner}.{each.word}", each.help) for each in found]


def setting_values(source: Source, path: str) -> list[Offer]:
    """Return the values that the one of a path may have, as far as they are known."""
    owner = _owner_of(source.names("resource"), path)
    action, has_action, name = path[len(owner) + 1 :].rpartition(".")
    if action and has_action:
        return _without_name(_pairs(OPERATION_ATTRIBUTES, (), f"{name}="))
    return [*parameter_values(source, source.agent_of(owner), name), *meta_values(name)]


def _owner_of(names: Iterable[str], path: str) -> str:
    """Return whose value a path means: ids may have dots."""
    return max((name for name in names if path.startswith(f"{name}.")), key=len, default="")


def action_names() -> list[Offer]:
    """Return the actions of agents."""
    return list(map(Offer, _ACTIONS))


def meta_values(name: str) -> list[Offer]:
    """Return the values of a meta-attribute, as far as they are known."""
    return _without_name(_pairs(META_ATTRIBUTES, (), f"{name}="))


def parameter_values(source: Source, agent: str, name: str) -> list[Offer]:
    """Return the values of a parameter of an agent, as far as it describes them."""
    return _without_name(_parameters(source, agent, (), f"{name}="))


def _without_name(offers: Iterable[Offer]) -> list[Offer]:
    return [Offer(offer.word.partition("=")[2], offer.help) for offer in offers]


def parameter_names(source: Source, agent: str, after: str = "=") -> list[Offer]:
    """Return the parameters of an agent, as its meta-data describes them."""
    described = listed(source.description(agent), "parameters") if agent else []
    return [Offer(text(each, "name") + after, _help_of(each)) for each in described if text(each, "name")]


def _help_of(parameter: Fields) -> str:
    """Return one line about a parameter."""
    short = _line(text(parameter, "shortdesc") or text(parameter, "longdesc"))
    if flag(parameter, "is_required"):
        return f"required: {short}"
    default = text(parameter, "default")
    return f"{short} ({default})" if default else short


def _line(described: str) -> str:
    """Return the beginning of a text, in one line."""
    line = " ".join(described.split())
    return line if len(line) <= _HELP_LENGTH else line[: _HELP_LENGTH - 3].rstrip() + "..."


def _of_rows(rows: Iterable[Row], after: str) -> list[Offer]:
    return [Offer(row.name + after, _line(row.doc)) for row in rows]


def _pairs(rows: Sequence[Row], given: Sequence[str], current: str) -> list[Offer]:
    """Return the attributes that are not given yet; after `NAME=`, the values of that one."""
    name, has_value, _ = current.partition("=")
    if has_value:
        row = next((each for each in rows if name in (each.name, *each.aliases)), None)
        return _with_values(name, () if row is None else _values_of(row), "" if row is None else row.default)
    return _not_given(_of_rows(rows, "="), given)


def _values_of(row: Row) -> Sequence[str]:
    return _BOOLEANS if row.type is ValueType.BOOLEAN else row.choices if row.live is None else row.live


def _with_values(name: str, values: Iterable[str], default: str) -> list[Offer]:
    return [Offer(f"{name}={value}", "the default" if value == default else "") for value in values]


def _not_given(offers: Iterable[Offer], given: Sequence[str]) -> list[Offer]:
    names = {word.partition("=")[0] for word in given}
    return [offer for offer in offers if offer.word.removesuffix("=") not in names]


def _parameters(source: Source, agent: str, given: Sequence[str], current: str) -> list[Offer]:
    name, has_value, _ = current.partition("=")
    if not has_value:
        return _not_given(parameter_names(source, agent), given)
    described = listed(source.description(agent), "parameters")
    found = next((each for each in described if text(each, "name") == name), None)
    if found is None:
        return []
    default = text(found, "default")
    values = texts(found, "options") or (_BOOLEANS if text(found, "type") == "boolean" else ())
    return _with_values(name, values or ([default] if default else ()), default)


# -- resources ------------------------------------------------------------------------------------------------------


def _primitive(given: list[str], current: str, source: Source) -> Sequence[Offer]:
    if not given:
        return ()
    if len(given) == 1:
        return list(map(Offer, source.names("agent")))
    agent = source.agent_of(given[1][1:]) if given[1].startswith("@") else given[1]
    at = max((index for index, word in enumerate(given) if word in _SECTIONS and index > 1), default=1)
    section, inside = given[at], given[at + 1 :]
    sections = [] if "=" in current else [Offer(word, help_) for word, help_ in _SECTIONS.items()]
    if section == "meta":
        return [*_pairs(META_ATTRIBUTES, inside, current), *sections]
    if section == "op":
        return _operation(source, agent, inside, current, sections)
    return [*(_parameters(source, agent, inside, current) if section != "utilization" else ()), *sections]


def _operation(
    source: Source, agent: str, inside: list[str], current: str, sections: Sequence[Offer]
) -> Sequence[Offer]:
    described = listed(source.description(agent), "actions") if agent else []
    advised: dict[str, list[Fields]] = {}
    for each in described:
        advised.setdefault(text(each, "name"), []).append(each)
    if not inside:
        actions = [action for action in _ACTIONS if action in advised] or _ACTIONS
        return [Offer(action, _advice(advised.get(action, ()))) for action in actions]
    name, has_value, _ = current.partition("=")
    if has_value and name in ("interval", "timeout"):
        found = dict.fromkeys(text(each, name) for each in advised.get(inside[0], ()) if text(each, name))
        return [Offer(f"{name}={value}", "as the agent advises") for value in found]
    return [*_pairs(OPERATION_ATTRIBUTES, inside[1:], current), *sections]


def _advice(described: Sequence[Fields]) -> str:
    """Return what an agent advises for an action."""
    first = described[0] if described else {}
    said = [f"{name} {text(first, name)}" for name in ("interval", "timeout") if text(first, name)]
    return f"the agent advises {', '.join(said)}" if said else ""


def _collection(given: list[str], current: str, source: Source) -> Sequence[Offer]:
    """Return what may follow in a group or clone."""
    if not given:
        return ()
    if "meta" in given:
        return _pairs(META_ATTRIBUTES, given[given.index("meta") :], current)
    members = [Offer(name) for name in source.names("resource") if name not in given]
    return [*members, Offer("meta", _SECTIONS["meta"])] if len(given) > 1 else members


def _bundle(given: list[str], current: str, source: Source) -> Sequence[Offer]:
    if len(given) == 1:
        return [Offer("docker"), Offer("podman")]
    if not given or "=" in current:
        return ()
    if given[-1] == "primitive":
        return list(map(Offer, source.names("resource")))
    if "meta" in given:
        return _pairs(META_ATTRIBUTES, given[given.index("meta") :], current)
    return _not_given(
        (Offer("image=", "The image of its containers"), Offer("replicas=", "How many containers"),
         Offer("network", "Addresses and ports"), Offer("storage", "Directories of the host"),
         Offer("meta", _SECTIONS["meta"]), Offer("primitive", "The resource inside")), given,
    )  # fmt: skip


# -- constraints and the rest ---------------------------------------------------------------------------------------


def _resources(given: list[str], source: Source) -> list[Offer]:
    return [Offer(name) for name in source.names("resource") if name not in given]


def _location(given: list[str], _current: str, source: Source) -> Sequence[Offer]:
    if len(given) == 1:
        return _resources(given, source)
    if len(given) == 2:
        return [*_SCORES, Offer("rule", "Where a condition is true")]
    return list(map(Offer, source.names("node"))) if given and given[-1].endswith(":") else ()


def _colocation(given: list[str], current: str, source: Source) -> Sequence[Offer]:
    if len(given) < 2:
        return _SCORES if given else ()
    if len(given) > 3:
        return _pairs(_OF_COLOCATIONS, given, current)
    return _resources(given, source)


def _order(given: list[str], current: str, source: Source) -> Sequence[Offer]:
    if len(given) == 1:
        return [*_KINDS, *_resources(given, source)]
    if not given:
        return ()
    return _resources(given, source) if len(given) < 4 and "=" not in current else _pairs(_OF_ORDERS, given, current)


def _ticket(given: list[str], current: str, source: Source) -> Sequence[Offer]:
    if len(given) == 1:
        return [Offer(f"{name}:") for name in source.names("ticket")]
    if len(given) < 2:
        return ()
    policies = _pairs(_OF_TICKETS, given, current) if len(given) > 2 else []
    return [*policies, *(() if "=" in current else _resources(given, source))]


def _topology(given: list[str], _current: str, source: Source) -> Sequence[Offer]:
    devices = _resources(given, source) if given else []
    return [*devices, *(Offer(f"{name}:", "The levels of this node follow") for name in source.names("node"))]


def _node(given: list[str], _current: str, source: Source) -> Sequence[Offer]:
    if not given:
        return list(map(Offer, source.names("node")))
    return _not_given((Offer("attributes", "Its attributes"), Offer("utilization", "Its capacities")), given)


_OF_COLOCATIONS = (
    Row("node-attribute", ValueType.STRING, "#uname", "What is the same of both nodes."),
    Row("influence", ValueType.BOOLEAN, "true", "Whether the first also decides where the second runs."),
)
_OF_ORDERS = (
    Row("symmetrical", ValueType.BOOLEAN, "true", "Whether they stop in the other order."),
    Row("require-all", ValueType.BOOLEAN, "true", "Whether all instances of the first must run."),
)
_OF_TICKETS = (
    Row("loss-policy", ValueType.CHOICE, "stop", "What happens when the ticket is lost.",
        choices=LOSS_POLICIES),
)  # fmt: skip
_OF_DEFAULTS = tuple(row for row in OPERATION_ATTRIBUTES if row.name in DEFAULTABLE)
_Words = Callable[[list[str], str, Source], Sequence[Offer]]
_STATEMENTS: Mapping[str, _Words] = {
    "primitive": _primitive, "rsc_template": _primitive, "group": _collection, "clone": _collection, "ms": _collection,
    "bundle": _bundle, "location": _location, "colocation": _colocation, "order": _order, "rsc_ticket": _ticket,
    "fencing_topology": _topology, "node": _node,
    "tag": lambda given, _, source: list(map(Offer, source.names("object"))) if given else (),
    "monitor": lambda given, _, source: () if given else _resources(given, source),
    "property": lambda given, current, _: _pairs(CLUSTER_PROPERTIES, given, current),
    "rsc_defaults": lambda given, current, _: _pairs(META_ATTRIBUTES, given, current),
    "op_defaults": lambda given, current, _: _pairs(_OF_DEFAULTS, given, current),
}  # fmt: skip
