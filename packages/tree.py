"""The tree of files that both packages install, made below a directory without being root.

The program is `usr/lib/haclusterd/package`: a virtual environment of Debian's Python with the program and the libraries
that it is tested with, in the versions of requirements.lock. Everything else is what systems look for in their own
places, and leads to `usr/lib/haclusterd/current`, which `scripts/activate` keeps.
"""

import base64
import csv
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

from haclusterd.cli.completing.completion_scripts import SCRIPTS
from packages.man_pages import agents

CHECKOUT = Path(__file__).parents[1]
HERE = Path(__file__).parent
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
TOP = "usr/lib/haclusterd"
SHARE = "share/haclusterd"
PROGRAMS = {"crm": "usr/bin", "haclusterd": "usr/sbin", "haclusterd-pacer": "usr/sbin", "haclusterd-api": "usr/sbin"}
AGENTS = "usr/lib/ocf/resource.d/haclusterd"
COMPLETIONS = {
    "usr/share/bash-completion/completions/crm": "bash",
    "usr/share/fish/vendor_completions.d/crm.fish": "fish",
    "usr/share/zsh/vendor-completions/_crm": "zsh",
    "usr/share/zsh/site-functions/_crm": "zsh",
}
"""Where each shell looks; zsh in the first place on Debian, in the second on others."""
CONFIGURATION_FILES = ("etc/needrestart/conf.d/haclusterd.conf",)
DOCUMENTS = ("README.md", "docs/ARCHITECTURE.md", "docs/GLOSSARY.md", "docs/tour.md", "docs/howto/*.md",
             "docs/howto/pictures/*", "docs/reference/*.md", "docs/reference/agents/*.md", "docs/design/*.md",
             "docs/examples/*")  # fmt: skip


def make(root: Path, *, release: str, program: Path) -> str:
    """Make the whole tree below `root`, which must not exist, of an installed program; return the name of the build."""
    place = root / TOP / "package"
    shutil.copytree(program, place, symlinks=True)
    build = _finish(place, release)
    _scripts(root)
    _units(root)
    _links(root)
    _pages(root)
    _documents(root, place, release)
    _permissions(root)
    return build


def version() -> str:
    """Return the program's version."""
    return metadata.version("haclusterd")


def needed() -> dict[str, str]:
    """Return name and licence of each library that the program needs, also by way of others."""
    found: dict[str, str] = {}
    left = ["haclusterd"]
    while left:
        for line in metadata.requires(left.pop()) or ():
            name, _, condition = line.partition(";")
            name = re.split(r"[^\w.-]", name.strip())[0].lower().replace("_", "-")
            if "extra ==" not in condition and name not in found and _is_installed(name):
                described = metadata.metadata(name)
                found[name] = described.get("License-Expression") or described.get("License") or "see its files"
                left.append(name)
    return dict(sorted(found.items()))


def _is_installed(name: str) -> bool:
    """Tell whether it is here: a condition that does not hold for this Python keeps a library away."""
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def locked(text: str, names: set[str]) -> str:
    """Return the lines of a requirements file, with their hashes, that are about these libraries."""
    blocks = re.findall(r"^([\w.-]+)==.*?(?=^[\w.-]+==|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    whole = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)
    kept = [block for block in whole if block.partition("==")[0].lower().replace("_", "-") in names]
    missing = names - {name.lower().replace("_", "-") for name in blocks}
    if missing:
        raise SystemExit(f"not in requirements.lock: {', '.join(sorted(missing))}; make lock")
    return "".join(kept)


# -- the program ----------------------------------------------------------------------------------------------------


def install(program: Path, *, has_libraries: bool = True) -> None:
    """Put the program into a directory, which must not exist.

    `has_libraries`: without them nothing is fetched, and the program does not run.
    """
    _own(program)
    if has_libraries:
        work = program.parent / "wheels"
        for wheel in _libraries(work):
            _unpack(wheel, program)
        shutil.rmtree(work)
    for unused in ("test", "tests"):
        for each in site(program).glob(f"*/{unused}"):
            shutil.rmtree(each)
    for name, entry in entry_points(name="haclusterd").items():
        module, _, function = entry.partition(":")
        ending = f"if __name__ == '__main__':\n    sys.exit({function}())\n"
        text = f"#!\nimport sys\n\nfrom {module} import {function}\n\n{ending}"
        _write(program / "bin" / name, text.encode())
    (program / "bin" / "python3").symlink_to(f"/usr/bin/{PYTHON}")
    version_ = ".".join(map(str, sys.version_info[:2]))
    (program / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {version_}\n"
    )


def entry_points(name: str) -> dict[str, str]:
    """Return the programs of a distribution, by name: `module:function`."""
    found = metadata.distribution(name).entry_points.select(group="console_scripts")
    return {each.name: each.value for each in found}


def _own(program: Path) -> None:
    """Put the checkout's files where its wheel would put them, by what pyproject.toml says of packages and data."""
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["setuptools"]
    for package, patterns in settings["package-data"].items():
        for pattern in ("**/*.py", *patterns):
            for each in (CHECKOUT / package).glob(pattern):
                _copy(each, site(program) / each.relative_to(CHECKOUT))
    for place, patterns in settings["data-files"].items():
        for each in (found for pattern in patterns for found in CHECKOUT.glob(pattern) if found.is_file()):
            _copy(each, program / place / each.name)
            (program / place / each.name).chmod(each.stat().st_mode & 0o777)
    described = site(program) / f"haclusterd-{version()}.dist-info"
    for name in ("METADATA", "entry_points.txt", "licenses/LICENSE"):
        _write(described / name, str(metadata.distribution("haclusterd").read_text(name)).encode())
    _write(described / "RECORD", b"")


def _libraries(work: Path) -> list[Path]:
    work.mkdir()
    wanted, place = work / "requirements.txt", work / "libraries"
    wanted.write_text(locked((CHECKOUT / "requirements.lock").read_text(), set(needed())))
    _run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel", "--no-deps",
         "--require-hashes", "--prefer-binary", "--wheel-dir", str(place), "-r", str(wanted))  # fmt: skip
    return sorted(place.glob("*.whl"))


def _unpack(wheel: Path, program: Path) -> None:
    """Put the files of a wheel into their places, by the wheel's format; libraries' own programs are left out."""
    with zipfile.ZipFile(wheel) as packed:
        for entry in packed.infolist():
            room, data, name = entry.filename.partition(".data/")
            kind, _, rest = name.partition("/")
            if entry.is_dir() or (data and kind not in ("data", "purelib", "platlib")):
                continue
            place = program / rest if kind == "data" else site(program) / (rest if data else room)
            _write(place, packed.read(entry))
            if entry.external_attr >> 16 & 0o111:
                place.chmod(0o755)


def site(program: Path) -> Path:
    """Return where the libraries of a program are."""
    return program / "lib" / PYTHON / "site-packages"


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:3])}: {done.stderr.strip()[-2000:]}")


def _finish(program: Path, release: str) -> str:
    """Name the build by its content, and let its scripts and records say where it will be."""
    digest = hashlib.sha256()
    for each in sorted(program.rglob("*")):
        if each.is_file() and not each.is_symlink() and each.name != "RECORD" and each.parent.name != "bin":
            digest.update(str(each.relative_to(program)).encode() + b"\0" + hashlib.sha256(each.read_bytes()).digest())
    build = f"{version()}-{release}-{digest.hexdigest()[:12]}"
    interpreter = f"/{TOP}/versions/{build}/bin/python3"
    for name in PROGRAMS:
        script = program / "bin" / name
        script.write_text(f"#!{interpreter}\n{script.read_text().partition(chr(10))[2]}")
        script.chmod(0o755)
    for record in site(program).glob("*.dist-info/RECORD"):
        _record_again(record)
    (program / "BUILD").write_text(f"{build}\n")
    return build


def _record_again(record: Path) -> None:
    """Write an installation's record of what is there: `haclusterd --check` compares the two."""
    top, program = record.parent.parent, record.parents[4]
    if record.parent.name.startswith("haclusterd-"):
        rooms = (program / "bin", program / "share", top / "haclusterd", record.parent)
        files = [each for room in rooms for each in room.rglob("*") if each.is_file()]
    else:
        listed = [top / row[0] for row in csv.reader(record.read_text().splitlines())]
        files = [each for each in listed if each.is_file()]
    kept = io.StringIO()
    writer = csv.writer(kept, lineterminator="\n")
    for each in sorted(files):
        place = os.path.relpath(each, top)
        if each == record or each.is_symlink():
            writer.writerow((place, "", ""))
            continue
        content = each.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        writer.writerow((place, f"sha256={digest}", len(content)))
    record.write_text(kept.getvalue())


# -- what systems look for in their own places ----------------------------------------------------------------------


def _scripts(root: Path) -> None:
    for name in ("activate", "leave"):
        shutil.copy(HERE / "scripts" / name, root / TOP / name)
    for name in CONFIGURATION_FILES:
        (root / name).parent.mkdir(parents=True)
    shutil.copy(HERE / "files" / "needrestart.conf", root / CONFIGURATION_FILES[0])


def _units(root: Path) -> None:
    places = {"*.service": "systemd/system", "*.target": "systemd/system"}
    for pattern, place in places.items():
        for unit in (CHECKOUT / "systemd").glob(pattern):
            _copy(unit, root / "usr/lib" / place / unit.name)
    for kind in ("sysusers", "tmpfiles"):
        _copy(CHECKOUT / "systemd" / f"haclusterd.{kind}", root / f"usr/lib/{kind}.d/haclusterd.conf")


def _links(root: Path) -> None:
    for name, place in PROGRAMS.items():
        _link(root / place / name, f"../lib/haclusterd/current/bin/{name}")
    for agent in agents():
        _link(root / AGENTS / agent.name, f"../../../haclusterd/current/{SHARE}/resource_agents/{agent.name}")
    _link(root / "usr" / SHARE, f"../lib/haclusterd/current/{SHARE}")


def _pages(root: Path) -> None:
    for page in (CHECKOUT / "docs/reference/man").iterdir():
        place = root / "usr/share/man" / f"man{page.suffix[1:]}" / f"{page.name}.gz"
        _write(place, gzip.compress(page.read_bytes(), mtime=0))
    for place, shell in COMPLETIONS.items():
        _write(root / place, SCRIPTS[shell].encode())


def _documents(root: Path, program: Path, release: str) -> None:
    place = root / "usr/share/doc/haclusterd"
    for pattern in DOCUMENTS:
        for each in CHECKOUT.glob(pattern):
            if each.is_file():
                _copy(each, place / each.relative_to(CHECKOUT))
    _write(place / "copyright", _copyright(program).encode())
    change = (
        f"haclusterd ({deb_version(release)}) unstable; urgency=medium\n\n"
        f"  * Made from the sources of this version.\n\n -- {packager()}  {_date()}\n"
    )
    _write(place / "changelog.Debian.gz", gzip.compress(change.encode(), mtime=0))


def _copyright(program: Path) -> str:
    lines = [
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/",
        "Upstream-Name: haclusterd", "Source: the checkout that the package was made from", "",
        "Files: *", f"Copyright: {_date().split()[3]} the authors of haclusterd", "License: Apache-2.0", "",
        "License: Apache-2.0", " On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.", "",
        "Comment:", f" Libraries below /{TOP}/package/lib keep their licences, in full, beside them:",
    ]  # fmt: skip
    for name, licence in needed().items():
        if list(site(program).glob(f"{name.replace('-', '_')}-*")):
            lines.append(f" {name} {metadata.version(name)}: {licence.splitlines()[0]}")
    return "\n".join(lines) + "\n"


def deb_version(release: str) -> str:
    """Return the version of the package, below that of the program's final release where this one is not final."""
    upstream = re.sub(r"(?<=[0-9])[.]?(dev|a|b|rc)", r"~\1", version())
    return f"{upstream}-{release}"


def packager() -> str:
    """Return who makes the package, from PACKAGER."""
    return os.environ.get("PACKAGER", "haclusterd maintainers <maintainers@haclusterd.invalid>")


def moment() -> int:
    """Return the time of the sources in seconds: what is made twice from one checkout is equal."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    asked = subprocess.run(["git", "-C", CHECKOUT, "log", "-1", "--format=%ct"], check=False, capture_output=True)
    return int(asked.stdout) if asked.returncode == 0 else int((CHECKOUT / "pyproject.toml").stat().st_mtime)


def _date() -> str:
    asked = subprocess.run(["date", "-R", "-u", "-d", f"@{moment()}"], check=True, capture_output=True, text=True)
    return asked.stdout.strip()


def _permissions(root: Path) -> None:
    """Everything may be read by all, written by root alone, and is as old as the sources."""
    for each in [root, *root.rglob("*")]:
        if each.is_symlink():
            os.utime(each, (moment(), moment()), follow_symlinks=False)
            continue
        is_program = each.is_dir() or each.read_bytes()[:2] == b"#!" or each.parent.name == "scripts"
        each.chmod(0o755 if is_program else 0o644)
        os.utime(each, (moment(), moment()))


def _copy(source: Path, target: Path) -> None:
    _write(target, source.read_bytes())


def _write(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def _link(place: Path, target: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)
