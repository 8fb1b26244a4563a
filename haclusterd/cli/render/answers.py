"""Answers as text: which renderer belongs to which schema.

Rendering sees only the data of the answer, never the CIB, so that an answer looks the same from wherever it came.
"""

import json
from collections.abc import Callable
from typing import Generic, get_type_hints

from haclusterd.cli.render.fields import Fields, fields, text
from haclusterd.cli.render.terminal import Colour, Screen
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass
from haclusterd.model.requests import Response, ShownReport
from haclusterd.protocol.control import report_as_json
from haclusterd.reports.rendering import printable
from haclusterd.verbs.answers.answer import Record, read

Renderer = Callable[[Screen, Fields], list[str]]


@dataclass(frozen=True, slots=True)
class Typed(Generic[Record]):
    """A renderer of one type: the JSON is read as what it takes as `data`."""

    write: Callable[[Screen, Record], list[str]]

    @property
    def kind(self) -> type[Record]:
        """The type of the answer that it writes."""
        found: type[Record] = get_type_hints(self.write)["data"]
        return found

    def __call__(self, screen: Screen, data: Fields) -> list[str]:
        """Write an answer that came as JSON."""
        return self.write(screen, read(self.kind, data))


def renderer(schema: str) -> Renderer | None:
    """Return who writes this schema, loading only what is needed."""
    name, _, version = schema.removeprefix("haclusterd.").partition("/")
    if version != "1":
        return None
    if name == "status":
        from haclusterd.cli.render import status as render_status

        return Typed(render_status.render)
    if name in ("why", "scores"):
        from haclusterd.cli.render import why as render_why

        return Typed(render_why.render_why) if name == "why" else Typed(render_why.render_scores)
    if name == "simulate":
        from haclusterd.cli.render import simulation as render_simulation

        return Typed(render_simulation.render)
    if name == "migration_check":
        from haclusterd.cli.render import migration as render_migration

        return Typed(render_migration.render)
    if name.startswith("fencing"):
        from haclusterd.cli.render import fencing as render_fencing
        from haclusterd.cli.render import tables as render_tables

        fencing: dict[str, Renderer] = {
            "fencing": Typed(render_fencing.render_list),
            "fencing_history": Typed(render_fencing.render_history),
            "fencing_topology": Typed(render_fencing.render_topology),
            "fencing_plan": Typed(render_fencing.render_plan),
            "fencing_confirmed": render_tables.render_nothing,
        }
        return fencing.get(name)
    if name in ("versions", "difference", "transition", "transitions", "history_info", "history_check"):
        from haclusterd.cli.render import history as render_history

        past: dict[str, Renderer] = {
            "versions": Typed(render_history.render_versions),
            "difference": Typed(render_history.render_difference),
            "transition": Typed(render_history.render_transition),
            "transitions": Typed(render_history.render_transitions),
            "history_info": Typed(render_history.render_info),
            "history_check": Typed(render_history.render_check),
        }
        return past.get(name)
    groups = {"agent_": _of_agents, "crm_": _of_crm, "gpu_": _of_gpus, "device": _of_gpus}
    found = next((group for begin, group in groups.items() if name.startswith(begin)), _of_tables)
    return found().get(name)


def _of_agents() -> dict[str, Renderer]:
    """Return who writes the answers of `crm agent`."""
    from haclusterd.cli.render import agent_checks as render_checks
    from haclusterd.cli.render import agents as render_agents

    return {
        "agent_classes": Typed(render_agents.render_classes),
        "agent_new": Typed(render_checks.render_new),
        "agent_environment": Typed(render_checks.render_environment),
        "agent_run": Typed(render_checks.render_run),
        "agent_lint": Typed(render_checks.render_lint),
        "agent_test": Typed(render_checks.render_test),
    }


def _of_gpus() -> dict[str, Renderer]:
    """Return who writes the answers about devices."""
    from haclusterd.cli.render import gpus as render_gpus

    return {
        "devices": Typed(render_gpus.render_devices),
        "device-capacity": Typed(render_gpus.render_capacity),
        "gpu_faults": Typed(render_gpus.render_explanation),
        "gpu_lint": Typed(render_gpus.render_table_check),
        "gpu_simulated": Typed(render_gpus.render_simulated),
    }


def _of_crm() -> dict[str, Renderer]:
    """Return who writes the answers of `crm` itself."""
    from haclusterd.cli.render import own as render_own

    return {
        "crm_options": Typed(render_own.render_settings),
        "crm_cibstatus": Typed(render_own.render_suppositions),
        "crm_scripts": Typed(render_own.render_scripts),
        "crm_templates": Typed(render_own.render_templates),
        "crm_past": Typed(render_own.render_view),
        "crm_outputs": Typed(render_own.render_outputs),
        "crm_transition_tags": Typed(render_own.render_tags),
    }


def _of_tables() -> dict[str, Renderer]:
    """Return who writes the smaller answers."""
    from haclusterd.cli.render import access as render_access
    from haclusterd.cli.render import agents as render_agents
    from haclusterd.cli.render import availability as render_availability
    from haclusterd.cli.render import operations as render_operations
    from haclusterd.cli.render import tables as render_tables

    return {
        "agents": Typed(render_agents.render_list),
        "agent": Typed(render_agents.render_info),
        "operations": Typed(render_operations.render_operations),
        "failcounts": Typed(render_operations.render_failcounts),
        "nodes": Typed(render_tables.render_nodes),
        "node-attributes": Typed(render_tables.render_attributes),
        "resources": Typed(render_tables.render_resources),
        "members": Typed(render_tables.render_members),
        "timing": Typed(render_tables.render_timing),
        "events": Typed(render_tables.render_events),
        "configuration": Typed(render_tables.render_configuration),
        "change": Typed(render_tables.render_change),
        "preview": Typed(render_tables.render_preview),
        "verify": Typed(render_tables.render_verify),
        "shadows": Typed(render_tables.render_shadows),
        "graph": Typed(render_tables.render_text),
        "schema": Typed(render_tables.render_schema),
        "validate-all": Typed(render_tables.render_validations),
        "properties": Typed(render_tables.render_properties),
        "fence": render_tables.render_nothing,
        "leader": render_tables.render_nothing,
        "cleanup": render_tables.render_nothing,
        "restart": render_tables.render_nothing,
        "setup": Typed(render_tables.render_setup),
        "invitation": Typed(render_tables.render_invitation),
        "membership": render_tables.render_nothing,
        "certificates": Typed(render_tables.render_certificates),
        "verdict": Typed(render_tables.render_verdict),
        "setting": Typed(render_tables.render_setting),
        "alerts": Typed(render_tables.render_alerts),
        "alert_tests": Typed(render_tables.render_alert_tests),
        "availability": Typed(render_availability.render),
        "tickets": Typed(render_tables.render_tickets),
        "api_token": Typed(render_tables.render_token),
        "api_tokens": Typed(render_tables.render_token_list),
        "secrets": Typed(render_tables.render_secrets),
        "secret": Typed(render_tables.render_secret),
        "whoami": Typed(render_tables.render_whoami),
        "acl_verdict": Typed(render_access.render_verdict),
        "acl_rights": Typed(render_access.render_rights),
        "acl_list": Typed(render_access.render_list),
    }


def render_data(screen: Screen, data: Json) -> list[str]:
    """Write an answer's data; what nobody knows is written as JSON."""
    answer = fields(data)
    if not answer:
        return []
    write = renderer(text(answer, "schema"))
    return json.dumps(data, indent=2, ensure_ascii=False).splitlines() if write is None else write(screen, answer)


_SEVERITY_COLOURS = {"error": Colour.BAD, "warning": Colour.WARN, "info": Colour.CYAN}


def render_report(screen: Screen, report: ShownReport) -> str:
    """Write a report on one line."""
    level = screen.paint(f"{report.severity.upper()}:", _SEVERITY_COLOURS.get(report.severity))
    place = f"{report.place}: " if report.place else ""
    remedy = f" ({report.remedy})" if report.remedy else ""
    return f"{level} {printable(f'{place}{report.message}{remedy}')}"


def answer_as_json(response: Response) -> str:
    """Write an answer for `-o json`: its data, with its reports beside it."""
    data = fields(response.data) or {"schema": "haclusterd.reports/1"}
    answer: Json = {**data, "reports": [report_as_json(each) for each in response.reports]}
    return json.dumps(answer, indent=2, ensure_ascii=False)


def error_as_json(response: Response) -> str:
    """Write a refused request for `-o json`: the first error heads it, `details` has everything."""
    first = next(iter(response.errors), ShownReport("error", "FAILED", "failed"))
    error: Json = {
        "code": first.code, "exit": response.exit, "message": first.message, "hint": first.remedy,
        "details": [report_as_json(each) for each in response.reports],
    }  # fmt: skip
    return json.dumps({"error": error}, indent=2, ensure_ascii=False)
