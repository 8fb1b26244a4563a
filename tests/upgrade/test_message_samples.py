"""Messages of a version that may be met during an upgrade are read, and written as it reads them."""

from pathlib import Path

import pytest

from tests.upgrade.messages import PROTOCOLS, lines_of, parsed

WRITTEN = Path(__file__).with_name("messages")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_messages_are_read_and_written_as_the_older_version_does(name: str) -> None:
    protocol = PROTOCOLS[name]
    lines = (WRITTEN / f"{name}.jsonl").read_bytes().splitlines()
    assert [protocol.decode(protocol.payload_of(line)) for line in lines] == protocol.messages
    assert parsed(lines_of(protocol)) == parsed(lines)
