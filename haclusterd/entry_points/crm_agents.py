"""`crm ra`: the agents of this machine, without asking any daemon.

Nothing but `meta-data` and `validate-all` is run, which start and change nothing (OCF Resource Agent API 1.1). An agent
that hangs is ended; one that prints no meta-data is named.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from haclusterd.adapters.agents.fence_directories import FenceDirectories
from haclusterd.adapters.agents.metadata import MetadataError, read_description
from haclusterd.adapters.agents.surroundings import AgentDirectories
from haclusterd.adapters.agents.survey import find_agent, metadata_text, survey, validated, why_not_executed
from haclusterd.adapters.agents.unit_files import UnitFiles
from haclusterd.adapters.machine.installation import (
    agent_library,
    agent_search_path,
    share_directory,
)
from haclusterd.entry_points.crm_setup import answer, read_text, read_texts
from haclusterd.formats.agent_names import DEFAULT_PROVIDERS
from haclusterd.model.agents import AgentFacts
from haclusterd.model.ids import RUN_HERE, UNITS, AgentReference
from haclusterd.model.json_value import Json
from haclusterd.model.ocf import ExitCode
from haclusterd.model.requests import Response
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import did_you_mean
from haclusterd.verbs.answers.agents import AgentClasses, AgentTypes
from haclusterd.verbs.answers.answer import as_json

WITHOUT_PARAMETERS = "units and init scripts take no parameters: docs/howto/use-a-systemd-unit.md"


class Machine:
    """Where this machine's agents are."""

    def __init__(self) -> None:
        share = share_directory()
        self.directories = AgentDirectories(
            shipped=share / "resource_agents", search=agent_search_path(), shims=share / "shims",
            library=agent_library(share),
        )  # fmt: skip
        self.fence_directories = FenceDirectories.installed(share)

    def listed(self, standard: str) -> list[AgentReference]:
        """Return the agents of a class."""
        if standard == "stonith":
            return [AgentReference("stonith", None, name) for name in self.fence_directories.listing()]
        found = self.directories.listing()
        if standard not in ("service", "systemd"):
            return [each for each in found if each.standard == standard]
        units = UnitFiles().listing()
        scripts = [each.type for each in found if each.standard == "lsb"] if standard == "service" else []
        return [AgentReference(standard, None, name) for name in sorted({*units, *scripts})]

    def find(self, agent: AgentReference) -> Path | None:
        """Return an agent's program."""
        return find_agent(agent, self.directories, self.fence_directories)

    def named(self, word: str) -> AgentReference | ReportItem:
        """Return the agent that a word means: `IPaddr2`, `ocf:heartbeat:IPaddr2`, `stonith:fence_scsi`."""
        known = [*self.listed("ocf"), *self.listed("stonith")]
        if ":" in word:
            try:
                agent = AgentReference.parse(word)
            except ValueError:
                return report(Code.BAD_ARGUMENT, name="AGENT", problem=f"{word!r} is not CLASS:PROVIDER:TYPE")
            if agent.standard in UNITS:
                return report(Code.BAD_ARGUMENT, name="AGENT", problem=WITHOUT_PARAMETERS)
            if self.find(agent) is not None:
                return agent
            found = [each for each in known if str(each) == word]
            unfit = self.directories.find(agent) if agent.standard == "ocf" else None
            if not found and unfit is not None:
                return report(Code.NO_INPUT, file=word, problem="it is not executable", remedy=f"chmod 755 {unfit}")
        else:
            order = {name: at for at, name in enumerate(DEFAULT_PROVIDERS)}
            found = [each for each in known if each.type == word]
            found.sort(key=lambda each: order.get(each.provider or "", len(order)))
        if found:
            return found[0]
        names = [str(each) for each in known] if ":" in word else [each.type for each in known]
        remedy = did_you_mean(word, names, "crm ra list ocf")
        return report(Code.UNKNOWN_AGENT, where="crm ra", agent=word, remedy=remedy)


def survey_here(agents: Iterable[AgentReference]) -> Mapping[str, AgentFacts]:
    """Return what agents of this machine say of themselves."""
    machine = Machine()
    return survey(agents, machine.directories, machine.fence_directories, UnitFiles())


def classes(_arguments: Mapping[str, Json]) -> Response:
    """Answer the classes, with the providers of ocf (schema `haclusterd.agent_classes/1`)."""
    providers = sorted({each.provider or "" for each in Machine().listed("ocf")})
    return answer([], as_json(AgentClasses(tuple(RUN_HERE), tuple(providers))))


def listing(arguments: Mapping[str, Json]) -> Response:
    """Answer the types of a class, or of one provider (schema `haclusterd.agents/1`)."""
    standard, provider = read_text(arguments, "class"), read_text(arguments, "provider")
    found = Machine().listed(standard)
    if provider and standard != "ocf":
        return answer([report(Code.BAD_ARGUMENT, name="PROVIDER", problem=f"class {standard} has none")])
    providers = {each.provider or "" for each in found}
    if provider and provider not in providers:
        remedy = did_you_mean(provider, providers, f"there are: {', '.join(sorted(providers))}")
        return answer([report(Code.BAD_ARGUMENT, name="PROVIDER", problem="it is not here", remedy=remedy)])
    types = sorted(sorted({each.type for each in found if provider in ("", each.provider)}), key=str.lower)
    return answer([], as_json(AgentTypes(standard, tuple(types))))


def info(arguments: Mapping[str, Json]) -> Response:
    """Answer an agent's meta-data (schema `haclusterd.agent/1`)."""
    machine = Machine()
    agent = machine.named(read_text(arguments, "agent"))
    if isinstance(agent, ReportItem):
        return answer([agent])
    path = machine.find(agent)
    assert path is not None
    try:
        described = read_description(metadata_text(agent, path, machine.directories), str(agent), str(path))
    except (OSError, MetadataError) as error:
        problem = why_not_executed(path, error) if isinstance(error, OSError) else error
        return answer([report(Code.NO_INPUT, file=f"{path} meta-data", problem=problem, remedy="")])
    return answer([], as_json(described))


def providers(arguments: Mapping[str, Json]) -> Response:
    """Answer who provides a type (schema `haclusterd.agents/1`)."""
    wanted = read_text(arguments, "type")
    found = [each.provider or "" for each in Machine().listed("ocf") if each.type == wanted]
    if not found:
        return answer([report(Code.UNKNOWN_AGENT, where="crm ra", agent=wanted, remedy="crm ra list ocf")])
    return answer([], as_json(AgentTypes("ocf", tuple(sorted(found)))))


def validate(arguments: Mapping[str, Json]) -> Response:
    """Have an agent judge parameters; the exit status is 0 when it finds no fault."""
    machine = Machine()
    agent = machine.named(read_text(arguments, "agent"))
    if isinstance(agent, ReportItem):
        return answer([agent])
    pairs = [word.partition("=") for word in read_texts(arguments, "parameters")]
    wrong = next((name for name, has_value, _ in pairs if not (name and has_value)), None)
    if wrong is not None:
        return answer([report(Code.BAD_ARGUMENT, name="PARAMETERS", problem=f"{wrong!r}: write NAME=VALUE")])
    if agent.standard != "ocf":
        return answer([report(Code.BAD_ARGUMENT, name="AGENT", problem="only agents of class ocf judge parameters")])
    path = machine.find(agent)
    assert path is not None
    try:
        printed, code = validated(agent, path, {name: value for name, _, value in pairs}, machine.directories)
    except (OSError, ValueError) as error:
        return answer([report(Code.NO_INPUT, file=f"{path} validate-all", problem=str(error), remedy="")])
    if code == ExitCode.OK:
        return answer([report(Code.NOTHING_TO_DO, state=f"{agent} finds no fault with these parameters")])
    words = "it did not end in time, or printed too much" if code is None else f"exit code {code} ({_words(code)})"
    output = "; ".join(filter(None, (" ".join(line.split()) for line in printed.splitlines())))
    return answer([report(Code.BAD_VALUE, name=str(agent), problem=f"{words}: {output}" if output else words)])


def _words(code: int) -> str:
    return ExitCode.read(code).name.lower().replace("_", " ")


COMMANDS: Mapping[str, Callable[[Mapping[str, Json]], Response]] = {
    "classes": classes, "list": listing, "info": info, "providers": providers, "validate": validate,
}  # fmt: skip
