"""Who can open what is sealed, and what an altered text is worth."""

import base64
import hashlib
import stat
from pathlib import Path

import pytest

from haclusterd.adapters.network.secret_keeper import KEY_FILE, SealingKeeper
from haclusterd.model.ids import NodeName
from haclusterd.model.records import replace
from haclusterd.model.secrets import Secrets, WrappedKey

N1, N2, N3 = (NodeName(name) for name in ("n1", "n2", "n3"))


@pytest.fixture
def keepers(tmp_path: Path) -> dict[NodeName, SealingKeeper]:
    return {name: SealingKeeper(tmp_path / name, name, (tmp_path / "pacemaker",)) for name in (N1, N2, N3)}


def shared(keepers: dict[NodeName, SealingKeeper], *names: NodeName) -> Secrets:
    key_id, keys = keepers[N1].new_key({name: keepers[name].public_key() for name in names})
    return Secrets(key_id=key_id, keys=keys)


def sealed(keeper: SealingKeeper, secrets: Secrets, name: str, value: str) -> str:
    made = keeper.seal(secrets, name, value)
    assert made is not None
    return made


def test_members_open_what_one_of_them_sealed_and_nobody_else_does(keepers: dict[NodeName, SealingKeeper]) -> None:
    secrets = shared(keepers, N1, N2)
    text = sealed(keepers[N1], secrets, "pdu", "swordfish é")
    assert "swordfish" not in text
    assert text != sealed(keepers[N1], secrets, "pdu", "swordfish é"), "equal values do not look equal"
    assert keepers[N2].open(secrets, "pdu", text) == "swordfish é"
    assert (keepers[N3].open(secrets, "pdu", text), keepers[N3].seal(secrets, "pdu", "x")) == (None, None)
    assert [keepers[name].has_key(secrets) for name in (N1, N2, N3)] == [True, True, False]


def test_a_member_that_comes_later_gets_the_key_from_one_that_has_it(keepers: dict[NodeName, SealingKeeper]) -> None:
    secrets = shared(keepers, N1, N2)
    text = sealed(keepers[N1], secrets, "pdu", "swordfish")
    assert keepers[N3].share(secrets, {N3: keepers[N3].public_key()}) == {}
    given = keepers[N2].share(secrets, {N3: keepers[N3].public_key(), N1: "no key"})
    assert set(given) == {N3}
    grown = replace(secrets, keys={**secrets.keys, **given})
    assert keepers[N3].open(grown, "pdu", text) == "swordfish"


def test_after_a_rotation_only_those_have_the_key_for_whom_it_was_made(
    keepers: dict[NodeName, SealingKeeper],
) -> None:
    old, new = shared(keepers, N1, N2, N3), shared(keepers, N1, N2)
    assert old.key_id != new.key_id
    text = sealed(keepers[N1], new, "pdu", "another")
    assert keepers[N3].open(new, "pdu", text) is None
    assert keepers[N3].open(replace(old, key_id=new.key_id), "pdu", text) is None, "its old key is not the new one"
    assert keepers[N3].open(old, "pdu", text) is None


def test_what_was_sealed_for_something_else_is_not_opened(keepers: dict[NodeName, SealingKeeper]) -> None:
    secrets = shared(keepers, N1, N2)
    text = sealed(keepers[N1], secrets, "pdu", "swordfish")
    swapped = replace(secrets, keys={N2: secrets.keys[N1], N1: secrets.keys[N2]})
    assert keepers[N2].has_key(swapped) is False, "a key of another member"
    assert keepers[N2].open(secrets, "db", text) is None, "a value of another secret"


def test_altered_texts_are_not_opened_and_raise_nothing(keepers: dict[NodeName, SealingKeeper]) -> None:
    secrets = shared(keepers, N1)
    text = sealed(keepers[N1], secrets, "pdu", "swordfish")
    data = bytearray(base64.b64decode(text))
    for place in range(len(data)):
        data[place] ^= 1
        assert keepers[N1].open(secrets, "pdu", base64.b64encode(data).decode()) is None
        data[place] ^= 1
    for other in ("", "?", "é", text[:8], text + "AAAA", "AAAA"):
        assert keepers[N1].open(secrets, "pdu", other) is None
    for wrapped in ("", "?", "AAAA", text):
        assert not keepers[N2].has_key(replace(secrets, keys={N2: WrappedKey(keepers[N2].public_key(), wrapped)}))


def test_the_private_key_is_kept_for_this_node_alone(tmp_path: Path) -> None:
    keeper = SealingKeeper(tmp_path, N1)
    path = tmp_path / KEY_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert SealingKeeper(tmp_path, N1).public_key() == keeper.public_key() != ""
    path.write_text("no key")
    damaged = SealingKeeper(tmp_path, N1)
    assert damaged.public_key() == ""
    assert KEY_FILE in damaged.problem
    assert not damaged.has_key(Secrets(key_id="k", keys={N1: WrappedKey("", "AAAA")}))
    assert path.read_text() == "no key", "it may still be of use to a person"


def test_values_that_cibsecret_has_kept_are_read_if_they_are_whole(
    keepers: dict[NodeName, SealingKeeper], tmp_path: Path
) -> None:
    directory = tmp_path / "pacemaker" / "pdu"
    directory.mkdir(parents=True)
    (directory / "passwd").write_text("swordfish\n")
    keeper = keepers[N1]
    assert keeper.read_pacemakers("pdu", "passwd") is None, "without its sum"
    (directory / "passwd.sign").write_text(hashlib.md5(b"swordfish", usedforsecurity=False).hexdigest() + "\n")
    assert keeper.read_pacemakers("pdu", "passwd") == "swordfish"
    (directory / "passwd").write_text("swordfisH\n")
    assert keeper.read_pacemakers("pdu", "passwd") is None
    for words in (("..", "passwd"), ("pdu/../pdu", "passwd"), ("pdu", ""), ("none", "passwd")):
        assert keeper.read_pacemakers(*words) is None
