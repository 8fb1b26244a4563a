"""What is installed from the wheel is whole, works without the checkout, and finds its agents."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
TOOLS = sorted(path.name for path in (CHECKOUT / "shims").iterdir())
WITHOUT_A_DAEMON = ("crm_diff", "crm_error", "crm_verify", "iso8601")
AGENTS = sorted(path for path in (CHECKOUT / "resource_agents").iterdir() if path.suffix != ".md")


def run(*command: str | Path, given: str = "") -> str:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, check=False, input=given, capture_output=True, text=True, timeout=100, env=clean, cwd="/"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source")
    for name in run("git", "-C", CHECKOUT, "ls-files", "-co", "--exclude-standard").splitlines():
        if (CHECKOUT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((CHECKOUT / name).read_bytes())
            (source / name).chmod((CHECKOUT / name).stat().st_mode)
    built = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", built, source)
    return next(built.glob("haclusterd-*.whl"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, and the dependencies of this one."""
    place = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", place)
    run(sys.executable, "-m", "pip", "--python", place / "bin/python", "install", "--quiet", "--no-deps", wheel)
    (site,) = place.glob("lib/python*/site-packages")
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(dependencies) + "\n")
    return place


@pytest.mark.slow
def test_the_wheel_holds_no_tests_and_everything_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.startswith(("tests/", "docs/"))]
    assert "haclusterd/py.typed" in names
    tools = (f"shims/{tool}" for tool in TOOLS)
    for name in ("systemd/haclusterd.service", *tools, *(f"resource_agents/{agent.name}" for agent in AGENTS),
                 "alert_agents/webhook", "alert_agents/mail"):  # fmt: skip
        assert any(each.endswith(f"data/share/haclusterd/{name}") for each in names), name
    for page in (CHECKOUT / "docs/reference/man").iterdir():
        assert any(each.endswith(f"data/share/man/man{page.suffix[1:]}/{page.name}") for each in names), page.name
    modules = {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "haclusterd").rglob("*.py")}
    page = {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "haclusterd" / "api" / "page").iterdir()}
    assert modules | page <= set(names)


@pytest.mark.slow
def test_the_installed_package_finds_its_agents(environment: Path) -> None:
    program = "from haclusterd.adapters.machine.installation import share_directory; print(share_directory())"
    share = Path(run(environment / "bin/python", "-c", program).strip())
    assert share == environment.resolve() / "share/haclusterd"
    assert sorted(path.name for path in (share / "resource_agents").iterdir() if path.suffix != ".md") == [
        agent.name for agent in AGENTS
    ]


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_an_installed_agent_runs_alone(environment: Path, agent: Path) -> None:
    installed = environment / "share/haclusterd/resource_agents" / agent.name
    assert os.access(installed, os.X_OK)
    is_fence_agent = agent.name.startswith("fence_")
    printed = run(installed, given="action=metadata\n") if is_fence_agent else run(installed, "meta-data")
    assert printed.strip().startswith("<?xml")


@pytest.mark.slow
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool not in WITHOUT_A_DAEMON])
def test_an_installed_tool_of_agents_runs_alone(environment: Path, tool: str) -> None:
    installed = environment / "share/haclusterd/shims" / tool
    done = subprocess.run(
        [installed, "--frobnicate"], env={"PATH": "/usr/bin:/bin", "HACLUSTERD_SOCKET": "/no/such/socket"},
        capture_output=True, text=True, timeout=30,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (102, "")
    assert done.stderr.startswith(f"{tool}: /no/such/socket: ")


@pytest.mark.slow
@pytest.mark.parametrize("tool", WITHOUT_A_DAEMON)
def test_an_installed_tool_that_asks_no_daemon_runs_alone(environment: Path, tool: str) -> None:
    installed = environment / "share/haclusterd/shims" / tool
    done = subprocess.run(
        [installed, "--frobnicate"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=30,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (64, "", f"{tool}: Unknown option --frobnicate\n")


@pytest.mark.slow
def test_an_installed_tool_plans_a_file_with_the_program_that_is_installed_with_it(
    environment: Path, tmp_path: Path
) -> None:
    file = tmp_path / "cib.xml"
    file.write_text(
        '<cib><configuration><crm_config/><nodes><node id="1" uname="n1"/></nodes><resources>'
        '<primitive id="web" class="ocf" provider="heartbeat" type="Dummy"/></resources><constraints/>'
        '</configuration><status><node_state id="1" uname="n1" crmd="online" in_ccm="true" join="member"/></status>'
        "</cib>"
    )
    done = subprocess.run(
        [environment / "share/haclusterd/shims/crm_simulate", "-Sx", file], env={"PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (done.returncode, "web" in done.stdout) == (0, True), done.stderr


@pytest.mark.slow
def test_every_program_is_installed(environment: Path) -> None:
    assert {"crm", "haclusterd", "haclusterd-pacer"} <= {path.name for path in (environment / "bin").iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("program", ["crm", "haclusterd", "haclusterd-pacer"])
def test_an_installed_program_runs(environment: Path, program: str) -> None:
    assert run(environment / "bin" / program, "--help").lower().startswith(("usage", "crm"))
