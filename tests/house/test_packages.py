"""The packages: every file in its place, nothing started by them, and a program that is switched whole."""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from haclusterd.cli.command_table import LEVELS
from packages import build, tree

CHECKOUT = Path(__file__).parents[2]
PROGRAMS = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["scripts"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the tree of files, without the libraries, which would be fetched."""
    place = tmp_path_factory.mktemp("packages")
    tree.install(place / "program", has_libraries=False)
    tree.make(place / "tree", release="1", program=place / "program")
    return place / "tree"


def page(root: Path, name: str) -> str:
    return gzip.decompress((root / "usr/share/man" / f"man{name[-1]}" / f"{name}.gz").read_bytes()).decode()


def test_every_unit_and_what_belongs_to_it_is_installed(made: Path) -> None:
    for unit in (CHECKOUT / "systemd").iterdir():
        kind = unit.suffix[1:]
        place = "systemd/system" if kind in ("service", "target") else f"{kind}.d"
        name = unit.name if kind in ("service", "target") else "haclusterd.conf"
        assert (made / "usr/lib" / place / name).read_text() == unit.read_text()


def test_every_program_is_on_the_path_and_has_its_page(made: Path) -> None:
    assert set(PROGRAMS) == set(tree.PROGRAMS)
    for name, place in tree.PROGRAMS.items():
        link = made / place / name
        assert str(link.readlink()) == f"../lib/haclusterd/current/bin/{name}"
        assert os.access(made / tree.TOP / "package/bin" / name, os.X_OK)
        text = page(made, f"{name}.8")
        titles = ("NAME", "SYNOPSIS", "OPTIONS") if name == "crm" else ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS")
        assert [title for title in titles if f"\n.SH {title}\n" not in text] == []


def test_every_level_of_crm_has_its_page(made: Path) -> None:
    for level in LEVELS:
        assert f"\n.B crm {level.name}\n" in page(made, f"crm-{level.name}.8")
    inside = made / tree.TOP / "package/share/man"
    written = {each.name for each in (CHECKOUT / "docs/reference/man").iterdir()}
    assert {each.name for each in inside.glob("man[78]/*")} == written
    assert {each.stem for each in (made / "usr/share/man").glob("man[78]/*.gz")} == written


def test_every_agent_is_where_managers_look_for_it_and_has_its_page(made: Path) -> None:
    names = {each.name for each in (CHECKOUT / "resource_agents").iterdir() if not each.suffix} - {"fence_local"}
    assert {each.name for each in (made / tree.AGENTS).iterdir()} == names
    for name in names:
        link = str((made / tree.AGENTS / name).readlink())
        inside = os.path.normpath(f"/{tree.AGENTS}/{link}").removeprefix("/usr/lib/haclusterd/current/")
        assert os.access(made / tree.TOP / "package" / inside, os.X_OK)
        assert "\nOperations\\(aq defaults" in page(made, f"ocf_haclusterd_{name}.7")


def test_completions_policies_tools_and_documents_are_there(made: Path) -> None:
    assert "complete -F _crm crm" in (made / "usr/share/bash-completion/completions/crm").read_text()
    assert "complete -c crm" in (made / "usr/share/fish/vendor_completions.d/crm.fish").read_text()
    for room in ("vendor-completions", "site-functions"):
        assert (made / "usr/share/zsh" / room / "_crm").read_text().startswith("#compdef crm\n")
    share = made / tree.TOP / "package/share/haclusterd"
    for room in ("policies", "shims", "monitoring", "systemd"):
        assert {each.name for each in (share / room).iterdir()} == {each.name for each in (CHECKOUT / room).iterdir()}
    for name in ("copyright", "changelog.Debian.gz", "README.md", "docs/howto/upgrade.md"):
        assert (made / "usr/share/doc/haclusterd" / name).is_file()


def test_files_are_readable_by_all_and_written_by_root_alone(made: Path) -> None:
    wrong = [str(each) for each in made.rglob("*") if not each.is_symlink() and each.stat().st_mode & 0o777 not in
             ((0o755,) if each.is_dir() else (0o644, 0o755))]  # fmt: skip
    assert wrong == []


def test_the_installed_program_says_that_it_is_whole(made: Path) -> None:
    program = f"""
import sys
sys.path.insert(0, {str(tree.site(made / tree.TOP / "package"))!r})
from haclusterd.entry_points import self_check
print(self_check.__file__, *self_check._files(), sep="\\n")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd="/", check=True)
    where, *problems = done.stdout.splitlines()
    assert where.startswith(str(made))
    assert problems == []


def test_a_deb_has_the_tree_and_keeps_configuration(made: Path, tmp_path: Path) -> None:
    if shutil.which("dpkg-deb") is None:
        pytest.skip("dpkg-deb is not installed")
    package = build.make_deb(made, tmp_path / "deb", tmp_path, "1", compression="none")
    listed = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True).stdout
    names = {line.split(" ./", 1)[1].partition(" -> ")[0].rstrip("/") for line in listed.splitlines() if " ./" in line}
    assert {str(each.relative_to(made)) for each in made.rglob("*")} <= names
    assert {line.split()[1] for line in listed.splitlines()} == {"root/root"}
    conffiles = subprocess.run(["dpkg-deb", "-I", package, "conffiles"], capture_output=True, text=True, check=True)
    assert conffiles.stdout.split() == ["/etc/needrestart/conf.d/haclusterd.conf"]
    assert [name for name in names if name.startswith("etc/") and "needrestart" not in name] == []


def test_an_rpm_has_the_tree(made: Path, tmp_path: Path) -> None:
    if shutil.which("rpmbuild") is None:
        pytest.skip("rpmbuild is not installed")
    package = build.make_rpm(made, tmp_path / "rpm", tmp_path, "1")
    asked = subprocess.run(["rpm", "-qpl", package], capture_output=True, text=True, check=True).stdout
    names = {line.lstrip("/") for line in asked.splitlines()}
    assert {str(each.relative_to(made)) for each in made.rglob("*") if not each.is_dir() or each.is_symlink()} <= names
    shared = {"usr/bin", "usr/lib", "usr/sbin", "usr/share", "usr/lib/systemd/system", "usr/share/man/man8", "etc"}
    assert shared & names == set()


@pytest.mark.parametrize("name", ["postinst", "prerm", "postrm", "config"])
def test_scripts_of_the_deb_are_shell(name: str) -> None:
    subprocess.run(["sh", "-n", tree.HERE / "deb" / name], check=True)


def test_nothing_in_the_packages_enables_starts_or_restarts_the_daemons() -> None:
    scripts = [*(tree.HERE / "deb").iterdir(), *(tree.HERE / "scripts").iterdir(), *(tree.HERE / "rpm").iterdir()]
    asked = [words for each in scripts for words in re.findall(r"systemctl ([^&|;>\n]*)", each.read_text())]
    assert {words.split()[0] for words in asked} <= {
        "-q", "daemon-reload", "reload", "try-restart", "stop", "disable",
    }  # fmt: skip
    assert [words for words in asked if "try-restart" in words] == ["try-restart haclusterd-api"]


def test_libraries_come_from_the_lock_with_their_hashes() -> None:
    text = tree.locked((CHECKOUT / "requirements.lock").read_text(), set(tree.needed()))
    blocks = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert {block.partition("==")[0] for block in blocks} >= {"pysyncobj", "aiohttp", "yarl", "cffi", "dbus-fast"}
    assert [block for block in blocks if "--hash=sha256:" not in block] == []
    assert not {"pytest", "mypy", "ruff", "setuptools"} & set(tree.needed())
    with pytest.raises(SystemExit, match=r"not in requirements\.lock: no-such"):
        tree.locked(text, {"no-such"})


def test_the_oldest_c_library_is_the_newest_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "one.so").write_bytes(b"\0GLIBC_2.4\0GLIBC_2.28\0")
    (tmp_path / "other.so").write_bytes(b"\0GLIBC_2.17\0")
    assert build.glibc(tmp_path) == "2.28"


def test_without_a_tool_nothing_is_made(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "packages.build", "--output", str(tmp_path / "dist")], cwd=CHECKOUT, capture_output=True,
        text=True, check=False, env={**os.environ, "PATH": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stdout.startswith("RESULT skipped=1 reason=missing:")) == (77, True)
    assert not (tmp_path / "dist").exists()


# -- the switch from one version to another -------------------------------------------------------------------------


def brought(root: Path, name: str, text: str) -> None:
    """Stand for what dpkg does: each file of the package's copy is written beside the old one and renamed."""
    for file, content in (("BUILD", f"{name}\n"), ("lib/module.py", text)):
        place = root / tree.TOP / "package" / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.with_suffix(".new").write_text(content)
        place.with_suffix(".new").rename(place)


def activate(root: Path) -> None:
    subprocess.run(["sh", tree.HERE / "scripts" / "activate", root], check=True)


def versions(root: Path) -> set[str]:
    return {each.name for each in (root / tree.TOP / "versions").iterdir()}


def test_a_version_stays_as_it_was_until_the_one_after_the_next_comes(tmp_path: Path) -> None:
    top = tmp_path / tree.TOP
    brought(tmp_path, "a", "first")
    activate(tmp_path)
    assert (str((top / "current").readlink()), (top / "current/lib/module.py").read_text()) == ("versions/a", "first")
    assert (top / "current/lib/module.py").samefile(top / "package/lib/module.py")
    brought(tmp_path, "b", "second")
    assert (top / "current/lib/module.py").read_text() == "first", "unpacked, and not configured yet"
    activate(tmp_path)
    assert (top / "current/lib/module.py").read_text() == "second"
    assert (top / "versions/a/lib/module.py").read_text() == "first", "programs that run import late"
    brought(tmp_path, "c", "third")
    activate(tmp_path)
    assert versions(tmp_path) == {"b", "c"}


def test_a_version_that_a_process_runs_is_not_removed(tmp_path: Path) -> None:
    brought(tmp_path, "a", "first")
    activate(tmp_path)
    place = tmp_path / tree.TOP / "versions" / "a"
    with subprocess.Popen(["sh", "-c", "read word", f"{place}/bin/python3"], stdin=subprocess.PIPE) as running:
        for name in ("b", "c"):
            brought(tmp_path, name, name)
            activate(tmp_path)
        assert versions(tmp_path) == {"a", "b", "c"}
        running.communicate(b"go\n")
    activate(tmp_path)
    assert "a" not in versions(tmp_path)


def test_what_a_power_cut_left_is_made_whole_and_what_was_damaged_is_repaired(tmp_path: Path) -> None:
    top = tmp_path / tree.TOP
    brought(tmp_path, "a", "first")
    (top / "versions/a.new/lib").mkdir(parents=True)
    (top / "current.new").symlink_to("versions/nothing")
    activate(tmp_path)
    (top / "current/lib/module.py").unlink()
    (top / "current/lib/module.py").write_text("damaged")
    activate(tmp_path)
    assert (top / "current/lib/module.py").read_text() == "first"
    assert versions(tmp_path) == {"a"}
    assert not (top / "current.new").exists()
