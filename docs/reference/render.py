"""Writes the reference pages that are made from tables of the program, so that the two cannot differ.

`make reference` runs it; tests/house/test_documents.py fails when a page is not what it would write.
"""

from pathlib import Path

from haclusterd.cli.command_table import LEVELS, ROOT
from haclusterd.cli.grammar import Command, Level, Option
from haclusterd.model import durations
from haclusterd.model.properties import CLUSTER_PROPERTIES, META_ATTRIBUTES, Row, ValueType

HERE = Path(__file__).parent

HEAD = """# Cluster properties and meta-attributes

Made from `haclusterd/model/properties.py` by `make reference`; do not edit. Older names are read as their newer ones.
Whatever is not listed here is refused when it is configured.
"""

COLUMNS = "| name | values | default | meaning |\n|---|---|---|---|"


def properties_page() -> str:
    """Return the page about properties and meta-attributes."""
    sections = (
        ("Cluster properties", "crm configure property NAME=VALUE", CLUSTER_PROPERTIES),
        ("Meta-attributes of resources", "crm configure primitive ID AGENT meta NAME=VALUE", META_ATTRIBUTES),
    )
    parts = [HEAD]
    for title, use, rows in sections:
        parts.append(f"## {title}\n\n`{use}`\n\n{COLUMNS}\n{_table(rows)}\n")
    return "\n".join(parts)


def _table(rows: tuple[Row, ...]) -> str:
    return "\n".join(
        f"| `{row.name}`{_aliases(row)} | {_values(row)} | {f'`{row.default}`' if row.default else ''} | {row.doc} |"
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

Made from `haclusterd/cli/command_table.py` by `make reference`; do not edit. `crm help COMMAND` says the same at the
prompt. The language of `crm configure`, and the exit codes: [design/cli.md](../design/cli.md).
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
    words = (command.name, *(parameter.usage for parameter in command.parameters), *map(_option, command.options))
    usage = " ".join(words).replace("|", "\\|")
    also = f" (also `{'`, `'.join(command.aliases)}`)" if command.aliases else ""
    example = f"`{command.examples[0]}`" if command.examples else ""
    return f"| `{usage}`{also} | {command.help} | {example} |"


def _option(option: Option) -> str:
    value = f" {option.argument.upper()}" if option.takes.value != "nothing" else ""
    return f"[{option.flag}{value}]"


PAGES = {"properties.md": properties_page, "crm.md": crm_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page())
