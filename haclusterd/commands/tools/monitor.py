"""crm_mon: the state of the cluster as Pacemaker's text, XML and web page (crm_mon(8) of Pacemaker 2.1.5)."""
import re
from collections.abc import Mapping

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.tools.call import Given, Tool, ToolCall, ToolUsageError, printed, to_file
from haclusterd.commands.tools.foreign_rows import rows_of
from haclusterd.commands.tools.monitor_html import TITLE, HtmlView, page
from haclusterd.commands.tools.monitor_text import TextView
from haclusterd.commands.tools.monitor_view import FENCING, SECTIONS, SUMMARY
from haclusterd.commands.tools.monitor_xml import XmlView
from haclusterd.commands.tools.result import document
from haclusterd.commands.tools.rows import Rows
from haclusterd.formats.cib_xml.elements import quoted
from haclusterd.reports.rendering import counted
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.verbs.verb import Cost

_FORMS = {"xml": "xml", "html": "html", "web_cgi": "html"}
"""Options that stand for a form of the output."""
_CGI_HEAD = "Content-Type: text/html\n\n"
_INTERVAL = re.compile(r"[0-9]+(\.[0-9]+)?(ms|msec|us|usec|s|sec|m|min|h|hr)?", re.ASCII)
_OF_TEXT = SUMMARY | {"nodes", "resources", "failures", "fencing-failed", "fencing-pending"}
_SEVERAL = {"summary": SUMMARY, "fencing": FENCING}
_OF_OPTIONS = {
    "attributes": "attributes", "operations": "operations", "timing": "operations", "failcounts": "failcounts",
    "bans": "bans", "tickets": "tickets",
}  # fmt: skip
_OF_LEVELS = {
    "0": frozenset[str](), "1": frozenset({"fencing-failed", "fencing-pending"}), "2": FENCING, "": FENCING,
    "3": FENCING,
}  # fmt: skip
"""What of the history of fencing each level of `-m` shows; without a level the second."""


def monitor(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_mon: print the state once; a call that would watch for ever prints it once, too."""
    asked = given.any_of("output", *_FORMS)
    form = _FORMS.get(asked) or given.text("output", "text")
    if form not in ("xml", "html", "text", "console", "none"):
        raise ToolUsageError(f"--output-as={form}: text, html or xml")
    _check_interval(given)
    if form == "none":
        return printed()
    if "simple" in given:
        return _simple_as(context, call, given, form)
    if form == "html":
        return _page(context, given, _sections(given, form))
    sections = _sections(given, form)
    if form == "xml":
        lines = list(XmlView(context, sections, given).lines())
        if asked == "xml":
            return printed("\n".join(['<crm_mon version="2.1.5">', *lines, "</crm_mon>", ""]))
        request = quoted(" ".join((call.tool, *call.words)))
        head = f'<pacemaker-result api-version="2.25" request={request}>'
        return printed("\n".join([head, *lines, '  <status code="0" message="OK"/>', "</pacemaker-result>", ""]))
    return printed("".join(f"{line}\n" for line in TextView(context, sections, given).lines()))


def _simple_as(context: Context, call: ToolCall, given: Given, form: str) -> Outcome[ToolOutput]:
    """Answer whether the cluster is well, by the exit status; only as text in words, too, as Pacemaker's tool."""
    found = _simple(rows_of(context))
    status = found.exit_status or 0
    if form == "xml":
        return printed(document(call, (), status), status=status)
    if form == "html":
        return printed(page("", given.text("title", TITLE), given.text("style_sheet")), status=status)
    return found


def _page(context: Context, given: Given, sections: frozenset[str]) -> Outcome[ToolOutput]:
    """Answer the state as a web page; `-h` names the file that it is written to."""
    is_cgi = given.any_of("cgi", "web_cgi") != ""
    text = page(HtmlView(context, sections, given).body(), given.text("title", TITLE), given.text("style_sheet"))
    return to_file(printed(f"{_CGI_HEAD if is_cgi else ''}{text}"), given.text("html") or "-")


def _check_interval(given: Given) -> None:
    interval = given.text("interval", "5")
    if _INTERVAL.fullmatch(interval) is None:
        raise ToolUsageError(f"Invalid value for -i: {interval}")


def _sections(given: Given, form: str) -> frozenset[str]:
    """Return what is shown: the usual, changed by each option in the order of the call."""
    usual = frozenset(SECTIONS) if form == "xml" else _OF_TEXT
    most = frozenset(SECTIONS) - (frozenset() if form in ("xml", "html") else {"options"})
    every = {"all": most, "default": usual, "none": frozenset[str]()}
    chosen = set(usual)
    for option, text in given.pairs:
        if option in _OF_OPTIONS:
            chosen.add(_OF_OPTIONS[option])
        elif option == "hide":
            chosen -= SUMMARY
        elif option == "fence_history":
            if text not in _OF_LEVELS:
                raise ToolUsageError("Fence history must be 0-3")
            chosen = (chosen - FENCING) | _OF_LEVELS[text]
        elif option in ("include", "exclude"):
            for word in filter(None, text.split(",")):
                _choose(chosen, word.strip(), every, is_in=option == "include")
    return frozenset(chosen)


def _choose(chosen: set[str], word: str, every: Mapping[str, frozenset[str]], *, is_in: bool) -> None:
    if word in every and (is_in or word != "default"):
        wanted = every[word] if is_in else every["all"] - every[word]
        chosen.clear()
        chosen.update(wanted)
        return
    name = "bans" if is_in and word.startswith("bans:") else word
    parts = _SEVERAL.get(name, frozenset({name}))
    if not parts <= set(SECTIONS):
        option, own = ("include", ("bans[:PREFIX]", "default")) if is_in else ("exclude", ("bans",))
        known = sorted({*_SEVERAL, *SECTIONS, "all", "none"} - {"bans"} | set(own))
        raise ToolUsageError(f"--{option} options: {', '.join(known)}")
    (chosen.update if is_in else chosen.difference_update)(parts)


def _simple(rows: Rows) -> Outcome[ToolOutput]:
    """Print one line for a monitoring system, and end with its status (0 fine, 1 warning)."""
    nodes = rows.nodes()
    offline = [node for node in nodes if not node.is_online]
    standby = [node for node in nodes if node.is_online and node.is_standby]
    if rows.dc is None:
        return printed("CLUSTER WARN: No DC\n", status=1)
    if offline:
        words = "".join(f" offline node: {node.name}" for node in offline)
        return printed(f"CLUSTER WARN:{words}\n", status=1)
    online = len(nodes) - len(standby)
    more = f", {counted(len(standby), 'standby node')}" if standby else ""
    count = counted(sum(1 for _ in rows.primitives()), "resource instance")
    return printed(f"CLUSTER OK: {counted(online, 'node')} online{more}, {count} configured\n")


TOOLS = {
    "crm_mon": Tool(monitor, {
        "once": "1 one-shot", "output": "output-as:", "xml": "X as-xml", "inactive": "r inactive",
        "by_node": "n group-by-node", "failcounts": "f failcounts", "operations": "o operations",
        "timing": "t timing-details", "attributes": "A show-node-attributes", "tickets": "c tickets",
        "bans": "L? neg-locations?", "fence_history": "m? fence-history?", "brief": "b brief",
        "detail": "R show-detail",
        "include": "I: include:", "exclude": "U: exclude:", "hide": "D hide-headers", "simple": "s simple-status",
        "interval": "i: interval:", "quiet": "Q quiet", "plain": "N disable-ncurses", "fancy": "text-fancy",
        "daemonize": "d daemonize", "pid": "p: pid-file:", "html": "h: as-html:", "web_cgi": "w web-cgi",
        "cgi": "html-cgi", "title": "html-title:", "style_sheet": "html-stylesheet:",
        "destination": "output-to:", "node": "node:", "resource": "resource:",
        "external_agent": "E: external-agent:", "external_recipient": "e: external-recipient:",
        "watch_fencing": "W watch-fencing",
    }, cost=Cost.WHOLE, refused={
        "daemonize": "it prints once; call it from a timer, or watch: crm monitor",
        "external_agent": "an alert calls a program for what happens: crm configure alert NAME PROGRAM",
    }),
}  # fmt: skip
