"""Where the REST interface may listen."""

from pathlib import Path

import pytest

from haclusterd.api.settings import ApiSettingsError, load, read

FILE = Path("/etc/haclusterd/api.yaml")


def test_without_a_file_it_listens_on_loopback(tmp_path: Path) -> None:
    settings = load(tmp_path / "api.yaml")
    assert settings.listen == (("127.0.0.1", 7443), ("::1", 7443))
    assert (settings.certificate, settings.is_default) == (None, True)


def test_another_address_needs_a_certificate() -> None:
    both = {"certificate": "c.pem", "key": "k.pem"}
    settings = read(FILE, {"listen": ["192.0.2.1:7443"], **both})
    assert (settings.certificate, settings.key) == (FILE.parent / "c.pem", FILE.parent / "k.pem")


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ([], "listen, certificate"),
        ({"port": 1}, "port: unknown key"),
        ({"listen": "127.0.0.1:1"}, "listen"),
        ({"listen": ["127.0.0.1"]}, "HOST:PORT"),
        ({"listen": ["127.0.0.1:70000"]}, "HOST:PORT"),
        ({"listen": ["127.0.0.1:7\N{SUPERSCRIPT TWO}"]}, "HOST:PORT"),
        ({"listen": ["0.0.0.0:7443"]}, "not loopback"),
        ({"listen": ["node.example.com:7443"]}, "not loopback"),
        ({"certificate": "c.pem"}, "go together"),
        ({"socket": ""}, "socket"),
    ],
)
def test_what_cannot_be_is_refused_by_name(document: object, named: str) -> None:
    with pytest.raises(ApiSettingsError, match=named):
        read(FILE, document)


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "api.yaml").write_text("listen: ['127.0.0.1:1']\nlisten: ['127.0.0.1:2']\n")
    with pytest.raises(ApiSettingsError, match="'listen' stands twice"):
        load(tmp_path / "api.yaml")
