"""Verbs of the level `history`."""

from haclusterd.commands.verb import Verb

VERBS: tuple[Verb, ...] = ()
