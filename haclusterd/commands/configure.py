"""Verbs of the level `configure`."""

from haclusterd.commands.verb import Verb

VERBS: tuple[Verb, ...] = ()
