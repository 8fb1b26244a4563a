"""The state of the cluster as the web page of crm_mon (Pacemaker 2.1.5, `--output-as=html`).

Elements, classes and line breaks are those of Pacemaker's page, which programs search line by line.
"""

from collections.abc import Iterable, Iterator

from haclusterd.commands.tools.monitor_text import Item, TextView, ticket_words
from haclusterd.commands.tools.monitor_view import DC_VERSION, STACK, instances_configured
from haclusterd.commands.tools.rows import NodeRow, PrimitiveRow
from haclusterd.formats.cib_xml.elements import readable
from haclusterd.formats.cib_xml.writer import written_at
from haclusterd.model.records import dataclass
from haclusterd.reports.rendering import counted
from haclusterd.wire.xml_text import escape

TITLE = "Cluster Status"
_STYLES = """\
.bold { font-weight: bold }
.online { color: green }
.offline { color: red }
.maint { color: blue }
.standby { color: blue }
.health_red { color: red }
.health_yellow { color: GoldenRod }
.rsc-failed { color: red }
.rsc-failure-ignored { color: DarkGreen }
.rsc-managed { color: blue }
.rsc-multiple { color: orange }
.rsc-ok { color: green }
.warning { color: red; font-weight: bold }"""
_IN_ATTRIBUTES = {'"': "&quot;"}


@dataclass(frozen=True, slots=True)
class Tag:
    """An element of the page: either a text is in it, or other elements."""

    name: str
    inside: "tuple[Tag, ...]" = ()
    text: str | None = None
    kind: str = ""
    """Its class."""

    @property
    def is_in_line(self) -> bool:
        """Whether it stands in a line, not in lines of its own."""
        return self.name == "span"

    def written(self) -> str:
        """Write the element: elements stand in lines of their own where there are several."""
        start = f'<{self.name} class="{self.kind}">' if self.kind else f"<{self.name}>"
        if self.text is not None:
            return f"{start}{escape(readable(self.text), {})}</{self.name}>"
        *others, last = self.inside
        written = "".join(each.written() + ("" if each.is_in_line else "\n") for each in others) + last.written()
        apart = "\n" if others else ""
        return f"{start}{apart}{written}{apart}</{self.name}>"


def page(inside: str, title: str, style_sheet: str) -> str:
    """Return a page with what is inside its body."""
    lines = ["<!DOCTYPE html>", '<html lang="en">', "<head>", f"<title>{escape(readable(title), {})}</title>",
             '<meta charset="utf-8">', f"<style>{_STYLES}</style>"]  # fmt: skip
    if style_sheet:
        lines.append(f'<link rel="stylesheet" href="{escape(readable(style_sheet), _IN_ATTRIBUTES)}">')
    return "\n".join([*lines, "</head>", f"<body>{inside}</body>", "</html>", ""])


class HtmlView(TextView):
    """The state as a web page."""

    def body(self) -> str:
        """Write what is inside the body."""
        sections = self.shown(
            self._summary_tags, self._node_tags, self._resource_tags, self._attribute_tags, self._history_tags,
            self._failure_tags, self._fencing_tags, self._ticket_tags, self._ban_tags,
        )  # fmt: skip
        tags = [tag for section in sections for tag in section]
        return "\n" + "".join(f"{tag.written()}\n" for tag in tags) if tags else ""

    def _summary_tags(self) -> Iterator[Tag]:
        yield from _section("Cluster Summary", self._summary_items())
        if "options" in self.sections:
            yield from _section("Config Options", self._option_items())

    def _summary_items(self) -> Iterator[Tag]:
        version = self.context.cib.version
        user, _, origin = version.author.partition("@")
        if "stack" in self.sections:
            yield _point(_bold("Stack: "), _span(STACK))
        if "dc" in self.sections and self.rows.dc is None:
            yield _point(_bold("Current DC: "), _span("NONE", "warning"))
        elif "dc" in self.sections and self.rows.dc is not None:
            name = self.named(self.rows.node(self.rows.dc))
            quorum = _span(" with") if self.has_quorum else _span(" WITHOUT", "warning")
            yield _point(_bold("Current DC: "), _span(f"{name} (version {DC_VERSION}) -"), _span(" partition"), quorum,
                         _span(" quorum"))  # fmt: skip
        if "times" in self.sections and not self.is_quiet:
            yield _point(_bold("Last updated: "), _span(written_at(self.context.now)))
            by = f" by {user} via crm on {origin}" if user else ""
            yield _point(_bold("Last change: "), _span(f"{written_at(version.at) if version.at else ''}{by}"))
        if "counts" in self.sections:
            yield _point(_span(f"{counted(len(self.all_nodes), 'node')} configured"))
            yield _point(*self._count_parts())

    def _count_parts(self) -> Iterator[Tag]:
        count, disabled, blocked = instances_configured(self)
        words = f"{counted(count, 'resource instance')} configured"
        if not (disabled or blocked):
            yield _span(words)
            return
        if disabled:
            yield from (_span(f"{words} ({disabled} "), _bold("DISABLED"))
        if blocked:
            yield from (_span(f", {blocked} " if disabled else f"{words} ({blocked} "), _bold("BLOCKED"))
        yield _span(" from further action due to failure)" if blocked else ")")

    def _option_items(self) -> Iterator[Tag]:
        yield from (_line(line.removeprefix("  * ")) for line in self._options())
        flag = self.properties.boolean
        if flag("maintenance-mode"):
            state, what = "DISABLED", "will not attempt to start, stop, or recover services"
        elif flag("stop-all-resources"):
            state, what = "STOPPED", "will keep all resources stopped"
        else:
            yield _line("Resource management: enabled")
            return
        yield _point(_span("Resource management: "), _bold(state), _span(f" (the cluster {what})"))

    def _node_tags(self) -> Iterator[Tag]:
        yield from _section("Node List", map(self._node, self.nodes))

    def _node(self, node: NodeRow) -> Tag:
        name, words = f"{self.named(node)}:", tuple(self._state_parts(node))
        if not self.is_by_node:
            return _point(_bold(name), *words)
        inside = [*map(_of_item, self.items_on(node))]
        more = [_point(_heading("Resources"), _list(inside))] if inside else []
        return _point(_heading(name), _list([_point(_span("Status:"), *words, *more)]))

    def _state_parts(self, node: NodeRow) -> Iterator[Tag]:
        yield _span(" online", "online") if node.is_online else _span(" OFFLINE", "offline")
        if node.is_standby or node.is_pending:
            yield _span(f" (in standby{', with active resources' if node.running else ''})", "standby")
        if node.is_maintenance:
            yield _span(" (in maintenance mode)", "maint")
        if node.health != "green":
            yield _span(f" (health is {node.health.upper()})", f"health_{node.health}")
        if self.has_feature_set(node):
            yield _span(f", feature set {node.feature_set}")

    def _resource_tags(self) -> Iterator[Tag]:
        items = [*map(_of_item, self.resource_items())]
        if self.is_by_node:
            if self.is_inactive and (items or self.wanted is not None):
                yield from _section("Inactive Resources", items or [_line("No inactive resources")])
            return
        title = "Full List of Resources" if self.is_inactive else "Active Resources"
        yield from _section(title, items or [_line("No resources" if self.is_inactive else "No active resources")])

    def _attribute_tags(self) -> Iterator[Tag]:
        found = []
        for node, status in self.online():
            lines = [_line(f"{name}: {value}") for name, value in self.shown_attributes(status).items()]
            if lines:
                found.append(_point(_heading(f"{self.named(node)}:"), _list(lines)))
        yield from _section("Node Attributes", found)

    def _history_tags(self) -> Iterator[Tag]:
        title = "Operations" if self.has_operations else "Migration Summary"
        heads = (Item(f"{each.text}:", each.inside, is_head=True) for each in self.history_items())
        yield from _section(title, map(_of_item, heads))

    def _failure_tags(self) -> Iterator[Tag]:
        yield from _section("Failed Resource Actions", map(_line, self.failure_words()))

    def _fencing_tags(self) -> Iterator[Tag]:
        for title, lines in self.fencing_lists():
            yield from _section(title, map(_line, lines))

    def _ticket_tags(self) -> Iterator[Tag]:
        tickets = sorted(self.context.cib.status.tickets.items())
        yield from _section("Tickets", (_line(f"{name}:\t{ticket_words(state)}") for name, state in tickets))

    def _ban_tags(self) -> Iterator[Tag]:
        yield from _section("Negative Location Constraints", (_line(self.ban_words(each)) for each in self.bans()))


def _section(title: str, items: Iterable[Tag]) -> Iterator[Tag]:
    """Yield a heading and a list; nothing of an empty list."""
    inside = [*items]
    if inside:
        yield from (Tag("h2", text=title), _list(inside))


def _list(items: Iterable[Tag]) -> Tag:
    return Tag("ul", tuple(items))


def _point(*inside: Tag) -> Tag:
    return Tag("li", inside)


def _line(text: str) -> Tag:
    return Tag("li", text=text)


def _heading(text: str) -> Tag:
    return Tag("h3", text=text)


def _span(text: str, kind: str = "") -> Tag:
    return Tag("span", text=text, kind=kind)


def _bold(text: str) -> Tag:
    return _span(text, "bold")


def _of_item(item: Item) -> Tag:
    if item.row is not None:
        return _point(_span(item.text, _class_of(item.row)))
    if item.is_head:
        return _point(_heading(item.text), *([_list(map(_of_item, item.inside))] if item.inside else []))
    return _line(item.text)


def _class_of(row: PrimitiveRow) -> str:
    """Return how a primitive is coloured."""
    if not row.is_managed:
        return "rsc-managed"
    if row.is_failed or not row.nodes:
        return "rsc-failed"
    return "rsc-multiple" if len(row.nodes) > 1 else "rsc-ok"
