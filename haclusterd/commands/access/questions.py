"""Verbs that tell who may do what, and why."""

from collections.abc import Iterator, Mapping

from haclusterd.commands import api_tokens
from haclusterd.commands.access.rights import Decision, Rights, path_of, tree_of
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.permissions import Access, Rules, access_of
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.formats.cib_xml.writer import write_cib
from haclusterd.formats.cib_xml.xpath import Budget, TooMuchError, Tree, XPathError, parse_xpath
from haclusterd.model.access import ENABLED, SUPERUSER, AclTarget, Principal, SimpleRole, described
from haclusterd.model.json_value import Json
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.requests import VIA
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import did_you_mean
from haclusterd.verbs.answers.access import (
    AclHolder,
    AclListing,
    AclRights,
    AclRoleRow,
    AclVerdict,
    ElementRight,
)
from haclusterd.verbs.answers.cluster import Identity
from haclusterd.verbs.arguments import Argument, Arguments, Kind
from haclusterd.verbs.table import VERBS as DESCRIBED
from haclusterd.verbs.verb import Permission

ROWS_MAX = 200
DENIED = 1
"""The exit status of an answer that is no."""
_SIMPLE = {
    SimpleRole.VIEWER: "look, but not at secrets",
    SimpleRole.OPERATOR: "also start, stop, move, clean up, standby",
    SimpleRole.ADMIN: "everything",
}
_REFUSALS = frozenset({Code.ACL_DENIED, Code.NOT_PERMITTED})


def about_another(arguments: Mapping[str, Json]) -> bool:
    """Tell whether somebody else is asked about, which those who administer may."""
    return any(arguments.get(name) for name in ("user", "groups", "token"))


def can(context: Context, arguments: Arguments) -> Outcome[AclVerdict]:
    """Try a verb without doing anything (schema `haclusterd.acl_verdict/1`); the exit status is 1 for no."""
    name = arguments.word("verb").replace(" ", ".")
    verb = DESCRIBED.get(name)
    if verb is None:
        remedy = did_you_mean(name, tuple(DESCRIBED), "see: crm --help")
        return refusal(report(Code.UNKNOWN_VERB, verb=repr(name), remedy=remedy))
    found = _who(context, arguments)
    if isinstance(found, ReportItem):
        return refusal(found)
    who, access = found
    object_ = arguments.word("object")
    asked = _asked(verb.arguments, object_)
    needed = verb.permission
    assert context.attempt is not None, "the registry lets this verb try others"
    denial = next((each for each in context.attempt(name, asked, access) if each.code in _REFUSALS), None)
    answer = AclVerdict(
        who=who,
        verb=name,
        object=object_,
        is_permitted=denial is None,
        permission=str(needed),
        why=access.why if denial is None else _denied(denial, access, needed),
        is_in_force=_is_in_force(context),
    )
    return Outcome(answer=answer, exit_status=None if denial is None else DENIED)


def _denied(denial: ReportItem, access: Access, needed: Permission) -> str:
    if denial.code is Code.NOT_PERMITTED:
        return f"it needs the permission to {needed}; {access.why}"
    return f"{denial.parameters['what']} ({denial.parameters['rule']})"


def _asked(known: tuple[Argument, ...], object_: str) -> dict[str, Json]:
    """Return the arguments with which a verb is tried."""
    if not object_ or not known:
        return {}
    first = known[0]
    return {first.name: [object_] if first.kind is Kind.WORDS else object_}


def explain(context: Context, arguments: Arguments) -> Outcome[AclRights]:
    """Answer what may be done with elements, by which rules (schema `haclusterd.acl_rights/1`)."""
    found = _who(context, arguments)
    if isinstance(found, ReportItem):
        return refusal(found)
    who, access = found
    root = tree_of(write_cib(context.cib, has_quorum=True, controller=None))
    chosen = _chosen(root, arguments.word("object"))
    if isinstance(chosen, ReportItem):
        return refusal(chosen)
    rules = access.rules or Rules(base=access.permission)
    rights = Rights(root, rules, is_operating=False)
    rows = [row for element in chosen for row in _rows(rights, element, path_of(root, element), None)]
    shown = tuple(rows[:ROWS_MAX])
    return Outcome(
        answer=AclRights(
            who=who, why=access.why, elements=shown, left_out=len(rows) - len(shown), is_in_force=_is_in_force(context)
        )
    )


def _chosen(root: Element, object_: str) -> list[Element] | ReportItem:
    if not object_:
        return [root]
    if object_.startswith("/"):
        try:
            found = parse_xpath(object_).select(Tree(root), Budget())
        except XPathError as error:
            return report(Code.BAD_ARGUMENT, name="object", problem=f"{object_[:80]!r}: {error}")
        except TooMuchError:
            return report(Code.TAKES_TOO_LONG, problem="this XPath looks at too many elements")
    else:
        found = [each for each in root.every() if object_ in (each.get("id"), each.get("uname"))]
    return found or report(Code.UNKNOWN_OBJECT, id=repr(object_[:80]))


def _rows(rights: Rights, element: Element, path: str, around: Decision | None) -> Iterator[ElementRight]:
    """Yield an element, and what in it is decided otherwise."""
    decision = rights.of(element)
    if decision != around:
        yield ElementRight(path, str(decision.right), decision.rule)
    for child in element.children:
        name = child.get("id")
        step = f"/{child.tag}" if name is None else f"/{child.tag}[@id='{name}']"
        yield from _rows(rights, child, path + step, decision)


def listed(context: Context, _arguments: Arguments) -> Outcome[AclListing]:
    """Answer roles and who has them (schema `haclusterd.acl_list/1`); tokens for those who administer."""
    configuration = context.cib.configuration
    roles = [
        AclRoleRow(role.id, role.description, tuple(map(described, role.permissions)), is_simple=False)
        for role in configuration.acl_roles.values()
    ]
    roles += [
        AclRoleRow(str(role), doc, (), is_simple=True)
        for role, doc in _SIMPLE.items()
        if role not in configuration.acl_roles
    ]
    holders = [
        AclHolder("user" if isinstance(each, AclTarget) else "group", each.account, each.roles)
        for each in configuration.acl_holders()
    ]
    if context.access.permission is Permission.ADMINISTER:
        holders += [AclHolder("token", name, (each.role,)) for name, each in sorted(context.cib.api_tokens.items())]
    return Outcome(
        answer=AclListing(
            is_in_force=_is_in_force(context),
            control_group_permission=ClusterProperties(context.cib.in_force).text("control-group-permission"),
            roles=tuple(roles),
            holders=tuple(holders),
        )
    )


def _who(context: Context, arguments: Arguments) -> tuple[str, Access] | ReportItem:
    """Return whom a question is about, and what they may."""
    user, groups, token = arguments.word("user"), arguments.words("groups"), arguments.word("token")
    if token:
        known = context.cib.api_tokens.get(token)
        if known is None:
            remedy = did_you_mean(token, tuple(context.cib.api_tokens), "see: crm api token list")
            return report(Code.NO_SUCH_TOKEN, name=repr(token), remedy=remedy)
        bearer = Principal(token=token, token_role=known.role)
        return str(bearer), access_of(context.cib.in_force, bearer)
    if not user and not groups:
        return context.author.partition(VIA)[0], context.access
    principal = Principal(user, groups, is_superuser=user in ("root", SUPERUSER))
    return str(principal), access_of(context.cib.in_force, principal, is_in_force=True)


def _is_in_force(context: Context) -> bool:
    return ClusterProperties(context.cib.in_force).boolean(ENABLED)


def whoami(context: Context, arguments: Arguments) -> Outcome[Identity]:
    """Answer as whom one is known here, and what one may (schema `haclusterd.whoami/1`)."""
    return api_tokens.whoami(context, arguments)


VERBS = (
    carry_out_by("acl.whoami", whoami, answers(Identity)),
    carry_out_by("acl.can", can, answers(AclVerdict), fences=about_another),
    carry_out_by("acl.explain", explain, answers(AclRights), fences=about_another),
    carry_out_by("acl.list", listed, answers(AclListing)),
)
