"""Whatever a file holds: reading it and planning for it ends, without a traceback."""

import copy
import random
from xml.etree import ElementTree as ET

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.formats.cib_xml.document import read_cib, write_configuration
from haclusterd.model.cluster import Cib
from haclusterd.reports.items import has_errors
from tests.administered_clusters import NOW, running
from tests.examples import examples
from tests.written_cibs import EVERYTHING, report_lines

_relaxed = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)

TAGS = ["clone", "group", "master", "bundle", "primitive", "weather", "template", "rule", "resource_set"]
WORDS = [
    "", " ", "-1", "0", "2", "9" * 30, "INFINITY", "-INFINITY", "x y", "true", "false", "\u00e9", "a" * 300, "1.5",
    "%1", "P1D", "Promoted", "Stopped", "n1", "[", "(*", "#uname", "1000000",
]  # fmt: skip
PIECES = ["", " ", '"', "<", ">", "/", "&", "&amp;", "-1", "99999999999999999999", "true", "id", "web", "n1", "\x00"]


def damaged(seed: int) -> str:
    """Change the text in a few places; what comes out is hardly ever well-formed."""
    chance = random.Random(seed)
    text = EVERYTHING
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice(PIECES) + text[at + chance.choice((0, 0, 1, 3, 40)) :]
    return text


def rearranged(seed: int) -> str:
    """Change elements and values, so that the document stays well-formed."""
    chance = random.Random(seed)
    root = ET.fromstring(EVERYTHING)
    values = [value for element in root.iter() for value in element.attrib.values()]
    for _ in range(chance.randint(1, 6)):
        places = [(parent, child) for parent in root.iter() for child in parent]
        (parent, child), (other, _) = chance.choice(places), chance.choice(places)
        attribute = chance.choice(sorted(child.attrib)) if child.attrib else "id"
        match chance.randrange(8):
            case 0:
                parent.remove(child)
            case 1:
                other.append(copy.deepcopy(child))
            case 2:
                child.tag = chance.choice(TAGS)
            case 3:
                child.attrib.pop(attribute, None)
            case 4:
                child.set("id-ref", chance.choice(values))
            case 5:
                child.set(attribute, chance.choice(WORDS))
            case _:
                child.set(attribute, chance.choice(values))
    return ET.tostring(root, encoding="unicode")


def test_the_whole_document_is_held() -> None:
    assert report_lines(read_cib(EVERYTHING, "cib.xml")) == []


@settings(_relaxed, max_examples=examples(400))
@given(seed=st.integers(0, 2**32), is_well_formed=st.booleans())
def test_no_document_is_too_strange(seed: int, is_well_formed: bool) -> None:
    text = rearranged(seed) if is_well_formed else damaged(seed)
    context = Context(Cib(), 1_700_000_000_000, "tests", is_forced=True)
    outcome = registry.run("simulate", {"text": text, "source": "cib.xml"}, context)
    assert "SCHEDULER_FAILED" not in [item.code for item in outcome.reports], text
    assert outcome.data is not None or outcome.is_refused


@settings(_relaxed, max_examples=examples(200))
@given(seed=st.integers(0, 2**32))
def test_what_is_left_of_a_document_can_be_written_and_read(seed: int) -> None:
    held = read_cib(rearranged(seed), "cib.xml").cib.configuration
    again = read_cib(write_configuration(held), "again").cib.configuration
    assert set(again.resources) == set(held.resources)
    assert set(again.constraints) == set(held.constraints)


@settings(_relaxed, max_examples=examples(200))
@given(seed=st.integers(0, 2**32), mode=st.sampled_from(["update", "replace"]))
def test_a_damaged_document_is_taken_over_whole_or_not_at_all(seed: int, mode: str) -> None:
    cluster = running()
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    outcome = registry.run("configure.load", {"text": rearranged(seed), "source": "cib.xml", "mode": mode}, context)
    assert not outcome.commands or not has_errors(outcome.reports)
    for command in outcome.commands:
        cluster.do(command)
