"""The pacer stays small: it imports the standard library, without asyncio and threads, and what makes records."""

import json
import subprocess
import sys

FORBIDDEN = {"asyncio", "threading", "concurrent", "msgpack", "pysyncobj", "psutil", "yaml", "aiohttp", "cryptography"}
OF_RECORDS = {"msgspec", "typing_extensions"}
"""One compiled file and what it imports: 0.2 MB of locked memory, and the pacer starts sooner with it."""
LIST = "import json, sys, haclusterd.entry_points.pacer_process; print(json.dumps(sorted(sys.modules)))"


def test_the_pacer_imports_the_standard_library_and_what_makes_records() -> None:
    done = subprocess.run([sys.executable, "-c", LIST], check=True, capture_output=True, text=True)
    rooms = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert not rooms & FORBIDDEN
    foreign = rooms - set(sys.stdlib_module_names) - {"haclusterd", "__main__"} - OF_RECORDS
    assert {name for name in foreign if not name.startswith(("_", "sitecustomize"))} == set()


def test_only_the_rooms_it_needs_are_entered() -> None:
    done = subprocess.run([sys.executable, "-c", LIST], check=True, capture_output=True, text=True)
    rooms = {name.split(".")[1] for name in json.loads(done.stdout) if name.startswith("haclusterd.")}
    assert rooms == {"adapters", "entry_points", "machines", "model", "protocol", "wire"}
