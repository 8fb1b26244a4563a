"""What the page's files may contain: no markup from texts, nothing of another host."""

import re
from pathlib import Path

import pytest

from haclusterd.api import pages
from haclusterd.api.routes import PREFIX, routes

FILES = sorted((Path(pages.__file__).parent / pages.FOLDER).iterdir())
SINKS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser|javascript:|"
    r"localStorage|sessionStorage|document\.cookie"
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_makes_no_markup_of_texts_and_names_no_other_host(file: Path) -> None:
    text = file.read_text()
    assert not SINKS.findall(text)
    assert set(re.findall(r"https?://[^\"'\s]+", text)) <= {"http://www.w3.org/2000/svg"}
    if file.suffix == ".html":
        assert not re.findall(r"\son\w+=|<style|\sstyle=|<script(?![^>]*\ssrc=)", text)


def test_every_module_that_is_imported_is_served() -> None:
    served = pages.load()
    imported = {name for file in FILES for name in re.findall(r'from "\./([\w.]+)"', file.read_text())}
    assert len(imported) > 5
    assert {f"/page/{name}" for name in imported} <= set(served)


def test_every_id_that_a_module_looks_for_is_in_the_page() -> None:
    ids = set(re.findall(r'\sid="([\w-]+)"', (FILES[0].parent / "index.html").read_text()))
    wanted = {name for file in FILES for name in re.findall(r'byId\("([\w-]+)"\)', file.read_text())}
    assert len(wanted) > 10
    assert wanted <= ids


def test_what_is_asked_for_is_a_verb_with_these_arguments() -> None:
    known = {route.path: {each.name for each in route.verb.arguments} for route in routes()}
    text = "\n".join(file.read_text() for file in FILES if file.suffix == ".js")
    asked = re.findall(r'"(/[a-z_]+/[a-z_]+)"(?:, (?:body: )?\{([^{}]*)\})?', text)
    assert len(asked) > 10
    for path, body in asked:
        given = {word.partition(":")[0].strip() for word in body.split(",")} - {""}
        assert given <= known[PREFIX + path], path
