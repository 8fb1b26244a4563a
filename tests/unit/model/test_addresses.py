"""Addresses as people write them."""

import pytest

from haclusterd.model.addresses import address_text, read_address


@pytest.mark.parametrize(
    ("text", "default", "expected"),
    [
        ("10.0.0.1:7", None, ("10.0.0.1", 7)),
        ("[::1]:7", None, ("::1", 7)),
        ("::1", 7401, ("::1", 7401)),
        ("[::1]", 7401, ("::1", 7401)),
        ("n1", 7401, ("n1", 7401)),
        ("n1", None, None),
        ("n1:0", None, None),
        ("n1:65536", None, None),
        (":7", None, None),
        ("a b:7", None, None),
        ("n1:7\N{SUPERSCRIPT TWO}", None, None),
    ],
)
def test_addresses(text: str, default: int | None, expected: tuple[str, int] | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="HOST:PORT"):
            read_address(text, default)
    else:
        assert read_address(text, default) == expected


@pytest.mark.parametrize("text", ["10.0.0.1:7", "[fd00::1]:7100", "n1:7401"])
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert address_text(read_address(text)) == text
