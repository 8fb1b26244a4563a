"""From the CIB to entities: nodes, resources, and the state that their histories show."""
