"""Any words to any of Pacemaker's tools: an exit status and what it prints, never a failure of the daemon."""

import shlex

from hypothesis import given, settings
from hypothesis import strategies as st

from haclusterd.commands.tools.tools import TOOLS
from tests.administered_clusters import formed
from tests.examples import examples
from tests.unit.commands.tools.tool_calls import run

VALUES = (
    "n1", "n9", "web", "db:0", "power", "*", "", "primitive", "standby", "value++", "value+=99999999999", "5", "-1",
    "P1D", "now", "yes", "web_monitor_0@n1=7", "a_b@c=d", "//nvpair[position()=1]", "//*[count(a)>1]", "//a[", "<a/>",
    "<a", "xml", "resources", "granted", "\u00e9", "'",
)  # fmt: skip


@st.composite
def calls(draw: st.DrawFn) -> str:
    """Draw a call with options that the tool knows, in any order and number, with fitting values or others."""
    name = draw(st.sampled_from(sorted(TOOLS)))
    known = sorted({spelling.rstrip(":?") for text in TOOLS[name].options.values() for spelling in text.split()})
    flags = st.sampled_from([f"-{each}" if len(each) == 1 else f"--{each}" for each in known])
    words = draw(st.lists(flags | st.sampled_from((*VALUES, "--output-as=xml")) | st.text(max_size=4), max_size=7))
    return shlex.join([name, *words])


@settings(max_examples=examples(600))
@given(calls(), st.sampled_from(("", "<cib/>", "<cib", "\0")))
def test_every_call_is_answered(line: str, text: str) -> None:
    code, out, err = run(formed(), line, text)
    assert 0 <= code <= 255
    assert "Traceback" not in out + err
