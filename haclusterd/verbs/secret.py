"""The verbs of `crm secret`. A value is read from a prompt or from the standard input, never from a command line."""

from haclusterd.model.words import SECRET_CHARACTERS_MAX
from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Cost, Family, Permission, Verb
from haclusterd.verbs.words import Parameter, Takes, Words

_NAME = Argument("name", Kind.WORD, "of the secret", is_required=True)
VALUE = Argument("value", Kind.TEXT, "the value of the secret", is_typed=False, longest=4 * SECRET_CHARACTERS_MAX)
NO_VALUE = Parameter("words", Takes.MANY, is_optional=True, help="nothing: the value is asked for, or read from stdin")

SECRET = Family("secret", "Secrets that parameters refer to, as password=secret:NAME", (
    Verb("secret.list", Permission.READ, "List the secrets, who uses them, and who cannot open them", (), (
        Words(("crm secret list",)),
    ), cost=Cost.LIGHT, answers=("secrets",)),
    Verb("secret.set", Permission.ADMINISTER, "Set a secret; its value is asked for, or read from stdin", (
        _NAME, VALUE,
    ), (
        Words(("crm secret set pdu", "crm secret set pdu < pdu.txt"), takes=("name", NO_VALUE), is_guessed=False),
    )),
    Verb("secret.show", Permission.ADMINISTER, "Show the value of a secret; the history records who asked", (_NAME,), (
        Words(("crm secret show pdu",), is_guessed=False),
    ), cost=Cost.LIGHT, answers=("secret",)),
    Verb("secret.delete", Permission.ADMINISTER, "Forget a secret that nothing refers to", (_NAME,), (
        Words(("crm secret delete pdu",), is_guessed=False),
    ), cost=Cost.LIGHT),
    Verb("secret.rotate", Permission.ADMINISTER, "Seal all secrets by another key, which only members now have", (), (
        Words(("crm secret rotate",), is_guessed=False),
    ), cost=Cost.LIGHT),
))  # fmt: skip
