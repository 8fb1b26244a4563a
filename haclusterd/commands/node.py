"""Verbs of the level `node`."""

from haclusterd.commands.verb import Verb

VERBS: tuple[Verb, ...] = ()
