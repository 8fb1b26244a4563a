"""The first state of a cluster that continues another one.

When the other nodes are lost, one node's log gives the state: every entry counts, committed or not. The configuration
must have every node probed: no record says what the other cluster left running on machines that were not rebooted.
"""

from collections.abc import Iterable

from haclusterd.cib.apply import apply, unreadable
from haclusterd.cib.codec import CodecError, decode_cib, decode_envelope
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import Term
from haclusterd.model.records import replace

STARTUP_PROBES = "enable-startup-probes"


def asking_what_runs(configuration: Configuration) -> Configuration:
    """Return a configuration without `enable-startup-probes`: every node is probed before anything starts."""
    blocks = tuple(
        replace(block, pairs=tuple((name, value) for name, value in block.pairs if name != STARTUP_PROBES))
        for block in configuration.properties
    )
    return configuration if blocks == configuration.properties else replace(configuration, properties=blocks)


def folded(snapshot: bytes | None, entries: Iterable[tuple[bytes, int, Term, bool]]) -> Cib:
    """Fold entries, each with index, term and whether it changes the voters, onto a snapshot; return the CIB.

    Raises CodecError if the snapshot cannot be read; an unreadable entry is refused, as on every replica.
    """
    cib = Cib() if snapshot is None else decode_cib(snapshot)
    for entry, index, term, is_in_force in entries:
        try:
            envelope = decode_envelope(entry)
        except CodecError as error:
            cib = unreadable(cib, index=index, detail=str(error)).cib
        else:
            cib = apply(cib, envelope, index=index, term=term, is_in_force=is_in_force).cib
    return cib
