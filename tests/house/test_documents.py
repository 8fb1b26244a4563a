"""The documents tell the truth: what they name exists, and what is made from the program is current."""

import re
import runpy
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from haclusterd.cli.command_table import LEVELS, ROOT
from haclusterd.cli.options import parse_globals
from haclusterd.cli.parsing import UsageError, parse
from haclusterd.commands import registry
from haclusterd.formats.crm.parser import KEYWORDS
from haclusterd.formats.crm.syntax import parse_script
from haclusterd.model.operations import OPERATION_ATTRIBUTES
from haclusterd.model.properties import CLUSTER_PROPERTIES, META_ATTRIBUTES
from haclusterd.reports.codes import CODES, Severity
from tests.documents import CHECKOUT, named, typed_lines

DOCUMENTS = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
SHOWING = [*DOCUMENTS, *sorted(CHECKOUT.glob("*_agents/*.md"))]
"""Pages that show what can be typed."""
GRAMMAR = "docs/design/cli.md"
ROOMS = ("alert_agents", "ansible", "haclusterd", "resource_agents", "packages", "policies", "systemd", "tests", "docs")


def prose(path: Path) -> str:
    return re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose(path))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_every_page_is_linked_from_another_one() -> None:
    linked = set()
    for path in SHOWING:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose(path)):
            target = (path.parent / link).resolve()
            linked |= {target} if target != path else set()
    assert [named(path) for path in SHOWING if path not in linked] == ["README.md"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_files_that_are_named_exist(path: Path) -> None:
    quoted = re.findall(rf"`((?:{'|'.join(ROOMS)})/[\w./-]+)`", prose(path))
    concrete = [name for name in quoted if not re.search(r"NAME|_N\b|NNNN", name)]
    assert [name for name in concrete if not (CHECKOUT / name).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_modules_that_are_named_by_their_room_exist(path: Path) -> None:
    """A page may leave out the package's name, the directory that it speaks of, or its own."""
    roots = (CHECKOUT, CHECKOUT / "haclusterd", CHECKOUT / "haclusterd" / "scheduler", path.parent)
    quoted = re.findall(r"`([\w./-]+/[\w-]+\.py)`", prose(path))
    lost = [name for name in quoted if not any((root / name).exists() for root in roots)]
    assert [name for name in lost if not list((CHECKOUT / "haclusterd").glob(f"*/{name}"))] == []


def test_functions_that_a_walk_names_stand_in_the_files_that_it_names_beside_them() -> None:
    page = (CHECKOUT / "docs" / "ARCHITECTURE.md").read_text()
    steps = [step for step in re.findall(r"^\d+\. .*(?:\n +.*)*", page, flags=re.MULTILINE) if ".py`" in step]
    assert len(steps) > 20
    lost = []
    for step in steps:
        files = re.findall(r"`([\w./]+\.py)`", step)
        found = [path for name in files for path in (CHECKOUT / "haclusterd").rglob(name) if path.is_file()]
        text = "\n".join(path.read_text() for path in found)
        lost += [name for name in files if not any(str(path).endswith(f"/{name}") for path in found)]
        lost += [name for name in re.findall(r"`(\w+)(?:\([^`]*\))?`", step) if not re.search(rf"\b{name}\b", text)]
    assert lost == []


def test_the_rooms_of_each_storey_are_those_of_the_page() -> None:
    page = (CHECKOUT / "docs" / "ARCHITECTURE.md").read_text()
    table = page.partition("| storey | rooms, the upper first |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)/` \| ([^|]+) \|", table, flags=re.MULTILINE)
    named_there = {storey: set(re.findall(r"`(\w+)/`", rooms)) for storey, rooms in rows}
    package = CHECKOUT / "haclusterd"
    found: dict[str, set[str]] = {}
    for place in package.glob("*/*/__init__.py"):
        found.setdefault(place.parent.parent.name, set()).add(place.parent.name)
    assert named_there == found


def test_every_target_of_make_is_explained() -> None:
    makefile = (CHECKOUT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):.*##", makefile, flags=re.MULTILINE)) - {"help", "static"}
    assert targets <= set(re.search(r"^\.PHONY: (.*)", makefile, flags=re.MULTILINE)[1].split())
    page = (CHECKOUT / "docs" / "HACKING.md").read_text()
    assert {each for each in targets if not re.search(rf"\bmake {each}\b", page)} == set()


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_targets_of_make_that_are_named_exist(path: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (CHECKOUT / "Makefile").read_text(), flags=re.MULTILINE))
    used = re.findall(r"(?:`|^\s+)make ([a-z-]+)\b", path.read_text(), flags=re.MULTILINE)
    assert set(used) <= targets


def test_every_howto_is_listed() -> None:
    text = (CHECKOUT / "docs" / "HACKING.md").read_text()
    assert [path.name for path in (CHECKOUT / "docs" / "howto").glob("*.md") if path.name not in text] == []


@pytest.mark.parametrize(
    "program", ["docs/reference/render.py", "docs/reference/render_man.py", "docs/design/render_rules.py"]
)
def test_pages_made_from_the_program_are_current(program: str) -> None:
    pages = runpy.run_path(str(CHECKOUT / program))["PAGES"]
    places = {name: (CHECKOUT / program).parent / name for name in pages}
    stale = [name for name, page in pages.items() if not places[name].exists() or places[name].read_text() != page()]
    assert stale == [], "make reference"
    rooms = {place.parent for name, place in places.items() if name.startswith("man/")}
    assert {each for room in rooms for each in room.iterdir()} <= set(places.values()), "of what there is no longer"


@pytest.mark.parametrize("page", sorted((CHECKOUT / "docs/reference/man").iterdir()), ids=lambda page: page.name)
def test_the_formatter_of_manual_pages_objects_to_nothing(page: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    command = ["groff", "-man", "-ww", "-rCHECKSTYLE=3", "-Tutf8", "-z", page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_command_and_program_has_its_manual_page() -> None:
    room = CHECKOUT / "docs/reference/man"
    programs = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["scripts"]
    assert [name for name in programs if not (room / f"{name}.8").is_file()] == []
    missing = []
    for level in (ROOT, *LEVELS):
        text = (room / ("-".join(each for each in ("crm", level.name) if each) + ".8")).read_text()
        missing += [each.name for each in level.commands if f"\n.SS {each.name}\n".replace("-", "\\-") not in text]
    assert missing == []
    assert [level.name for level in LEVELS if f".BR crm\\-{level.name} (8)\n" not in (room / "crm.8").read_text()] == []


def glossary() -> list[tuple[str, str, str]]:
    text = (CHECKOUT / "docs" / "GLOSSARY.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| `([\w/.]+)` (\w+) \|$", text, flags=re.MULTILINE)
    assert len(rows) > 40
    return rows


def test_words_of_the_glossary_stand_where_it_says() -> None:
    missing = []
    for word, file, name in glossary():
        path = CHECKOUT / "haclusterd" / file
        if not path.is_file() or not re.search(rf"\b{name}\b", path.read_text()):
            missing.append((word, file, name))
    assert missing == []


def test_the_glossary_is_in_order() -> None:
    words = [word.lower() for word, _, _ in glossary()]
    assert words == sorted(set(words))


def test_every_section_that_the_program_cites_exists() -> None:
    cited = set()
    for path in (CHECKOUT / "haclusterd").rglob("*.py"):
        cited |= set(re.findall(r"(?:docs/design/)?([\w-]+\.md) §(\d+)", path.read_text()))
    places = {document.name: document.read_text() for document in (CHECKOUT / "docs").rglob("*.md")}
    lost = [
        f"{name} §{section}"
        for name, section in sorted(cited)
        if not re.search(rf"^#+ {section}\b", places.get(name, ""), re.MULTILINE)
    ]
    assert lost == []


def test_what_the_tour_types_can_be_typed() -> None:
    text = (CHECKOUT / "docs" / "tour.md").read_text()
    typed = re.findall(r"^n\d# crm (.*)$", text, flags=re.MULTILINE)
    assert len(typed) > 25
    for line in typed:
        options = parse_globals(shlex.split(line))
        assert options.wants_version or parse(options.words)


def statements(text: str) -> list[str]:
    """Return what a page shows of the configuration language: alone in a block, or behind `crm configure`."""
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    found = [block for block in blocks if block.split(maxsplit=1)[:1] and block.split(maxsplit=1)[0] in KEYWORDS]
    behind = (line.removeprefix("crm configure ") for line in typed_lines(text) if line.startswith("crm configure "))
    found += [line.partition(" --")[0] for line in behind if line.partition(" ")[0] in KEYWORDS - {"xml", "schema"}]
    return [each for each in found if "..." not in each and "…" not in each]


@pytest.mark.parametrize("path", [each for each in SHOWING if named(each) != GRAMMAR], ids=named)
def test_statements_that_a_page_shows_are_of_the_language(path: Path) -> None:
    reports = [report for each in statements(path.read_text()) for report in parse_script(each, each).reports]
    assert [report.message for report in reports if report.severity is Severity.ERROR] == []


@pytest.mark.parametrize("path", SHOWING, ids=named)
def test_commands_that_a_page_shows_can_be_typed(path: Path) -> None:
    wrong = []
    for line in typed_lines(path.read_text()):
        command = re.split(r"\s(?:#|[|<>]|&&|\$\()\s?|; ", line)[0]
        try:
            words = parse_globals(shlex.split(command)[1:]).words
            if words and "..." not in command and "…" not in command:
                parse(words)
        except UsageError as error:
            # A sentence names a command without its words.
            if not error.problem.endswith(" is missing"):
                wrong.append(f"{line}: {error}")
    assert wrong == []


NOT_USED = {
    "told": "shown, reported, sent, notified, answered",
    "anew": "again",
    "whoever": "who, or the thing's name",
    "heir": "transfer target, requested leader",
    "elsewhere": "on another node, in another place",
    "foresee": "speculate, prefetch",
    "mend": "repair",
    "patient": "in the background, may retry",
    "careless": "faulty, by its fault profile",
    "fate": "run, outcome",
    "story": "scenario, what was recorded",
    "blow": "interruption, fault",
    "struck": "interrupted, hit",
    "deed": "action, call, task",
}
"""Words of the project's own that a reader stumbles over, with what to write (GLOSSARY.md, "Words not to use")."""
MADE_OF_CODE = {"docs/design/0004-rules-and-scenarios.md"}


def outside_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


QUOTED = ("possibly-active-elsewhere", "been already granted elsewhere")
"""Of stored values, and of Pacemaker's own messages: they stay as they are."""


def test_the_program_is_in_plain_words() -> None:
    found = []
    words = re.compile(rf"(?<![a-z])({'|'.join(NOT_USED)})(?![a-z])", re.IGNORECASE)
    for path in sorted([*(CHECKOUT / "haclusterd").rglob("*.py"), *(CHECKOUT / "tests").rglob("*.py")]):
        if path == Path(__file__):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if words.search(line) and not any(each in line for each in QUOTED):
                found.append(f"{named(path)}:{number}: {line.strip()}")
    assert found == []


@pytest.mark.parametrize("path", [each for each in DOCUMENTS if named(each) not in MADE_OF_CODE], ids=named)
def test_pages_are_in_plain_words(path: Path) -> None:
    text = outside_code(path.read_text().partition("## Words not to use")[0])
    found = set(re.findall(rf"\b({'|'.join(NOT_USED)})\b", text, re.IGNORECASE))
    assert {word: NOT_USED[word.lower()] for word in found} == {}


def test_what_people_are_shown_is_in_plain_words() -> None:
    shown = [text for row in CODES.values() for text in (row.template, row.remedy)]
    shown += [command.help for level in (ROOT, *LEVELS) for command in level.commands]
    shown += [verb.help for verb in registry.VERBS.values()]
    shown += [row.doc for row in (*CLUSTER_PROPERTIES, *META_ATTRIBUTES, *OPERATION_ATTRIBUTES)]
    wrong = [text for text in shown if re.search(rf"\b({'|'.join(NOT_USED)})\b", text, re.IGNORECASE)]
    assert wrong == []


def test_the_glossary_lists_the_words_not_to_use() -> None:
    section = (CHECKOUT / "docs" / "GLOSSARY.md").read_text().partition("## Words not to use")[2]
    assert set(re.findall(r"^\| ([a-z]+) \|", section, re.MULTILINE)) - {"word"} == set(NOT_USED)
