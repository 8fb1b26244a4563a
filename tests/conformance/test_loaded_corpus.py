"""Other people's configurations come in: a sample of those beside this repository, with nothing dropped silently."""

import pytest

from haclusterd.formats.crm.syntax import Arrangement, show
from tests.conformance.loaded_corpus import Document, absence, documents, load, refused_by_name
from tests.conformance.round_trips import random_documents, travel

SAMPLE = 24
"""Every so manieth of the documents is loaded here; `make load-corpus` and `make round-trips` take all."""

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


def travellers() -> list[Document]:
    return [] if absence() else [*sample(), *list(random_documents())[:: SAMPLE * 4]]


@pytest.mark.parametrize("document", travellers(), ids=lambda document: document.name)
def test_crm_text_xml_and_yaml_say_the_same(document: Document) -> None:
    assert travel(document).faults == ()
