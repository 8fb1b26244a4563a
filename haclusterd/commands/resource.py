"""Verbs of the level `resource`."""

from haclusterd.commands.verb import Verb

VERBS: tuple[Verb, ...] = ()
