"""What tests were skipped for, counted at the end of a run: one without its peers is not to be taken for whole."""

import re
from collections import Counter
from collections.abc import Iterable

LACKS = (
    (r"shared|not there", "../shared"),
    (r"^(?:not installed: )(?P<lack>.+)$", ""),
    (r"^needs root, (?P<lack>.+)$", ""),
    (r"^(?:no )?(?P<lack>.+?) (?:is|are) (?:not )?installed", ""),
    (r"^there is no (?P<lack>\S+) here", ""),
    (r"control groups?", "control groups"),
    (r"root", "root"),
    (r"^no (?P<lack>IPv6 loopback|loop device|C compiler)", ""),
    (r"empty parameter set", "cases"),
)
"""Patterns of reasons, the first that fits counts, with the name of what is not there, or a group that holds it."""
NOT_A_LACK = (
    "access control lists", "the id of", "a reference to a pair", "Pacemaker does not plan", "has psutil",
    "as nobody",
)  # fmt: skip
"""Parts of reasons by which a test does not apply."""


def lack_of(reason: str) -> str:
    """Return what was not there, or nothing where a test did not apply or its reason is in no known form."""
    text = reason.removeprefix("Skipped: ").strip()
    if any(each in text for each in NOT_A_LACK):
        return ""
    for pattern, name in LACKS:
        if found := re.search(pattern, text):
            return name or re.sub(r"\s*\(.*\)", "", found["lack"])
    return ""


def summary(reasons: Iterable[str]) -> list[str]:
    """Return the lines that say how many tests were skipped, and for lack of what, the most first."""
    counted = Counter(map(lack_of, reasons))
    others = counted.pop("", 0)
    lines = []
    if counted:
        ranked = sorted(counted.items(), key=lambda each: (-each[1], each[0]))
        lines.append(f"skipped for lack of: {', '.join(f'{name} {count}' for name, count in ranked)}")
    if others:
        lines.append(f"skipped because they do not apply: {others}")
    return lines
