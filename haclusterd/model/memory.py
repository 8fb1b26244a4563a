"""Amounts of memory as people write them."""

import re

_MEMORY = re.compile(r"([0-9]{1,9})\s*(Mi?B?|Gi?B?|Ti?B?)?", re.IGNORECASE)
_BYTES = {"": 2**20, "m": 10**6, "g": 10**9, "t": 10**12, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse(text: str) -> int:
    """Read an amount of memory (`80G`, `40GiB`, `81000`) as whole MiB; raise ValueError otherwise.

    Makers count in powers of ten, and so does a plain M, G or T: a device sold with 80 GB has 81,559 MiB, and 80G asks
    for 76,293. A number alone is in MiB.
    """
    found = _MEMORY.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"not an amount of memory: {text[:40]!r} (write 80G, 80GiB or a number of MiB)")
    unit = (found[2] or "").lower().removesuffix("b")
    return int(found[1]) * _BYTES[unit] // 2**20
