"""Connections between nodes: certificates, TLS, frames, names, enrolment, refusals that are logged once."""
