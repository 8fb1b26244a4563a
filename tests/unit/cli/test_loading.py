"""What a command of `crm` loads before it asks: most of its time is that."""

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
ASKED = """
import sys
from haclusterd.entry_points.crm import main
sys.argv = ["crm", "status"]
status = main()
rooms = ("model.configuration", "model.cluster", "cib", "scheduler", "formats", "machines", "commands", "runtime")
loaded = [name for name in sys.modules if name.startswith(tuple(f"haclusterd.{room}" for room in rooms))]
print(status, loaded + [name for name in ("asyncio", "ssl", "xml", "yaml", "prompt_toolkit") if name in sys.modules])
"""


def test_a_question_to_the_daemon_loads_nothing_of_the_cluster(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKED], check=True, capture_output=True, text=True, cwd=CHECKOUT,
        env={"HACLUSTERD_SOCKET": str(tmp_path / "none.sock"), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "69 []"
