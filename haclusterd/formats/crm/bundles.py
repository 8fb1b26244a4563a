"""Bundles in crm statements (cli.md §4.4; Pacemaker Explained, "Bundles")."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from haclusterd.formats.crm.blocks import Block, finish, read_block, section_word
from haclusterd.formats.crm.cursor import Cursor
from haclusterd.formats.crm.tokens import Token
from haclusterd.formats.generated_ids import allocate, mapping_base
from haclusterd.formats.statements import Define
from haclusterd.model.configuration import MAX_REPLICAS, Bundle, BundleNetwork, PortMapping, StorageMapping
from haclusterd.model.ids import NCNAME, ResourceId
from haclusterd.model.properties import read_boolean
from haclusterd.model.words import bad_character
from haclusterd.reports.codes import Code
from haclusterd.reports.suggestions import did_you_mean

ENGINES = ("docker", "podman", "rkt")

CONTAINER_KEYS = (
    "image", "replicas", "replicas-per-host", "promoted-max", "masters", "run-command", "options", "network",
)  # fmt: skip
NETWORK_KEYS = ("ip-range-start", "control-port", "host-interface", "host-netmask", "add-host")
PORT_KEYS = ("id", "port", "internal-port", "range")
STORAGE_KEYS = ("id", "target-dir", "source-dir", "source-dir-root", "options")

_PARTS = ("network", "storage", "primitive", "meta", "params")
_PORT, _STORAGE = "port-mapping", "storage-mapping"

_Pairs = dict[str, Token]
_Read = TypeVar("_Read")


def read_count(text: str) -> int:
    """Read a number of containers; raise ValueError otherwise."""
    if not text.isascii() or not text.isdigit() or int(text[:9]) > MAX_REPLICAS:
        raise ValueError(f"{text!r} is not a number from 0 to {MAX_REPLICAS}")
    return int(text)


class _Parts:
    """What of a bundle has been read."""

    def __init__(self) -> None:
        self.network: _Pairs | None = None
        self.ports: list[_Pairs] = []
        self.storage: list[_Pairs] = []
        self.blocks: list[Block] = []
        self.primitive: ResourceId | None = None


def read_bundle(cursor: Cursor) -> Define:
    """Read `bundle ID [description=T] ENGINE {NAME=VALUE} [network ...] [storage ...] [meta ...] [primitive RSC]`."""
    id_ = cursor.id("the bundle's id")
    cursor.mark("resource", id_, at=cursor.line.tokens[1])
    description = _read_description(cursor)
    token = cursor.take(f"one of: {', '.join(ENGINES)}")
    if token.text.lower() not in ENGINES:
        cursor.back()
        raise cursor.expected(f"one of: {', '.join(ENGINES)}")
    container = _read_pairs(cursor, CONTAINER_KEYS)
    if "image" not in container:
        raise cursor.expected("image=IMAGE")
    parts = _Parts()
    while not cursor.is_at_end:
        _read_part(cursor, id_, parts)
    blocks = finish(cursor, id_, parts.blocks, "resource", id_)
    promoted_max = "promoted-max" if "promoted-max" in container else "masters"
    made = Bundle(
        id=ResourceId(id_),
        engine=token.text.lower(),
        image=_text(container, "image"),
        primitive=parts.primitive,
        replicas=_value(cursor, container, "replicas", read_count),
        replicas_per_host=_value(cursor, container, "replicas-per-host", read_count),
        promoted_max=_value(cursor, container, promoted_max, read_count),
        run_command=_text(container, "run-command"),
        options=_text(container, "options"),
        network_mode=_text(container, "network"),
        network=_network(cursor, id_, parts),
        storage=_storage(cursor, id_, parts),
        meta=blocks["meta"],
        parameters=blocks["params"],
        description=description,
    )
    return Define(made, cursor.line.place, cursor.places, cursor.line.comments, cursor.pairs)


def _read_description(cursor: Cursor) -> str:
    token = cursor.peek()
    if token is None or not token.text.startswith("description="):
        return ""
    cursor.take("a description")
    text = token.text.partition("=")[2]
    character = bad_character(text)
    if character:
        cursor.note(Code.BAD_CHARACTER, token, name="description", character=character)
    return text


def _read_part(cursor: Cursor, id_: str, parts: _Parts) -> None:
    token = cursor.take(f"one of: {', '.join(_PARTS)}")
    match "" if token.is_quoted else token.text.lower():
        case "network" if parts.network is None:
            parts.network = _read_pairs(cursor, NETWORK_KEYS)
            parts.ports = _read_mappings(cursor, _PORT, PORT_KEYS)
        case "storage" if not parts.storage:
            parts.storage = _read_mappings(cursor, _STORAGE, STORAGE_KEYS)
        case "primitive" if parts.primitive is None:
            at = cursor.peek()
            parts.primitive = ResourceId(cursor.id("the id of a primitive"))
            assert at is not None
            cursor.mark("resource", id_, "member", parts.primitive, at=at)
        case "meta" | "params":
            parts.blocks.append(_read_bundle_block(cursor, token.text.lower()))
        case _:
            raise cursor.refuse(Code.UNEXPECTED, token, construct=cursor.construct, found=token.text)


def _read_bundle_block(cursor: Cursor, section: str) -> Block:
    return read_block(cursor, section, ends=("primitive", "network", "storage"))


def _read_mappings(cursor: Cursor, word: str, keys: tuple[str, ...]) -> list[_Pairs]:
    found: list[_Pairs] = []
    while (token := cursor.peek()) is not None and token.text.lower() == word and not token.is_quoted:
        cursor.take(word)
        found.append(_read_pairs(cursor, keys))
    return found


def _read_pairs(cursor: Cursor, known: tuple[str, ...]) -> _Pairs:
    """Read `name=value` words, all of which must be known."""
    found: _Pairs = {}
    while True:
        token = cursor.peek()
        name, equals, _ = token.text.partition("=") if token is not None else ("", "", "")
        if token is None or not equals or section_word(token) is not None:
            return found
        cursor.take("an attribute")
        name = name.removeprefix("$")
        if name not in known:
            raise cursor.refuse(
                Code.UNEXPECTED, token, remedy=did_you_mean(name, known), construct=cursor.construct, found=token.text
            )
        if name in found:
            cursor.note(Code.DUPLICATE_NAME, token, name=name)
        cursor.pair(Token(token.text.removeprefix("$"), token.place))
        found[name] = token


def _text(pairs: Mapping[str, Token], name: str) -> str:
    token = pairs.get(name)
    return "" if token is None else token.text.partition("=")[2]


def _value(cursor: Cursor, pairs: Mapping[str, Token], name: str, read: Callable[[str], _Read]) -> _Read | None:
    token = pairs.get(name)
    if token is None:
        return None

    def read_or_none(text: str) -> _Read | None:
        return read(text)

    return cursor.value(name, _text(pairs, name), token, read_or_none, None)


def _network(cursor: Cursor, id_: str, parts: _Parts) -> BundleNetwork | None:
    pairs = parts.network
    if pairs is None:
        return None
    ids = _ids(cursor, parts.ports, mapping_base(id_, "port"))
    return BundleNetwork(
        ip_range_start=_text(pairs, "ip-range-start"),
        control_port=_text(pairs, "control-port"),
        host_interface=_text(pairs, "host-interface"),
        host_netmask=_text(pairs, "host-netmask"),
        adds_host=_value(cursor, pairs, "add-host", read_boolean),
        ports=tuple(
            PortMapping(own, _text(port, "port"), _text(port, "internal-port"), _text(port, "range"))
            for own, port in zip(ids, parts.ports, strict=True)
        ),
    )


def _storage(cursor: Cursor, id_: str, parts: _Parts) -> tuple[StorageMapping, ...]:
    ids = _ids(cursor, parts.storage, mapping_base(id_, "storage"))
    return tuple(
        StorageMapping(own, *(_text(each, key) for key in STORAGE_KEYS[1:]))
        for own, each in zip(ids, parts.storage, strict=True)
    )


def _ids(cursor: Cursor, mappings: list[_Pairs], base: str) -> list[str]:
    for each in mappings:
        if "id" in each and not NCNAME.match(_text(each, "id")):
            raise cursor.refuse(Code.BAD_ID, each["id"], id=_text(each, "id"))
    return allocate([(_text(each, "id") if "id" in each else None, base) for each in mappings])
