"""The verbs of `crm api`."""

from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Cost, Family, Permission, Verb
from haclusterd.verbs.words import Completes, Parameter, Taken, Words

_NAME = Argument("name", Kind.WORD, "the name of the token", is_required=True)

API = Family("api", "Who may ask over the network: tokens of haclusterd-api", (
    Verb("api.token_add", Permission.ADMINISTER, "Add a token for a program", (
        _NAME,
        Argument("role", Kind.WORD, "what its bearer may: viewer, operator, admin, or an ACL role", is_required=True,
                 flag="--role"),
        Argument("digest", Kind.WORD, "SHA-256 of the token, in hexadecimal digits", is_required=True, is_typed=False),
        Argument("valid", Kind.WORD, "for how long, as 720h, or never (90 days)", flag="--valid"),
    ), (
        Words(("crm api token add grafana --role viewer", "crm api token add ansible --role admin --valid 24h",
               "crm api token list", "crm api token revoke grafana"), typed="api token",
              help="Make a token, shown once; list tokens; revoke one",
              takes=(Parameter("action", completes=Completes.CHOICE, choices=("add", "list", "revoke")),
                     Taken("name", is_required=False), "role", "valid"), is_guessed=False),
    ), cost=Cost.LIGHT, answers=("api_token",)),
    Verb("api.whoami", Permission.READ, "Show who you are to the cluster, and your permission", (), (
        Words(("crm api whoami",)),
    ), cost=Cost.LIGHT, answers=("whoami",)),
    Verb("api.token_list", Permission.ADMINISTER, "List the API tokens, without their secrets",
         cost=Cost.LIGHT, only_tells=True, answers=("api_tokens",)),
    Verb("api.token_revoke", Permission.ADMINISTER, "Revoke a token", (_NAME,), cost=Cost.LIGHT),
))  # fmt: skip
