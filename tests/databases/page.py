"""The texts of a how-to page that are played: what stands between ```NAME and ```."""

import re
from pathlib import Path

from tests.lab.switch import NETWORK

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
DOCUMENTED_NETWORK = "192.0.2"


def texts(name: str) -> dict[str, str]:
    """Return those of a page by what they are, with the lab's network in place of the documented one."""
    page = (HOWTO / name).read_text()
    found = re.findall(r"^```([\w.-]+)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    return {kind: text.replace(DOCUMENTED_NETWORK, f"{NETWORK}.0") for kind, text in found}
