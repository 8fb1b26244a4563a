"""Pacemaker's CIB as XML: reading with places and notes, upgrade of older schemas, writing."""
