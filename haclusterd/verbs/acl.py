"""The verbs of `crm acl`."""

from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Cost, Family, Permission, Verb
from haclusterd.verbs.words import Words

_WHO = (
    Argument("user", Kind.WORD, "as this user would be judged if enable-acl were true; left out: who asks",
             flag="--user"),
    Argument("groups", Kind.WORDS, "groups of that user", flag="--group"),
    Argument("token", Kind.WORD, "as the bearer of this API token", flag="--token"),
)  # fmt: skip

ACL = Family("acl", "Who may do what: roles of users, groups, tokens", (
    Verb("acl.whoami", Permission.READ, "Show who you are, your roles, and what gave them", (), (
        Words(("crm acl whoami",)),
    ), cost=Cost.LIGHT, answers=("whoami",)),
    Verb("acl.can", Permission.READ, "Tell whether a user may run a verb, without running it", (
        Argument("verb", Kind.WORD, "the verb, as resource.stop", is_required=True),
        Argument("object", Kind.WORD, "what it is asked about: its first argument"),
        *_WHO,
    ), (
        Words(("crm acl can resource.stop web", "crm acl can node.standby n1 --user hacluster")),
    ), cost=Cost.LONG, answers=("acl_verdict",)),
    Verb("acl.explain", Permission.READ, "Show rights on an element, and the rules behind them", (
        Argument("object", Kind.WORD, "an id, or an XPath; left out: everything"),
        *_WHO,
    ), (
        Words(("crm acl explain web", "crm acl explain \"//primitive[@id='web']\" --user alice --group ops",
               "crm acl explain --user alice")),
    ), cost=Cost.LONG, answers=("acl_rights",)),
    Verb("acl.list", Permission.READ, "List roles with their permissions, and who has them", (), (
        Words(("crm acl list",), aliases=("show",)),
    ), cost=Cost.LIGHT, answers=("acl_list",)),
))  # fmt: skip
