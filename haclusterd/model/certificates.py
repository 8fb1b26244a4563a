"""What a person and a program need to know of a certificate; the certificate itself is PEM and public."""

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """One certificate of a node."""

    node: NodeName
    """Its common name: the holder of the key speaks as this node."""
    fingerprint: str
    """SHA-256 of its DER form, in hexadecimal digits."""
    not_before: WallTime
    not_after: WallTime
