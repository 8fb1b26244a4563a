"""Writes the manual pages, man/*, from the programs and agents themselves.

`make reference` runs it; tests/house/test_documents.py fails when a page is not what it would write.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from packages import man_pages  # noqa: E402 (found on the path above)

PAGES = {f"man/{name}": page for name, page in man_pages.pages().items()}

if __name__ == "__main__":
    (HERE / "man").mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (HERE / name).write_text(page())
