import datetime as dt
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from haclusterd.adapters.network.authority_files import AuthorityFiles
from haclusterd.adapters.network.certificates import (
    NODE_CERTIFICATE,
    Credentials,
    adopt_certificate,
    begin_renewal,
    complete_adoption,
    create_authority,
    heartbeat_keys,
    issue_certificate,
    node_name_of,
    require_credentials,
    sign_renewal,
    tls_context,
    write_authority,
    write_node_credentials,
)
from haclusterd.model.ids import NodeName

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
CLUSTER = "11111111-2222-3333-4444-555555555555"
N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def authority() -> Credentials:
    return create_authority(CLUSTER, now=NOW)


def set_up(directory: Path, authority: Credentials, node: NodeName) -> bytes:
    credentials = issue_certificate(authority, node, ["127.0.0.1", "::1", "host.example"], now=NOW)
    write_node_credentials(directory / node, authority.certificate, credentials)
    return credentials.certificate


def test_a_certificate_carries_name_addresses_and_purpose(authority: Credentials) -> None:
    pem = issue_certificate(authority, N1, ["10.1.2.3", "fe80::1", "host.example"], now=NOW).certificate
    certificate = x509.load_pem_x509_certificate(pem)
    assert certificate.subject.rfc4514_string() == "CN=n1"
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["n1", "host.example"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["10.1.2.3", "fe80::1"]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert key.curve.name == "secp256r1"
    assert certificate.not_valid_before_utc < NOW < certificate.not_valid_after_utc
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))


def test_keys_are_written_private_and_the_authority_key_stays_home(tmp_path: Path, authority: Credentials) -> None:
    set_up(tmp_path, authority, N1)
    write_authority(tmp_path / "home", authority)
    assert sorted(path.name for path in (tmp_path / "n1").iterdir()) == ["authority.pem", "node.key", "node.pem"]
    assert mode(tmp_path / "n1" / "node.key") == 0o600
    assert mode(tmp_path / "n1" / "node.pem") == 0o644
    assert mode(tmp_path / "home" / "authority.key") == 0o600
    assert "PRIVATE" not in repr(authority)


def test_both_ends_derive_the_same_heartbeat_key_and_each_pair_its_own(
    tmp_path: Path, authority: Credentials
) -> None:
    certificates = {node: set_up(tmp_path, authority, node) for node in (N1, N2, N3)}

    def keys_of(node: NodeName, cluster: str = CLUSTER) -> dict[NodeName, bytes]:
        peers = {peer: pem for peer, pem in certificates.items() if peer != node}
        return heartbeat_keys(tmp_path / node, cluster, node, peers)

    first, second, third = keys_of(N1), keys_of(N2), keys_of(N3)
    assert first[N2] == second[N1]
    assert first[N3] == third[N1]
    assert len({first[N2], first[N3], second[N3]}) == 3
    assert {len(key) for key in first.values()} == {32}
    assert keys_of(N1, "another cluster")[N2] != first[N2]
    assert keys_of(N1) == first


def test_heartbeat_keys_are_made_only_with_members(tmp_path: Path, authority: Credentials) -> None:
    set_up(tmp_path, authority, N1)
    foreign = issue_certificate(create_authority(CLUSTER, now=NOW), N2, [], now=NOW).certificate
    with pytest.raises(ValueError, match="not of this cluster's authority"):
        heartbeat_keys(tmp_path / N1, CLUSTER, N1, {N2: foreign})
    other = issue_certificate(authority, N3, [], now=NOW).certificate
    with pytest.raises(ValueError, match="another node's"):
        heartbeat_keys(tmp_path / N1, CLUSTER, N1, {N2: other})


def test_contexts_speak_tls_1_3_with_certificates_only(tmp_path: Path, authority: Credentials) -> None:
    set_up(tmp_path, authority, N1)
    for is_server in (True, False):
        context = tls_context(tmp_path / N1, is_server=is_server)
        assert context.minimum_version.name == "TLSv1_3"
        assert context.verify_mode.name == "CERT_REQUIRED"


def test_a_node_name_is_read_from_exactly_one_common_name() -> None:
    assert node_name_of({"subject": ((("commonName", "n1"),),)}) == "n1"
    assert node_name_of({"subject": ((("commonName", "n1"),), (("commonName", "n2"),))}) is None
    assert node_name_of({"subject": ((("organizationName", "n1"),),)}) is None
    assert node_name_of({}) is None


def test_a_renewal_is_asked_for_with_the_present_key_and_taken_into_use(
    tmp_path: Path, authority: Credentials
) -> None:
    present = set_up(tmp_path, authority, N1)
    home = tmp_path / N1
    asked = begin_renewal(home, N1)
    assert "PRIVATE" not in asked
    signed = sign_renewal(authority, asked, N1, ["127.0.0.1"], present=present, now=NOW)
    assert adopt_certificate(home, signed)
    own = Credentials((home / "node.pem").read_bytes(), (home / "node.key").read_bytes())
    require_credentials(authority.certificate, N1, own)
    assert own.certificate == signed != present
    assert mode(home / "node.key") == 0o600
    assert sorted(path.name for path in home.iterdir()) == ["authority.pem", "node.key", "node.pem"]
    assert not adopt_certificate(home, signed), "it is in use"


def test_nobody_renews_in_anothers_name(tmp_path: Path, authority: Credentials) -> None:
    of_n1, of_n2 = (set_up(tmp_path, authority, node) for node in (N1, N2))
    forged = begin_renewal(tmp_path / N2, N1)
    for asked, present, why in (
        (forged, of_n1, "not signed with the key of n1"),
        (forged, of_n2, "another node's"),
        (forged.rpartition("\n")[0], of_n1, "not signed"),
        ("", of_n1, "not signed"),
    ):
        with pytest.raises(ValueError, match=why):
            sign_renewal(authority, asked, N1, [], present=present, now=NOW)
    foreign = create_authority(CLUSTER, now=NOW)
    with pytest.raises(ValueError, match="not of this cluster"):
        sign_renewal(foreign, begin_renewal(tmp_path / N1, N1), N1, [], present=of_n1, now=NOW)


@pytest.mark.parametrize("done", [0, 1])
def test_a_renewal_that_was_cut_short_is_completed_at_the_next_start(
    tmp_path: Path, authority: Credentials, done: int
) -> None:
    present = set_up(tmp_path, authority, N1)
    home = tmp_path / N1
    signed = sign_renewal(authority, begin_renewal(home, N1), N1, [], present=present, now=NOW)
    (home / "node-next.pem").write_bytes(signed)
    if done:
        (home / "node-next.key").rename(home / "node.key")
    complete_adoption(home)
    own = Credentials((home / "node.pem").read_bytes(), (home / "node.key").read_bytes())
    require_credentials(authority.certificate, N1, own)
    assert own.certificate == signed
    complete_adoption(home)


def test_a_certificate_for_another_key_is_not_taken_into_use(tmp_path: Path, authority: Credentials) -> None:
    set_up(tmp_path, authority, N1)
    begin_renewal(tmp_path / N1, N1)
    other = issue_certificate(authority, N1, [], now=NOW).certificate
    before = (tmp_path / N1 / "node.pem").read_bytes()
    assert not adopt_certificate(tmp_path / N1, other)
    assert (tmp_path / N1 / "node.pem").read_bytes() == before


def test_the_daemon_says_which_certificate_it_uses_without_a_look_at_the_disk(
    tmp_path: Path, authority: Credentials
) -> None:
    present, home = set_up(tmp_path, authority, N1), tmp_path / N1
    files = AuthorityFiles(home)
    signed = sign_renewal(authority, files.begin_renewal(N1), N1, [], present=present, now=NOW)
    (home / NODE_CERTIFICATE).rename(home / "aside")
    assert files.own_certificate() == present.decode()
    (home / "aside").rename(home / NODE_CERTIFICATE)
    assert files.adopt(signed.decode())
    assert files.own_certificate() == signed.decode() == (home / NODE_CERTIFICATE).read_text()
