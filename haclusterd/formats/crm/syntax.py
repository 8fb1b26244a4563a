"""The crm language: `crm configure` text into statements, statements into a configuration, a configuration into text.

Other packages use this module only, and `writer` where nothing is read. Reading never raises, whatever the text; all
faults of a text are reported at once, and a text with one error is not used at all. `show` writes what reads back as an
equal configuration.

    script = parse_script(text, "web.crm")
    made = assemble(script.statements, base=configuration, mode=Mode.UPDATE)
    if not has_errors(script.reports + made.reports): ... made.configuration
"""

from collections.abc import Collection, Sequence

from haclusterd.formats.assembly import Assembly, Mode, assemble
from haclusterd.formats.crm.parser import KEYWORDS, SECTIONS, read_statement
from haclusterd.formats.crm.tokens import Line, from_words, read_lines
from haclusterd.formats.crm.writer import Arrangement, show
from haclusterd.formats.statements import AddOperation, Define, MergeSet, Script, Statement
from haclusterd.model.ids import AgentReference
from haclusterd.reports.items import FAULTS_MAX, ReportItem, has_errors, in_reading_order

__all__ = [
    "KEYWORDS",
    "SECTIONS",
    "AddOperation",
    "Arrangement",
    "Assembly",
    "Define",
    "MergeSet",
    "Mode",
    "Script",
    "Statement",
    "assemble",
    "parse_script",
    "parse_words",
    "show",
]


def parse_script(text: str, file: str, *, known_agents: Collection[AgentReference] = ()) -> Script:
    """Read a whole text; `file` is its name in reports. `known_agents` resolve agents written without a provider."""
    lines, reports = read_lines(text, file)
    return _read(lines, reports, known_agents)


def parse_words(
    words: Sequence[str], *, file: str = "command line", known_agents: Collection[AgentReference] = ()
) -> Script:
    """Read one statement that a shell has split into words, as in `crm configure primitive ...`."""
    tokens = from_words(words, file)
    return _read((Line(tokens, text=" ".join(words)),) if tokens else (), (), known_agents)


def _read(lines: Sequence[Line], reports: Sequence[ReportItem], known_agents: Collection[AgentReference]) -> Script:
    statements: list[Statement] = []
    found = list(reports)
    unread = set[str]()
    # Of a statement that has no end nobody knows what it would have defined.
    is_known = not reports
    for line in lines:
        if len(found) > FAULTS_MAX:
            break
        made, objections = read_statement(line, known_agents)
        found += objections
        if not has_errors(objections):
            statements += made
        else:
            unread.update(token.text.partition(":")[0] for token in line.tokens[1:2])
            is_known = is_known and line.tokens[0].text != "xml"
    is_known = is_known and len(found) <= FAULTS_MAX
    return Script(tuple(statements), in_reading_order(found), frozenset(unread) if is_known else None)
