"""Other people's configurations come in: a sample of those beside this repository, with nothing dropped silently."""

import pytest

from haclusterd.formats.cib_xml import read_configuration, write_configuration
from haclusterd.formats.crm_syntax import Arrangement, assemble, parse_script, show
from haclusterd.formats.policy_yaml import dump_policy, load_policy
from haclusterd.reports.items import has_errors
from tests.conformance.loaded_corpus import Document, absence, documents, load, refused_by_name

SAMPLE = 24
"""Every so manieth of the documents is loaded here; `make load-corpus` loads all."""

pytestmark = pytest.mark.skipif(bool(absence()), reason=absence())


def sample() -> list[Document]:
    return [] if absence() else list(documents())[::SAMPLE]


@pytest.mark.parametrize("document", sample(), ids=lambda document: document.name)
def test_a_document_comes_in_or_is_refused_for_what_is_not_built(document: Document) -> None:
    found = load(document)
    assert found.silent == ()
    if found.configuration is None:
        assert all(refused_by_name(each) for each in found.refusals), found.refusals
        return
    text = show(found.configuration, arrangement=Arrangement.DOCUMENT)
    again = load(Document(document.name, text, "crm"))
    assert again.refusals == ()
    assert again.configuration == found.configuration
    # crm text, XML, YAML and crm text again: always the same.
    xml = read_configuration(write_configuration(found.configuration), "written.xml")
    assert not has_errors(xml.reports)
    yaml = load_policy(dump_policy(xml.configuration), "written.yaml").configuration
    assert yaml is not None
    last = assemble(parse_script(show(yaml, arrangement=Arrangement.DOCUMENT), "text").statements).configuration
    assert write_configuration(last) == write_configuration(found.configuration)
