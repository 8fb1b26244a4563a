"""Writes the reference pages that are made from tables of the program, so that the two cannot differ.

`make reference` runs it; tests/house/test_documents.py fails when a page is not what it would write.
"""

import ast
import subprocess
import tomllib
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, Union

from haclusterd.adapters.agents.metadata import read_agent_metadata, read_description
from haclusterd.cli.command_table import LEVELS, ROOT
from haclusterd.cli.grammar import Command, Level
from haclusterd.cli.parsing import UsageError, parse
from haclusterd.machines.controller import DC_STATES
from haclusterd.machines.executing.acting_alone import RESETS, STEPS
from haclusterd.machines.executing.executor import INCARNATIONS
from haclusterd.machines.executing.resource_queue import QUEUES
from haclusterd.machines.joining import JOINING
from haclusterd.machines.planning import PLANS
from haclusterd.machines.transitions.tracked_actions import ACTIONS
from haclusterd.machines.transitions.transition import TRANSITIONS
from haclusterd.model import durations
from haclusterd.model.fence_parameters import DEVICE_PARAMETERS
from haclusterd.model.ids import AgentReference
from haclusterd.model.operations import OPERATION_ATTRIBUTES
from haclusterd.model.properties import CLUSTER_PROPERTIES, META_ATTRIBUTES, Row, ValueType
from haclusterd.model.property_tables import PACEMAKERS_PROPERTIES
from haclusterd.model.records import fields, is_dataclass
from haclusterd.model.state_tables import TransitionTable
from haclusterd.runtime.leaving import PRESENCES
from haclusterd.runtime.members.member_change import CHANGES
from haclusterd.runtime.requests.dialogue import STAGES
from haclusterd.runtime.requests.event_followers import FOLLOWS
from haclusterd.verbs.answers.answer import (
    PLAIN,
    as_json,
    hints_of,
    may_be_absent,
    name_of,
    parts_of,
    records_in,
    wire_name,
)
from haclusterd.verbs.answers.table import ANSWERS
from haclusterd.verbs.table import VERBS

HERE = Path(__file__).parent

HEAD = """# Properties, meta-attributes, attributes of operations, parameters of fence devices

Made from the tables in `haclusterd/model` by `make reference`; do not edit. Older names are read as their newer ones.
Whatever is not listed here is refused when it is configured. *since*: the feature level of the first version whose
clusters obey it as they do now (`crm cluster members` shows it).
"""

COLUMNS = "| name | values | default | meaning | since |\n|---|---|---|---|---|"


def properties_page() -> str:
    """Return the page about properties and meta-attributes."""
    sections = (
        ("Cluster properties", "crm configure property NAME=VALUE", CLUSTER_PROPERTIES),
        ("Meta-attributes of resources", "crm configure primitive ID AGENT meta NAME=VALUE", META_ATTRIBUTES),
        ("Attributes of operations", "crm configure primitive ID AGENT op ACTION NAME=VALUE", OPERATION_ATTRIBUTES),
        ("Parameters of fence devices for the cluster", "crm configure primitive ID stonith:AGENT params NAME=VALUE",
         DEVICE_PARAMETERS),
    )
    parts = [HEAD]
    for title, use, rows in sections:
        parts.append(f"## {title}\n\n`{use}`\n\n{COLUMNS}\n{_table(rows)}\n")
    return "\n".join(parts)


def _table(rows: tuple[Row, ...]) -> str:
    return "\n".join(
        f"| `{row.name}`{_aliases(row)} | {_values(row)} | {f'`{row.default}`' if row.default else ''} | {row.doc} "
        f"| {row.since} |"
        for row in rows
    )


def _aliases(row: Row) -> str:
    return "".join(f"<br>(`{alias}`)" for alias in row.aliases)


def _values(row: Row) -> str:
    if row.live == ():
        return f"{_possible(row)}; only in plans for Pacemaker's CIBs"
    if row.live is not None:
        return f"{_possible(row)}; in a running cluster only {', '.join(f'`{value}`' for value in row.live)}"
    return _possible(row)


def _possible(row: Row) -> str:
    if row.choices:
        return ", ".join(f"`{choice}`" for choice in row.choices)
    spell = durations.render if row.type is ValueType.DURATION else str
    bounds = [f"from {spell(row.minimum)}" if row.minimum is not None else ""]
    bounds.append(f"up to {spell(row.maximum)}" if row.maximum is not None else "")
    return " ".join(part for part in (str(row.type), *bounds) if part)


CRM_HEAD = """# The commands of crm

Made from `haclusterd/verbs/` by `make reference`; do not edit. `crm help COMMAND` says the same at the prompt.
The language of `crm configure`, and the exit codes: [design/cli.md](../design/cli.md).
"""


def crm_page() -> str:
    """Return the page about the levels and commands of `crm`."""
    return "\n".join([CRM_HEAD, *(_level(level) for level in (ROOT, *LEVELS))])


def _level(level: Level) -> str:
    title = f"## crm {level.name}" if level.name else "## crm"
    lead = f"\n\n{level.help}." if level.help else ""
    rows = "\n".join(_command(command) for command in level.commands)
    return f"{title}{lead}\n\n| command | meaning | example |\n|---|---|---|\n{rows}\n"


def _command(command: Command) -> str:
    options = (f"[{option.usage}]" for option in command.options)
    words = (command.name, *(parameter.usage for parameter in command.parameters), *options)
    usage = " ".join(words).replace("|", "\\|")
    also = f" (also `{'`, `'.join(command.aliases)}`)" if command.aliases else ""
    example = f"`{command.examples[0]}`" if command.examples else ""
    return f"| `{usage}`{also} | {command.help} | {example} |"


COMPATIBILITY_HEAD = """# Compatibility with Pacemaker and crmsh

Made by `make reference` from the program's tables and from [compatibility.toml](compatibility.toml); do not edit. What
an administrator of Pacemaker finds here, row by row. Each row's examples are tried by a test. The
commands of crmsh, word by word: [crmsh.md](crmsh.md).

* **works**: a running cluster does it. **differs**: it does something else, or only a part, as the row says.
* **warned**: accepted, with a warning or a note that names it. **refused**: not accepted; the message names it.
* **absent**: there is no such thing, and no word for it that would be accepted.
* *since*: the feature level of the first version in whose clusters it is so (`crm cluster members` shows it).
"""


def compatibility_page() -> str:
    """Return the page about what becomes of Pacemaker's and crmsh's features."""
    data = tomllib.loads((HERE / "compatibility.toml").read_text())
    numbers = count(1)
    parts = [COMPATIBILITY_HEAD]
    for chapter in data["chapter"]:
        rows = "\n".join(_feature(next(numbers), row) for row in chapter["row"])
        head = f"## {chapter['title']}\n\nSource: {chapter['source']}.\n\n"
        parts.append(f"{head}| # | what | here | how | since |\n|---|---|---|---|---|\n{rows}\n")
    for title, rows_of in SETTINGS:
        table = "\n".join(_setting(row) for row in rows_of)
        columns = "| name | here | default | values | since |\n|---|---|---|---|---|"
        parts.append(f"## Every setting: {title}\n\n{columns}\n{table}\n")
    parts.append(_left_out())
    return "\n".join(parts)


SETTINGS = (
    ("properties of the cluster", CLUSTER_PROPERTIES),
    ("meta-attributes", META_ATTRIBUTES),
    ("operations", OPERATION_ATTRIBUTES),
    ("parameters of fence devices that are for the cluster", DEVICE_PARAMETERS),
)


def _feature(number: int, row: dict[str, Any]) -> str:
    since = max([row.get("since", 1), *(_row_of(name).since for name in row.get("settings", ()))])
    shown = since if row["here"] in ("works", "differs", "warned") else ""
    return f"| {number} | {row['subject']} | {row['here']} | {row['text']} | {shown} |"


def _row_of(name: str) -> Row:
    return next(row for _, rows in SETTINGS for row in rows if name in (row.name, *row.aliases))


def _setting(row: Row) -> str:
    default = f"`{row.default}`" if row.default else ""
    return f"| `{row.name}`{_aliases(row)} | {here(row)} | {default} | {_values(row)} | {row.since} |"


def here(row: Row) -> str:
    """Say what becomes of a setting in a running cluster."""
    if row.live is None:
        return "works"
    if row.is_harmless:
        return "warned"
    return "refused" if not row.live else "works; other values refused"


def _left_out() -> str:
    lines = "\n".join(f"| `{name}` | {why} |" for name, why in sorted(PACEMAKERS_PROPERTIES.items()))
    return f"## Properties that are left out, and named\n\n| name | why |\n|---|---|\n{lines}\n"


CRMSH_HEAD = """# The commands of crmsh, and what they are here

Made by `make reference` from [crmsh-words.toml](crmsh-words.toml) and `haclusterd/cli/other_tools.py`; do not edit.
What is no command here answers with what to type. Options and forms of output can differ: [crm.md](crm.md).

{works} of {all} commands of crmsh 4.4 work; {named} answer with an equivalent; {absent} are not supported.

| level | works | answers with what to type | not supported |
|---|---|---|---|
"""


def crmsh_page() -> str:
    """Return the page about the words of crmsh."""
    levels = {name: words.split() for name, words in tomllib.loads((HERE / "crmsh-words.toml").read_text()).items()}
    rows, counts = [], [0, 0, 0]
    for name, words in levels.items():
        cells: tuple[list[str], list[str], list[str]] = ([], [], [])
        for word in words:
            answer = said_to(name, word)
            cells[2 if answer.startswith("not supported") else 1 if answer else 0].append(f"`{word}`")
        counts = [known + len(cell) for known, cell in zip(counts, cells, strict=True)]
        rows.append(f"| {name} | {' | '.join(' '.join(cell) for cell in cells)} |")
    works, named, absent = counts
    head = CRMSH_HEAD.format(works=works, named=named, absent=absent, all=sum(counts))
    return head + "\n".join(rows) + "\n"


def said_to(level: str, word: str) -> str:
    """Return what is answered to a word that is no command; empty for a command."""
    try:
        parse([word] if level == "root" else [level, word])
    except UsageError as error:
        return error.remedy if error.problem.startswith("there is no command") else ""
    return ""


STATES_HEAD = """# State machines

Made from the transition tables of the program by `make reference`; do not edit. An event for which a table has no line
cannot happen: it would end the daemon. What is not in a table (which event it is, and what is done) is code beside it.
"""


def states_page() -> str:
    """Return the page with a picture of each state machine."""
    return "\n".join([STATES_HEAD, *(_picture(table, place) for place, table in TABLES)])


def _picture(table: TransitionTable[Any, Any], place: str) -> str:
    states = list(type(table.initial[0]))
    names = {state: state.name.lower() for state in states}
    lines = ["stateDiagram-v2", *(f"    [*] --> {names[each]}" for each in table.initial)]
    lines += [f"    {names[state]}: {state}" for state in states if str(state) != names[state]]
    for each in table.transitions:
        if each.sources == tuple(states):
            lines += [f"    state any <<choice>>\n    any --> {names[each.target]}: {each.event}"]
        else:
            lines += [f"    {names[source]} --> {names[each.target]}: {each.event}" for source in each.sources]
    picture = "\n".join(dict.fromkeys("\n".join(lines).splitlines()))
    return f"## {table.name}\n\n`haclusterd/{place}`. {table.meaning}\n\n```mermaid\n{picture}\n```\n"


AGENTS = HERE.parents[1] / "resource_agents"
AGENT_NAMES = sorted(each.name for each in AGENTS.iterdir() if not each.suffix and not each.name.startswith("fence_"))


def agents_page() -> str:
    """Return the list of the agents that come with the program."""
    rows = "\n".join(f"| [{name}]({name}.md) | {_described(name)['shortdesc']} |" for name in AGENT_NAMES)
    head = "Made from the agents' own metadata by `make reference`; do not edit."
    return f"# Agents that come with haclusterd\n\n{head}\n\n| `ocf:haclusterd:` | what it is |\n|---|---|\n{rows}\n"


def agent_page(name: str) -> str:
    """Return the page of one agent."""
    described = _described(name)
    parts = [
        f"# ocf:haclusterd:{name}",
        f"Made from the agent's own metadata by `make reference`; do not edit. Examples and exit codes are in"
        f" [its own page](../../../resource_agents/{name}.md).",
        f"{described['shortdesc']}. OCF version {described['version']}.",
        described["longdesc"],
        "## Parameters",
        "\n".join([
            "| name | type | default | meaning |", "|---|---|---|---|",
            *(f"| {_parameter_name(each)} | {_parameter_type(each)} | {_default(each)} | {_meaning(each)} |"
              for each in described["parameters"]),
        ]),
        "## Operations",
        "\n".join([
            "| name | timeout | interval | more |", "|---|---|---|---|",
            *(f"| {each['name']} | {each.get('timeout', '')} | {each.get('interval', '')} | {_more(each)} |"
              for each in described["actions"]),
        ]),
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def _described(name: str) -> dict[str, Any]:
    text = subprocess.run([AGENTS / name, "meta-data"], check=True, capture_output=True, text=True).stdout
    found = read_agent_metadata(text, AgentReference.parse(f"ocf:haclusterd:{name}"))
    described: dict[str, Any] = as_json(read_description(text, name, ""))
    for each in described["parameters"]:
        facts = found.parameters[each["name"]]
        each["words"] = [word for word, holds in (
            ("required", facts.is_required), ("unique", facts.is_unique), ("secret", facts.is_private),
            ("may change while it runs", facts.is_reloadable),
        ) if holds]  # fmt: skip
    return {**described, "version": found.version}


def _parameter_name(parameter: dict[str, Any]) -> str:
    words = ", ".join(parameter["words"])
    return f"`{parameter['name']}`" + (f"<br>({words})" if words else "")


def _parameter_type(parameter: dict[str, Any]) -> str:
    return f"{parameter['type']}: {', '.join(parameter['options'])}" if parameter["options"] else str(parameter["type"])


def _default(parameter: dict[str, Any]) -> str:
    return f"`{parameter['default']}`" if parameter["default"] else ""


def _meaning(parameter: dict[str, Any]) -> str:
    text = parameter["longdesc"] or parameter["shortdesc"]
    return " ".join(text.split()).replace("|", "\\|")


def _more(action: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in action.items() if name not in ("name", "timeout", "interval"))


TABLES = (
    ("machines/controller.py", DC_STATES),
    ("machines/planning.py", PLANS),
    ("machines/transitions/transition.py", TRANSITIONS),
    ("machines/transitions/tracked_actions.py", ACTIONS),
    ("machines/executing/resource_queue.py", QUEUES),
    ("machines/executing/executor.py", INCARNATIONS),
    ("machines/executing/acting_alone.py", STEPS),
    ("machines/executing/acting_alone.py", RESETS),
    ("machines/joining.py", JOINING),
    ("runtime/requests/dialogue.py", STAGES),
    ("runtime/members/member_change.py", CHANGES),
    ("runtime/leaving.py", PRESENCES),
    ("runtime/requests/event_followers.py", FOLLOWS),
)

ANSWERS_HEAD = """# What verbs answer

Made from `haclusterd/verbs/answers/` by `make reference`; do not edit. It is what `crm -o json` prints and what REST
answers (its OpenAPI document has the same as JSON Schema). Each is an object with `schema`, the fields below,
and `reports`. A field that was released stays; fields are added. Times are milliseconds since 1970.

A verb that changes nothing, because it is so already, answers `haclusterd.reports/1`, which has `reports` alone; with
`--dry-run` the answer of a change is `haclusterd.preview/1`.
"""


def answers_page() -> str:
    """Return the page with every answer of every verb."""
    parts = [ANSWERS_HEAD]
    shown: set[type] = set()
    for schema, kind in sorted(ANSWERS.items()):
        asked = ", ".join(f"`{verb.name}`" for verb in VERBS.values() if name_of(schema) in verb.answers)
        lead = _first_line(kind) + (f" Answered by {asked}." if asked else "")
        parts.append(f"## {schema}\n\n{lead}\n\n{_fields(kind)}")
        for record in records_in(kind)[1:]:
            if record not in shown:
                parts.append(f"### {record.__name__}\n\n{_first_line(record)}\n\n{_fields(record)}")
                shown.add(record)
    return "\n".join(parts)


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").partition("\n")[0]


def _fields(kind: type) -> str:
    meanings = _meanings(kind)
    absent = {each.name for each in fields(kind) if may_be_absent(each)}
    rows = "\n".join(
        f"| `{wire_name(name)}` | {_type(hint, may_be_absent=name in absent)} | {meanings.get(name, '')} |"
        for name, hint in hints_of(kind).items()
    )
    return f"| field | type | meaning |\n|---|---|---|\n{rows}\n" if rows else ""


def _type(hint: object, *, may_be_absent: bool) -> str:
    origin, arguments, may_be_null = parts_of(hint)
    if is_dataclass(origin):
        found = str(getattr(origin, "__name__", ""))
    elif origin is tuple:
        found = f"list of {_type(arguments[0], may_be_absent=False)}"
    elif origin in PLAIN:
        found = PLAIN[origin]
    elif origin is Union and all(each in PLAIN for each in arguments):
        found = " or ".join(PLAIN[each] for each in arguments)
    else:
        found = f"object of {_type(arguments[1], may_be_absent=False)}" if len(arguments) == 2 else "JSON"
    return found + (", or absent" if may_be_absent else " or null" if may_be_null else "")


def _meanings(kind: type) -> dict[str, str]:
    """Return the docstrings of a dataclass's fields, its bases' too."""
    found: dict[str, str] = {}
    for base in (each for each in reversed(kind.__mro__) if each.__module__.startswith("haclusterd.")):
        body = _classes(base.__module__).get(base.__name__)
        previous: ast.stmt | None = None
        for statement in body.body if body is not None else ():
            field = previous.target if isinstance(previous, ast.AnnAssign) else None
            text = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(field, ast.Name) and isinstance(text, ast.Constant):
                found[field.id] = " ".join(str(text.value).split())
            previous = statement
    return found


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    path = HERE.parents[1] / (module.replace(".", "/") + ".py")
    return {each.name: each for each in ast.parse(path.read_text()).body if isinstance(each, ast.ClassDef)}


PAGES = {
    "answers.md": answers_page,
    "state-machines.md": states_page,
    "crmsh.md": crmsh_page,
    "properties.md": properties_page,
    "crm.md": crm_page,
    "compatibility.md": compatibility_page,
    "agents/README.md": agents_page,
    **{f"agents/{name}.md": partial(agent_page, name) for name in AGENT_NAMES},
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).parent.mkdir(exist_ok=True)
        (HERE / name).write_text(page())
