"""`make packages`: a deb and an rpm of this checkout, under dist/; ends with a line `RESULT deb=... rpm=...`.

Where one of the tools is missing nothing is made and the exit status is 77: half of what was asked for is no answer.
"""

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from packages import tree

SKIPPED = 77
TOOLS = {"dpkg-deb": "dpkg", "rpmbuild": "rpm"}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64el", "s390x": "s390x"}
SCRIPTS = ("config", "postinst", "prerm", "postrm")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make both packages; return 0, or 77 where a tool is missing."""
    parser = argparse.ArgumentParser(prog="packages", description=__doc__)
    parser.add_argument("--release", default="1", help="of the package: the number behind the program's version")
    parser.add_argument("--trial", nargs="*", default=(), metavar="RELEASE", help="only these, hardly compressed")
    parser.add_argument("--output", type=Path, default=tree.CHECKOUT / "dist")
    options = parser.parse_args(arguments)
    missing = [f"{name} (Debian: apt-get install {of})" for name, of in TOOLS.items() if not shutil.which(name)]
    if missing:
        print("RESULT skipped=1 reason=" + "-".join(f"missing: {', '.join(missing)}".split()))
        return SKIPPED
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="haclusterd-packages-") as work:
        program, root = Path(work, "program"), Path(work, "tree")
        tree.install(program)
        for release in options.trial:
            trial = Path(work, release)
            tree.make(trial, release=release, program=program)
            make_deb(trial, Path(work, f"deb-{release}"), options.output, release, compression="none")
            make_rpm(trial, Path(work, f"rpm-{release}"), options.output, release, compression="w1.zstdio")
        if options.trial:
            return 0
        build = tree.make(root, release=options.release, program=program)
        deb = make_deb(root, Path(work, "deb"), options.output, options.release)
        rpm = make_rpm(root, Path(work, "rpm"), options.output, options.release)
    print(f"RESULT deb={shown(deb)} rpm={shown(rpm)} build={build} deb_bytes={deb.stat().st_size}"
          f" rpm_bytes={rpm.stat().st_size}")  # fmt: skip
    return 0


def shown(path: Path) -> str:
    """Return a path as it is typed from the checkout."""
    return os.path.relpath(path, tree.CHECKOUT)


def make_deb(root: Path, work: Path, output: Path, release: str, compression: str = "xz") -> Path:
    """Make a deb of the tree with dpkg-deb; return where it is."""
    shutil.copytree(root, work, symlinks=True)
    control = work / "DEBIAN"
    control.mkdir()
    values = _values(root, release)
    (control / "control").write_text(_filled("deb/control", values))
    (control / "conffiles").write_text("".join(f"/{name}\n" for name in tree.CONFIGURATION_FILES))
    (control / "templates").write_text((tree.HERE / "deb" / "templates").read_text())
    for name in SCRIPTS:
        (control / name).write_text((tree.HERE / "deb" / name).read_text())
        (control / name).chmod(0o755)
    overrides = work / "usr/share/lintian/overrides/haclusterd"
    overrides.parent.mkdir(parents=True)
    shutil.copy(tree.HERE / "deb" / "overrides", overrides)
    (control / "md5sums").write_text(_sums(work))
    made = output / f"haclusterd_{tree.deb_version(release)}_{values['architecture']}.deb"
    _run("dpkg-deb", "--root-owner-group", f"-Z{compression}", "--build", str(work), str(made))
    return made


def make_rpm(root: Path, work: Path, output: Path, release: str, compression: str = "w3.zstdio") -> Path:
    """Make an rpm of the tree with rpmbuild; return where it is."""
    values = {**_values(root, release), "architecture": platform.machine(), "tree": str(root), "files": _listed(root),
              "upstream": tree.deb_version(release).rpartition("-")[0], "release": release}  # fmt: skip
    work.mkdir()
    spec = work / "haclusterd.spec"
    spec.write_text(_filled("rpm/haclusterd.spec", values))
    _run("rpmbuild", "-bb", "--quiet", "--define", f"_topdir {work}", "--define", "_rpmdir %{_topdir}/made",
         "--define", f"_binary_payload {compression}",
         "--define", f"_buildhost {platform.machine()}", "--define", "use_source_date_epoch_as_buildtime 1",
         "--define", "clamp_mtime_to_source_date_epoch 1", str(spec))  # fmt: skip
    (built,) = (work / "made").rglob("*.rpm")
    return Path(shutil.move(built, output / built.name))


def _values(root: Path, release: str) -> dict[str, str]:
    size = sum(each.stat().st_size for each in root.rglob("*") if each.is_file() and not each.is_symlink())
    return {
        "version": tree.deb_version(release), "architecture": ARCHITECTURES[platform.machine()],
        "packager": tree.packager(), "size": str(size // 1024), "python": tree.PYTHON, "glibc": glibc(root),
    }  # fmt: skip


def glibc(root: Path) -> str:
    """Return the oldest C library that has everything the compiled libraries ask for."""
    asked = {
        tuple(map(int, found.split(b".")))
        for each in root.rglob("*.so")
        for found in re.findall(rb"GLIBC_(\d+\.\d+)", each.read_bytes())
    }
    return ".".join(map(str, max(asked, default=(2, 17))))


def _listed(root: Path) -> str:
    """Return the files for rpm; directories that are not the package's alone belong to others."""
    top = f"/{tree.TOP}"
    lines = [f"%dir {top}", f"{top}/package", f"%dir /{tree.AGENTS}", "%dir /usr/share/doc/haclusterd"]
    for each in sorted(root.rglob("*")):
        name = f"/{each.relative_to(root)}"
        if name.startswith(f"{top}/package") or (each.is_dir() and not each.is_symlink()):
            continue
        is_configuration = name[1:] in tree.CONFIGURATION_FILES
        lines.append(f'%config(noreplace) "{name}"' if is_configuration else f'"{name}"')
    return "\n".join(lines)


def _sums(work: Path) -> str:
    files = sorted(each for each in work.rglob("*") if each.is_file() and not each.is_symlink())
    return "".join(
        f"{hashlib.md5(each.read_bytes(), usedforsecurity=False).hexdigest()}  {each.relative_to(work)}\n"
        for each in files
        if each.parent.name != "DEBIAN" and str(each.relative_to(work)) not in tree.CONFIGURATION_FILES
    )


def _filled(name: str, values: Mapping[str, str]) -> str:
    return re.sub(r"@(\w+)@", lambda found: values[found[1]], (tree.HERE / name).read_text())


def _run(*command: str) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(tree.moment())}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{command[0]}: {(done.stderr or done.stdout).strip()[-2000:]}")


if __name__ == "__main__":
    sys.exit(main())
