"""The verbs of `crm assist`."""

from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Family, Permission, Verb
from haclusterd.verbs.words import Completes, Words

_RESOURCES = Argument("resources", Kind.WORDS, "which", is_required=True, completes=Completes.RESOURCE)
_ID = Argument("id", Kind.WORD, "the id of what is made; left out: a free one", flag="--id")

ASSIST = Family("assist", "Ready-made configurations for common needs", (
    Verb("assist.weak_bond", Permission.ADMINISTER, "Let resources run together, not depending on each other", (
        _RESOURCES, _ID,
    ), (
        Words(("crm assist weak-bond web db --dry-run",), is_statement=False, is_guessed=False),
    ), answers=("change",)),
    Verb("assist.template", Permission.ADMINISTER, "Make one template for primitives of one agent", (
        _RESOURCES, _ID,
    ), (
        Words(("crm assist template web --id service --dry-run",), is_guessed=False),
    ), answers=("change",)),
))  # fmt: skip
