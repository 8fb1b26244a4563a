"""What `apply` makes of a log belongs to the feature level: nodes of two versions that share a level must not differ.

Replicas are compared byte by byte, and one that differs from a majority ends for good (docs/design/0002-store.md,
"Replicas that differ"). So a word in a text that `apply` writes, or the order of a mapping, is as frozen as a field
once its level is released. The log is that of a simulated cluster: failures, fencings, migrations, edits.

REWRITE_SAMPLES=1 pytest tests/upgrade writes the digests of the level that is being built again, and leaves its log.
"""

import gzip
import json
from pathlib import Path

import pytest

from haclusterd.cib.codec import digest
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import Term
from haclusterd.model.rules_in_force import ALL_RULES
from haclusterd.runtime.replica import Folding
from tests.upgrade.frozen_samples import are_rewritten, write

LEVELS = [Path(__file__).parent / "codec_3"]
NEWEST = LEVELS[-1]
EVERY = 25
"""So many entries lie between two digests."""


def digests_of(level: Path) -> dict[str, str]:
    """Return the digest of the state after every so many entries of a level's log, and after the last one."""
    cib, found, last = Cib(), {}, 0
    for line in gzip.decompress((level / "log.jsonl.gz").read_bytes()).decode().splitlines():
        index, term, is_in_force, entry = json.loads(line)
        cib = Folding().fold(
            cib, entry.encode(), index=index, term=Term(term), rules=ALL_RULES, is_in_force=is_in_force
        ).cib  # fmt: skip
        last = index
        if index % EVERY == 0:
            found[str(index)] = digest(cib)
    return {**found, str(last): digest(cib)}


if are_rewritten():
    write(NEWEST / "folded.json", (json.dumps(digests_of(NEWEST), indent=0) + "\n").encode())


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_a_log_of_every_level_is_folded_to_the_same_states(level: Path) -> None:
    known, found = json.loads((level / "folded.json").read_text()), digests_of(level)
    different = next((index for index in known if found.get(index) != known[index]), None)
    assert different is None, f"from an entry at most {EVERY} before entry {different} on, `apply` does something else"
