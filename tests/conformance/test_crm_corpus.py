"""What crm scripts mean is what real crmsh made of them: the corpus beside this repository, with its oracle.

../shared/conformance/crm says where it comes from; without it nothing is tested.
"""

import argparse
import json
import shlex
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from haclusterd.commands.verify.configuration import verify
from haclusterd.formats.cib_xml.document import write_configuration
from haclusterd.formats.crm.syntax import Arrangement, Assembly, assemble, parse_script, show
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, has_errors
from haclusterd.reports.rendering import render
from tests.foreign_files import File
from tests.outside_modules import load

CORPUS = Path(__file__).parents[3] / "shared" / "conformance" / "crm"
OPTIONS = argparse.Namespace(strict=False, strict_order=False)

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"{CORPUS} is not there")


def oracle() -> ModuleType:
    return load(CORPUS / "crm_oracle.py")


def scripts(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (CORPUS / folder).glob("*.crm") if path.stem != "base")


def read(text: str) -> tuple[Assembly, tuple[ReportItem, ...]]:
    script = parse_script(text, "text")
    made = assemble(script.statements)
    return made, (*script.reports, *made.reports)


def differences(path: Path) -> list[str]:
    """Return what our reading of a script and crmsh's differ in."""
    judge, crm = oracle(), path.read_text()
    made, reports = read(crm)
    if has_errors(reports):
        return [render(item) for item in reports]
    wanted = judge.facts(path.with_suffix(".xml").read_text(), crm, OPTIONS)
    ours = judge.facts(write_configuration(made.configuration), crm, OPTIONS)
    return [judge.fmt(each) for each in judge.diff(wanted, ours)]


@pytest.mark.parametrize("path", scripts("public", "desired"), ids=lambda path: path.stem)
def test_a_script_means_what_crmsh_makes_of_it(path: Path) -> None:
    assert differences(path) == []


@pytest.mark.parametrize("path", scripts("public", "desired"), ids=lambda path: path.stem)
def test_what_is_shown_of_a_script_reads_back(path: Path) -> None:
    made, reports = read(path.read_text())
    assert not has_errors(reports)
    for arrangement in Arrangement:
        again, objections = read(show(made.configuration, arrangement=arrangement))
        assert [each for each in objections if each.code is not Code.LEFT_OUT] == []
        assert again.configuration == made.configuration
        texts = [write_configuration(each.configuration) for each in (made, again)]
        first, second = (oracle().facts(text, None, OPTIONS) for text in texts)
        assert first == second, "what refers and what is referred to have changed places"


@pytest.mark.parametrize("path", scripts("reject-public"), ids=lambda path: path.stem)
def test_a_script_that_crmsh_refuses_is_refused(path: Path) -> None:
    made, reports = read(path.read_text())
    judged = () if has_errors(reports) else verify(made.configuration, members={}, agents=None, places=made.places)
    assert has_errors((*reports, *judged))


EDITS = CORPUS / "edits-public"
EDITED_OTHERWISE = {"e16-default-timeouts": "what agents advise is asked of the agents of this machine"}


@pytest.mark.parametrize("path", sorted(EDITS.glob("*.cmds")), ids=lambda path: path.stem)
def test_commands_make_of_a_file_what_crmsh_makes_of_it(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path.stem in EDITED_OTHERWISE:
        pytest.skip(EDITED_OTHERWISE[path.stem])
    for name in ("SNIP", "XSNIP"):
        shutil.copy(EDITS / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    file = File(tmp_path / "cib.xml", (EDITS / "base.xml").read_text())
    status = [file.type("--force", *shlex.split(line), compat="crmsh") for line in path.read_text().splitlines()]
    expected = json.loads((EDITS / "index.json").read_text())[path.stem]["rcs"]
    assert bool(status[-1]) is bool(expected[-1]), file.printed
    judge = oracle()
    wanted = judge.facts(path.with_suffix(".xml").read_text(), None, OPTIONS)
    ours = judge.facts(file.path.read_text(), None, OPTIONS)
    assert [judge.fmt(each) for each in judge.diff(wanted, ours)] == []


@pytest.mark.parametrize("path", scripts("public")[::7], ids=lambda path: path.stem)
def test_a_script_is_loaded_into_a_file(path: Path, tmp_path: Path) -> None:
    file = File(tmp_path / "cib.xml", oracle().EMPTY)
    assert file.type("--force", "configure", "load", "update", str(path), compat="crmsh") == 0, file.printed
    judge = oracle()
    wanted = judge.facts(path.with_suffix(".xml").read_text(), path.read_text(), OPTIONS)
    ours = judge.facts(file.path.read_text(), path.read_text(), OPTIONS)
    assert [judge.fmt(each) for each in judge.diff(wanted, ours)] == []
