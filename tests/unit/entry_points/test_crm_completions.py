"""The completion scripts in their shells: what bash, zsh and fish offer after what was typed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from haclusterd.cib.codec import encode_cib
from haclusterd.cli.completing.completion_scripts import SCRIPTS
from tests.administered_clusters import running

ROOT = Path(__file__).parents[3]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a directory with a program `crm` that looks at a state file, and a file with a name."""
    state = tmp_path / "state.cib"
    state.write_bytes(encode_cib(running().cib))
    program = tmp_path / "bin" / "crm"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT} CIB_file={state} exec {sys.executable} -m haclusterd.entry_points.crm "$@"\n'
    )
    program.chmod(0o755)
    return tmp_path


def run(place: Path, *command: str, stdin: str = "") -> str:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    environment = {"PATH": f"{place / 'bin'}:{os.environ['PATH']}", "HOME": str(place), "TERM": "dumb"}
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, env=environment, cwd=place, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


CASES = [
    ("crm resource mov", "move"),
    ("crm resource move web ", "n1 n2 n3"),
    ("crm configure property no-quorum-policy=f", "no-quorum-policy=fence no-quorum-policy=freeze"),
    ("crm configure primitive x ocf:haclusterd:http", "ocf:haclusterd:http-service"),
    ("crm configure primitive x ocf:haclusterd:dummy op monitor on-f", "on-fail="),
    ("crm -o json resource move web n", "n1 n2 n3"),
]


@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_bash(place: Path, typed: str, offered: str) -> None:
    # bash splits words at = and :, and the function has to put them together again.
    program = f"""
{SCRIPTS["bash"]}
compopt() {{ echo "option $*" >&2; }}
COMP_LINE={typed!r}
COMP_POINT=${{#COMP_LINE}}
COMP_WORDBREAKS=$' \\t\\n"=:'
read -ra COMP_WORDS <<< "$(sed 's/[=:]/ & /g' <<< "$COMP_LINE")"
[[ $COMP_LINE == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_crm
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    last = typed.rpartition(" ")[2]
    kept = max(last.rfind("="), last.rfind(":")) + 1
    assert run(place, "bash", "-c", program).split() == [word[kept:] for word in offered.split()]


@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_fish(place: Path, typed: str, offered: str) -> None:
    (place / "crm.fish").write_text(SCRIPTS["fish"])
    lines = run(place, "fish", "--no-config", "-c", f"source crm.fish; complete -C {typed!r}").splitlines()
    assert [line.split("\t")[0] for line in lines] == offered.split()


def test_fish_says_what_words_mean_and_offers_files(place: Path) -> None:
    (place / "crm.fish").write_text(SCRIPTS["fish"])
    asked = "source crm.fish; complete -C 'crm resource mov'; complete -C 'crm configure save sta'"
    assert run(place, "fish", "--no-config", "-c", asked).splitlines() == [
        "move\tMove a resource, with its group; no constraint stays behind", "state.cib"
    ]  # fmt: skip


@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_zsh(place: Path, typed: str, offered: str) -> None:
    (place / "_crm").write_text(SCRIPTS["zsh"])
    # compadd, as the completion system calls it: what would be offered is printed.
    program = f"""
compdef() {{ : }}
compadd() {{ local name=${{@[-1]}}; print -rl -- "${{(@P)name}}"; }}
_files() {{ print files; }}
source ./_crm
words=(${{(z):-{typed!r}}})
[[ {typed!r} == *' ' ]] && words+=("")
CURRENT=$#words
PREFIX=$words[CURRENT]
_crm
"""
    assert run(place, "zsh", "-f", "-c", program).split() == offered.split()


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_crm_prints_each_script(place: Path, shell: str) -> None:
    assert run(place, str(place / "bin" / "crm"), "completion", shell) == SCRIPTS[shell]
