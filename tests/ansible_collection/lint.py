"""What Ansible's own checks find in the collection: ansible-lint, yamllint, the sanity tests that need no network."""

import re
import sys
from pathlib import Path

from tests.ansible_collection.environment import SOURCE, Ansible

WITHOUT_INSTALLING = (
    "action-plugin-docs", "compile", "empty-init", "line-endings", "no-assert", "no-get-exception",
    "no-illegal-filenames", "no-smart-quotes", "replace-urlopen", "shebang", "symlinks", "use-argspec-type-path",
    "use-compat-six",
)  # fmt: skip
"""Tests of `ansible-test sanity` that need nothing beside Python; of the others, each fetches pip from afar."""
NOT_OURS = ("missing-gplv3-license",)
"""What the rules of Ansible's own repository demand, and those for collections do not: ours has the Apache license."""


def findings(ansible: Ansible) -> list[str]:
    """Return everything that is found, each in a line."""
    root = ansible.installed
    found = []
    for name, words in (
        ("ansible-lint", ("--offline", "--nocolor", "--format=pep8", "-q", ".")),
        ("yamllint", ("--strict", "--format", "parsable", ".")),
    ):
        source = _with_settings(root)
        done = ansible.run(name, *words, cwd=source)
        found += [f"{name}: {line}" for line in done.stdout.splitlines() if line.strip()]
        if done.returncode and not done.stdout.strip():
            found.append(f"{name} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return found + _sanity(ansible, root) + _validated(ansible, root)


def _with_settings(root: Path) -> Path:
    """Give the installed collection the settings of the linters, which are no part of it."""
    for name in (".ansible-lint", ".yamllint"):
        (root / name).write_text((SOURCE / name).read_text())
    return root


def _sanity(ansible: Ansible, root: Path) -> list[str]:
    tests = [word for name in WITHOUT_INSTALLING for word in ("--test", name)]
    done = ansible.run("ansible-test", "sanity", "--lint", "--python", _python(), *tests, cwd=root)
    lines = [f"ansible-test: {line}" for line in done.stdout.splitlines() if re.match(r"[\w./-]+:\d+:", line)]
    if done.returncode and not lines:
        lines.append(f"ansible-test ended with {done.returncode}: {done.stderr.strip()[-1000:]}")
    return lines


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _validated(ansible: Ansible, root: Path) -> list[str]:
    """Hold each module's documentation against its arguments, by the checker of `ansible-test`."""
    where = ansible.run("python", "-c", "import ansible_test; print(ansible_test.__path__[0])").stdout.strip()
    checker = Path(where) / "_util" / "controller" / "sanity" / "validate-modules"
    modules = sorted(f"plugins/modules/{path.name}" for path in (root / "plugins" / "modules").glob("*.py"))
    done = ansible.run(
        "python", str(checker / "validate.py"), "--arg-spec", "--collection", "ansible_collections/haclusterd/cluster",
        "--collection-version", "0.1.0", *modules, cwd=root,
        more={"PYTHONPATH": f"{ansible.collections}:{checker}:{Path(where) / '_util' / 'target'}"},
    )  # fmt: skip
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return [f"validate-modules: {line}" for line in lines if not any(each in line for each in NOT_OURS)]
