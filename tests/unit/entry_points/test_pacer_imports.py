"""The pacer stays small: what it imports is the standard library, without asyncio and without threads."""

import json
import subprocess
import sys

FORBIDDEN = {"asyncio", "threading", "concurrent", "msgpack", "pysyncobj", "psutil", "yaml", "aiohttp", "cryptography"}
LIST = "import json, sys, haclusterd.entry_points.pacer_process; print(json.dumps(sorted(sys.modules)))"


def test_importing_the_pacer_imports_the_standard_library_only() -> None:
    done = subprocess.run([sys.executable, "-c", LIST], check=True, capture_output=True, text=True)
    rooms = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert not rooms & FORBIDDEN
    foreign = rooms - set(sys.stdlib_module_names) - {"haclusterd", "__main__"}
    assert {name for name in foreign if not name.startswith(("_", "sitecustomize"))} == set()


def test_only_the_rooms_it_needs_are_entered() -> None:
    done = subprocess.run([sys.executable, "-c", LIST], check=True, capture_output=True, text=True)
    rooms = {name.split(".")[1] for name in json.loads(done.stdout) if name.startswith("haclusterd.")}
    assert rooms == {"adapters", "entry_points", "machines", "model", "protocol", "wire"}
