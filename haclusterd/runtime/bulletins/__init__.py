"""What the DC knows beside the CIB, written to its peers and shown on every node; nothing is decided by it."""
