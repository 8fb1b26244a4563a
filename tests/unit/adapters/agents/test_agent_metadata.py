"""Meta-data of foreign agents: tolerant of clutter, deaf to entities."""

import pytest

from haclusterd.adapters.agents.metadata import (
    MetadataError,
    read_agent_metadata,
    read_duration_ms,
    read_fence_metadata,
)
from haclusterd.model.ids import AgentReference

AGENT = AgentReference("ocf", "heartbeat", "Thing")

FULL = """warning: something is deprecated
<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE resource-agent SYSTEM "ra-api-1.dtd">
<resource-agent name="Thing" version="2.0">
<version>1.1</version>
<longdesc lang="en">
Long   text
of it.
</longdesc>
<shortdesc lang="en">A thing</shortdesc>
<parameters>
<parameter name="ip" required="1" unique-group="address"><shortdesc>Address</shortdesc>
<content type="string"/></parameter>
<parameter name="password" private="1"><content type="string" default=""/></parameter>
<parameter name="mode" reloadable="1"><content type="select" default="a">
<option value="a"/><option value="b"/></content>
</parameter>
</parameters>
<actions>
<action name="start" timeout="1min"/>
<action name="monitor" depth="0" timeout="20s" interval="10" role="Promoted"/>
<action name="monitor" depth="10" timeout="30s" interval="60s"/>
<action name="meta-data" timeout="5"/>
</actions>
</resource-agent>
trailing noise
"""


def test_everything_that_matters_is_read() -> None:
    metadata = read_agent_metadata(FULL, AGENT)
    assert (metadata.version, metadata.shortdesc, metadata.longdesc) == ("1.1", "A thing", "Long text of it.")
    ip, password, mode = (metadata.parameters[name] for name in ("ip", "password", "mode"))
    assert (ip.is_required, ip.is_unique, ip.shortdesc, ip.default) == (True, True, "Address", None)
    assert (password.is_private, password.default) == (True, "")
    assert (mode.is_reloadable, mode.content_type, mode.default, mode.options) == (True, "select", "a", ("a", "b"))
    assert metadata.actions["start"].timeout_ms == 60_000
    monitor = metadata.actions["monitor"]
    assert (monitor.timeout_ms, monitor.interval_ms) == (20_000, 10_000)
    assert monitor.attributes == {"depth": "0", "role": "Promoted"}


def test_a_missing_version_means_the_first() -> None:
    assert read_agent_metadata("<resource-agent name='x'/>", AGENT).version == "1.0"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it printed nothing"),
        ("Segmentation fault", "it printed no XML, but 'Segmentation fault'"),
        ("<resource-agent>", "not XML"),
        ("<agent/>", "root element is <agent>"),
        ('<!DOCTYPE r [<!ENTITY a "b">]><resource-agent>&a;</resource-agent>', "entities"),
        ('<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><resource-agent>&a;</resource-agent>', "entities"),
        ('<!DOCTYPE r [<!ENTITY % p SYSTEM "http://127.0.0.1/"> %p;]><resource-agent/>', "entities"),
    ],
)
def test_what_cannot_be_read_is_reported(text: str, words: str) -> None:
    with pytest.raises(MetadataError, match=words):
        read_agent_metadata(text, AGENT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20", 20_000),
        ("20s", 20_000),
        (" 3 min ", 180_000),
        ("500ms", 500),
        ("1h", 3_600_000),
        ("", None),
        (None, None),
        ("soon", None),
        ("1 week", None),
    ],
)
def test_durations(text: str | None, expected: int | None) -> None:
    assert read_duration_ms(text) == expected


@pytest.mark.parametrize(
    ("parameters", "host"),
    [("plug port", "plug"), ("port", "port"), ("nodename", None)],
)
def test_fence_metadata(parameters: str, host: str | None) -> None:
    declared = "".join(f'<parameter name="{name}"/>' for name in parameters.split())
    text = (
        f'<resource-agent name="fence_x"><parameters>{declared}</parameters>'
        f'<actions><action name="on"/><action name="off"/></actions></resource-agent>'
    )
    metadata = read_fence_metadata(text, "fence_x")
    assert metadata.actions == {"on", "off"}
    assert metadata.host_argument == host
