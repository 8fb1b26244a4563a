"""The samples that are frozen, with the digests of what is in them, and the one way to write one that is not.

A level's files are added here when it is released. Nothing writes them after that: not `REWRITE=1`, which is for golden
files, and not `REWRITE_SAMPLES=1`, which is for the level that is being built.
"""

import hashlib
import os
from pathlib import Path

HERE = Path(__file__).parent
FROZEN = {
    "codec_1/cib.jsonl": "3870b79843a613298b1d12ca3c3508b29684bb0179fb6c2ec2c147f68b9fa7e2",
    "codec_1/cib.sha256": "a65063eb268028f6e6121dec5ad3cb620684b6c2b69083e1b6146d09b5178964",
    "codec_1/envelopes.jsonl": "8a91b079daca593eb5aef465037e87e0848d7ee96f88b59b77d3baa7f6c50113",
    "codec_2/cib.jsonl": "21cc39c97f12762f0649b5f3c5e5d51a14359fcad5abd331ac0424c1d639ab9a",
    "codec_2/cib.sha256": "aa476a5473a578023b1bfda599379f0bc5ffcbb0c4d35620f2460447e14dcbd6",
    "codec_2/envelopes.jsonl": "b67f91717278a07458ab0ca40836737becd36c4a523aa77a8f7efa85f7d29f15",
    "codec_3/log.jsonl.gz": "79435066ed1760b9427913be3dd209407ebf016a0d9419a2356a36a85c80bc50",
    "messages/control.jsonl": "206a418bead9ee615bc40d3dff011b289a2887bedb291090c3fe61ebbb3ae771",
    "messages/dc_bulletin.jsonl": "653ada063b46f3ff252b9613e3c2c95f35d51abfc1a8b9d1fecafcf35e735c6f",
    "messages/enrolment.jsonl": "b2a00708c5d860e584f5193bb999703c4ec339ecb68d44ff63eb6251f601a469",
    "messages/history_messages.jsonl": "6bf1b8624233e2cc448095301f85c08036c73a544ff0cb766aba4cbed81c1ab0",
    "messages/pacer_socket.jsonl": "8c389579fcaa33b36c699df186fceee775b852d9f8dcfdbc3076a8f135f23994",
}
"""SHA-256 of each file."""


def are_rewritten() -> bool:
    """Say whether the samples of the level that is being built are to be written again."""
    return bool(os.environ.get("REWRITE_SAMPLES"))


def write(path: Path, data: bytes) -> None:
    """Write a sample of the level that is being built; raise PermissionError for one that is frozen."""
    name = str(path.relative_to(HERE))
    if name in FROZEN:
        raise PermissionError(f"tests/upgrade/{name} is frozen: what is new gets a new feature level")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)


def digest_of(name: str) -> str:
    """Return the SHA-256 of a sample as it is now."""
    return hashlib.sha256((HERE / name).read_bytes()).hexdigest()
