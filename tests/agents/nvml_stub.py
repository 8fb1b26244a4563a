"""Builds the stub of NVIDIA's library (nvml_stub.c)."""

import shutil
import subprocess
from pathlib import Path

import pytest

LIBRARY = "libnvidia-ml.so.1"


def build_nvml_stub(directory: Path) -> Path:
    """Compile the stub into a directory and return that; skip the test where nothing compiles."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = Path(__file__).with_name("nvml_stub.c")
    flags = ("-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{LIBRARY}")
    subprocess.run([compiler, *flags, "-o", directory / LIBRARY, source], check=True)
    return directory
