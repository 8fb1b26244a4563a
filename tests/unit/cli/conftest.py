"""What tests of `crm` share."""

import resource
from collections.abc import Iterator

import pytest


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Let no file of this process grow, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
