"""What the DC knows beyond the CIB, sent to its peers and shown on every node; no decision depends on it."""
