"""What names a machine, and tells it from another one that has a copy of its disk."""

from haclusterd.model.records import dataclass


@dataclass(frozen=True, slots=True)
class MachineMark:
    """One thing that names a machine."""

    kind: str
    """What it is, in words that a person finds: `DMI product_uuid`."""
    value: str

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"
