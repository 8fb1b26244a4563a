"""Verbs of the level `cluster`."""

from haclusterd.commands.verb import Verb

VERBS: tuple[Verb, ...] = ()
