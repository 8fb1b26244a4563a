"""What rules say of each element of a CIB in XML.

Pacemaker Explained, "Access Control Lists": the nearest element that any permission names decides, the element itself
or one around it; of several permissions that name it, deny comes before write, and write before read. What none names
is denied. A simple role counts as a permission for the whole CIB.
"""

from collections.abc import Iterator, Mapping

from haclusterd.commands.permissions import Rules
from haclusterd.formats.cib_xml.tree import Element, parse_tree
from haclusterd.formats.cib_xml.xpath import Budget, TooMuchError, Tree, by_id, parse_xpath
from haclusterd.model.access import AclPermission, Right, described
from haclusterd.model.records import dataclass, replace
from haclusterd.reports.items import ReportItem
from haclusterd.verbs.verb import Permission

_ORDER = {Right.READ: 0, Right.WRITE: 1, Right.DENY: 2}


@dataclass(frozen=True, slots=True)
class Decision:
    """What may be done with an element, and what says so."""

    right: Right
    rule: str

    @property
    def may_read(self) -> bool:
        """Whether it is shown."""
        return self.right is not Right.DENY

    @property
    def may_write(self) -> bool:
        """Whether it may be changed."""
        return self.right is Right.WRITE


NO_RULE = Decision(Right.DENY, "no permission names it")
TOO_MUCH = Decision(Right.DENY, "the access control lists take too long to judge; write narrower XPaths")


class Rights:
    """The decisions for one document."""

    def __init__(self, root: Element, rules: Rules, *, is_operating: bool = False) -> None:
        """`is_operating`: the verb is one for operators, so that theirs is the right to write."""
        self.root = root
        self._decisions: dict[int, Decision] = {}
        self._named: dict[int, Decision] = {}
        budget, tree = Budget(), Tree(root)
        base = _base(rules, is_operating=is_operating)
        if base is not None:
            self._named[id(root)] = base
        try:
            ids = by_id(tree) if any(each.reference for role in rules.roles for each in role.permissions) else {}
            for role in rules.roles:
                for permission in role.permissions:
                    self._note(role.id, permission, _selected(tree, ids, permission, budget))
        except TooMuchError:
            self._named = {id(root): TOO_MUCH}
        self._spread()

    def of(self, element: Element) -> Decision:
        """Return the decision for an element of the document."""
        return self._decisions[id(element)]

    def _note(self, role: str, permission: AclPermission, elements: list[Element]) -> None:
        decision = Decision(permission.right, f"role {role}: {described(permission)}")
        for element in elements:
            before = self._named.get(id(element))
            if before is None or _ORDER[decision.right] > _ORDER[before.right]:
                self._named[id(element)] = decision

    def _spread(self) -> None:
        pending = [(self.root, NO_RULE)]
        while pending:
            element, around = pending.pop()
            decision = self._named.get(id(element), around)
            self._decisions[id(element)] = decision
            pending += [(child, decision) for child in element.children]


def _base(rules: Rules, *, is_operating: bool) -> Decision | None:
    if rules.base is None:
        return None
    may_write = rules.base is Permission.ADMINISTER or (rules.base is Permission.OPERATE and is_operating)
    return Decision(Right.WRITE if may_write else Right.READ, f"the permission to {rules.base}")


def _selected(
    tree: Tree, ids: Mapping[str, Element], permission: AclPermission, budget: Budget
) -> list[Element]:
    if permission.xpath:
        return parse_xpath(permission.xpath).select(tree, budget)
    if permission.reference:
        return [ids[permission.reference]] if permission.reference in ids else []
    named = tree.named(permission.object_type)
    budget.take(len(named))
    return [each for each in named if not permission.attribute or permission.attribute in each.attributes]


def tree_of(text: str) -> Element:
    """Read XML that this program has written."""
    root = parse_tree(text, "cib")
    assert not isinstance(root, ReportItem), root
    return root


def pruned(rights: Rights, element: Element) -> Element | None:
    """Return an element without everything in it that may not be read; None: itself may not."""
    if not rights.of(element).may_read:
        return None
    inside = (pruned(rights, child) for child in element.children)
    return replace(element, children=[each for each in inside if each is not None])


def filtered(rights: Rights, element: Element) -> Element | None:
    """Return an element as `cibadmin --query` shows it: around what may be read stand bare elements with their ids."""
    inside = [each for each in (filtered(rights, child) for child in element.children) if each is not None]
    if rights.of(element).may_read:
        return replace(element, children=inside)
    if not inside:
        return None
    bare = {"id": element.attributes["id"]} if "id" in element.attributes else {}
    return Element(element.tag, bare, element.line, inside)


def path_of(root: Element, wanted: Element) -> str:
    """Return where an element stands: `/cib/configuration/resources/primitive[@id='web']`."""
    for steps in _ways(root, (root,)):
        if steps[-1] is wanted:
            return "".join(map(step_of, steps))
    return step_of(wanted)


def _ways(element: Element, steps: tuple[Element, ...]) -> Iterator[tuple[Element, ...]]:
    yield steps
    for child in element.children:
        yield from _ways(child, (*steps, child))


def step_of(element: Element) -> str:
    """Return the step of an XPath that leads from an element's parent to it: by its id where it has one."""
    name = element.get("id")
    return f"/{element.tag}" if name is None else f"/{element.tag}[@id='{name}']"
