"""The words of constraints, which all formats share (Pacemaker Explained, "Resource Constraints")."""

from haclusterd.model.configuration import OrderingKind

KINDS = {kind.value.lower(): kind for kind in OrderingKind}
"""How binding an ordering is, by its name in lower case: Pacemaker reads it in any."""
ACTIONS = ("start", "stop", "promote", "demote")
"""What an ordering is about."""
DISCOVERIES = ("always", "never", "exclusive")
"""Where a location lets Pacemaker probe: `resource-discovery`."""
LOSS_POLICIES = ("stop", "demote", "freeze", "fence")
"""What becomes of the resources when a ticket is lost."""
