"""The configuration file of a daemon: what it may say, and how it says no."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from haclusterd.model.cluster import Member
from haclusterd.model.ids import NodeName
from haclusterd.runtime.settings import BOOT_ID_FILE, Installation, SettingsError, load, render

WHOLE: dict[str, Any] = {
    "cluster": {"name": "shop", "uuid": "0f4c"},
    "node": "n1",
    "members": {
        "n1": {"addresses": ["192.0.2.1:7100", "[2001:db8::1]:7100"]},
        "n2": {"addresses": ["192.0.2.2:7100"]},
        "w1": {"addresses": ["192.0.2.3:7100"], "witness": True},
        "r1": {"addresses": ["192.0.2.4:7100"], "voter": False},
    },
    "state-directory": "/srv/state",
    "runtime-directory": "/srv/run",
}


def write(directory: Path, document: object) -> Path:
    path = directory / "haclusterd.yaml"
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def test_everything_it_says_is_read(tmp_path: Path) -> None:
    found = load(write(tmp_path, {**WHOLE, "development": True, "node-timeout-ms": 500, "boot-id-file": "/srv/boot",
                                  "machine-id-file": "/srv/machine-id"}))  # fmt: skip
    assert found == Installation(
        directory=tmp_path,
        node=NodeName("n1"),
        cluster_uuid="0f4c",
        cluster_name="shop",
        members=(
            Member(NodeName("n1"), (("192.0.2.1", 7100), ("2001:db8::1", 7100))),
            Member(NodeName("n2"), (("192.0.2.2", 7100),)),
            Member(NodeName("r1"), (("192.0.2.4", 7100),), is_voter=False),
            Member(NodeName("w1"), (("192.0.2.3", 7100),), is_witness=True),
        ),
        state_directory=Path("/srv/state"),
        runtime_directory=Path("/srv/run"),
        boot_id_file=Path("/srv/boot"),
        is_development=True,
        node_timeout_ms=500,
        machine_id_file=Path("/srv/machine-id"),
    )


def test_what_it_does_not_say_has_safe_defaults(tmp_path: Path) -> None:
    short = {key: WHOLE[key] for key in ("cluster", "node", "members")}
    found = load(write(tmp_path, short))
    assert (str(found.state_directory), str(found.runtime_directory)) == ("/var/lib/haclusterd", "/run/haclusterd")
    assert (str(found.boot_id_file), found.is_development, found.node_timeout_ms) == (BOOT_ID_FILE, False, 2000)


def test_the_boot_id_is_read_from_its_file(tmp_path: Path) -> None:
    boot = tmp_path / "boot_id"
    boot.write_text("abc\n")
    assert load(write(tmp_path, {**WHOLE, "boot-id-file": str(boot)})).boot_id() == "abc"


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in WHOLE.items() if name != key}


def with_member(value: object, name: object = "n1") -> dict[str, Any]:
    return {**WHOLE, "members": {**WHOLE["members"], name: value}}


def with_address(address: object) -> dict[str, Any]:
    return with_member({"addresses": [address]})


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ("a: [", "not YAML"),
        ("node: n1\nnode: n2", "'node' stands twice"),
        ("members:\n  n1: {}\n  n2: {}\n  n1: {}", "line 4, column 3"),
        ("", "expected a mapping"),
        ("- n1", "expected a mapping"),
        ({**WHOLE, "nodes": 3}, "nodes: unknown key"),
        (without("cluster"), "cluster: expected a mapping"),
        ({**WHOLE, "cluster": {"name": "shop"}}, "cluster.uuid: expected a text"),
        ({**WHOLE, "cluster": {"name": 7, "uuid": "x"}}, "cluster.name: expected a text"),
        (without("node"), "node: expected a text"),
        ({**WHOLE, "node": "n9"}, "node: n9 is not among the members"),
        (without("members"), "members: expected a mapping"),
        (with_member(None), "members.n1: expected a mapping"),
        (with_member({"addresses": []}), "members.n1.addresses: expected a list"),
        (with_member({"addresses": ["192.0.2.9:1"]}, "no good"), "members.no good: not a node name"),
        (with_member({"addresses": ["192.0.2.9:1"]}, 7), "members.7: not a node name"),
        (with_address("192.0.2.1"), "is not HOST:PORT"),
        (with_address("192.0.2.1:0"), "is not HOST:PORT"),
        (with_address("192.0.2.1:65536"), "is not HOST:PORT"),
        (with_address(":7100"), "is not HOST:PORT"),
        (with_address("192.0.2.1:7\N{SUPERSCRIPT TWO}"), "is not HOST:PORT"),
        (with_address("n 1:7100"), "is not HOST:PORT"),
        ({**WHOLE, "node-timeout-ms": "soon"}, "node-timeout-ms: expected a number"),
        ({**WHOLE, "node-timeout-ms": [2]}, "node-timeout-ms: expected a number"),
        ({**WHOLE, "node-timeout-ms": True}, "node-timeout-ms: expected a number"),
        ({**WHOLE, "node-timeout-ms": 499}, "node-timeout-ms: at least 500"),
        ({**WHOLE, "state-directory": 7}, "state-directory: expected a text"),
        ({**WHOLE, "boot-id-file": None}, "boot-id-file: expected a text"),
        ({**WHOLE, "machine-id-file": None}, "machine-id-file: expected a text"),
    ],
)
def test_what_is_wrong_is_named_with_its_file_and_place(tmp_path: Path, document: object, place: str) -> None:
    path = write(tmp_path, document)
    with pytest.raises(SettingsError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert place in str(caught.value)


def test_a_file_that_is_not_there_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="crm cluster setup"):
        load(tmp_path / "haclusterd.yaml")


names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True).map(NodeName)
addresses = st.lists(
    st.tuples(st.sampled_from(["192.0.2.1", "2001:db8::1", "::1"]), st.integers(1, 65535)), min_size=1, max_size=2
).map(tuple)


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(names, st.tuples(addresses, st.booleans(), st.booleans()), min_size=1, max_size=4),
    st.booleans(),
    st.integers(500, 60_000),
)
def test_what_is_written_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    members: dict[NodeName, tuple[tuple[tuple[str, int], ...], bool, bool]],
    is_development: bool,
    node_timeout_ms: int,
) -> None:
    directory = tmp_path_factory.mktemp("installation")
    wanted = Installation(
        directory=directory,
        node=next(iter(members)),
        cluster_uuid="0f4c",
        cluster_name="shop",
        members=tuple(
            Member(name, each[0], is_voter=each[1], is_witness=each[2]) for name, each in sorted(members.items())
        ),
        state_directory=Path("/srv/state"),
        runtime_directory=Path("/srv/run"),
        boot_id_file=Path("/srv/boot_id"),
        is_development=is_development,
        node_timeout_ms=node_timeout_ms,
        machine_id_file=Path("/srv/machine-id") if is_development else None,
    )
    path = directory / "haclusterd.yaml"
    path.write_text(render(wanted))
    found = load(path)
    assert found == wanted
