"""haclusterd: a high-availability failover cluster manager."""
