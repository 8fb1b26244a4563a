"""The pages of this checkout, and what they show of `crm`."""

import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]


def named(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


def typed_lines(text: str) -> list[str]:
    """Return the command lines of `crm` that a page shows: in blocks of code, and between backquotes."""
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    blocks += ["\n".join(re.findall(r"^    (.*)$", text, flags=re.MULTILINE))]
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    found = [line.strip().removeprefix("# ").removeprefix("$ ") for line in lines]
    found += re.findall(r"`(crm [^`\n]+)`", text)
    return [line for line in found if re.match(r"crm (?!help )[a-z-]", line)]
