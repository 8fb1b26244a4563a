"""Modules that are no part of this checkout, loaded from their files."""

import importlib.util
from pathlib import Path
from types import ModuleType


def load(path: Path) -> ModuleType:
    """Return what a file defines, under a name that no module of the tests has."""
    spec = importlib.util.spec_from_file_location(f"outside_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
