"""Text is escaped as the standard library does it."""

from xml.sax.saxutils import escape as expected

from haclusterd.wire.xml_text import escape


def test_markup_and_other_characters_become_entities() -> None:
    others = {'"': "&quot;", "\n": "&#10;"}
    text = "a < b && c > \"d\"\n&lt;"
    assert escape(text, others) == expected(text, others)
    assert escape(text, {}) == expected(text)
