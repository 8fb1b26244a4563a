"""The Ansible collection asks what the program answers, by its words and arguments; its documentation is whole.

Without Ansible: the modules are read, not imported. `make ansible` runs them.
"""

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from haclusterd.api.routes import routes
from haclusterd.cli.options import parse_globals
from haclusterd.cli.parsing import parse
from haclusterd.verbs.table import VERBS

COLLECTION = Path(__file__).parents[2] / "ansible"
MODULES = sorted((COLLECTION / "plugins" / "modules").glob("*.py"))
YAML = sorted(path for path in COLLECTION.rglob("*.y*ml"))
GIVEN: dict[str, dict[str, Any]] = {
    "status": {},
    "node.show": {"node": "n1"},
    "resource.status": {"resources": ["web"]},
    "configure.show": {},
    "configure.get_property": {},
    "configure.apply": {
        "source": "site.yaml", "prune": "site", "format": "yaml", "variables": ["A=1", "B=2"], "difference": True,
    },
    "node.online": {"node": "n1"},
    "node.standby": {"node": "n1"},
    "node.maintenance": {"node": "n1", "ready": True},
    "resource.start": {"resources": ["web"]},
    "resource.stop": {"resources": ["web"]},
    "resource.promote": {"resource": "db"},
    "resource.demote": {"resource": "db"},
    "resource.manage": {"resources": ["web"], "unmanage": True},
    "resource.maintenance": {"resource": "web", "state": "off"},
    "resource.move": {"resource": "web", "node": "n2"},
    "resource.clear": {"resource": "web"},
    "resource.cleanup": {"resource": "web", "node": "n2"},
}  # fmt: skip
"""Arguments for each verb that the modules ask."""
READ_BY_CRM = {"source": "file"}
"""What `crm` reads itself: a file, which it sends as the verb's text."""


def constants(path: Path) -> dict[str, Any]:
    """Return what a module says of itself in plain values."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found


@pytest.fixture(scope="module")
def program() -> Iterator[ModuleType]:
    """What the modules share, with nothing where it imports Ansible: only its tables are looked at."""
    names = ("ansible", "ansible.module_utils", "ansible.module_utils.basic", "ansible.module_utils.common",
             "ansible.module_utils.common.text", "ansible.module_utils.common.text.converters",
             "ansible.module_utils.urls")  # fmt: skip
    empty = {name: ModuleType(name) for name in names}
    for name, what in (("basic", "AnsibleModule"), ("common.text.converters", "to_text"), ("urls", "open_url")):
        setattr(empty[f"ansible.module_utils.{name}"], what, None)
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(empty)
    try:
        spec = importlib.util.spec_from_file_location(
            "collection_program", COLLECTION / "plugins" / "module_utils" / "program.py"
        )
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        yield made
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def test_every_verb_that_is_asked_is_tried_here(program: ModuleType) -> None:
    assert set(program.WORDS) == set(GIVEN)


@pytest.mark.parametrize("verb", GIVEN)
def test_what_is_typed_asks_the_verb_with_the_arguments(program: ModuleType, verb: str) -> None:
    asked = parse(parse_globals(["-o", "json", "--dry-run", *program.WORDS[verb](GIVEN[verb])]).words)
    assert asked.command.verb == verb
    read = {READ_BY_CRM.get(name, name): value for name, value in GIVEN[verb].items()}
    assert {name: value for name, value in asked.arguments.items() if value is not False} == read


@pytest.mark.parametrize("verb", GIVEN)
def test_over_rest_the_verb_takes_these_arguments_by_this_method(program: ModuleType, verb: str) -> None:
    assert set(GIVEN[verb]) <= {argument.name for argument in VERBS[verb].arguments}
    methods = {route.method for route in routes() if route.verb.name == verb}
    assert ("GET" if verb in program.READS else "POST") in methods


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_verbs_in_a_modules_table_are_asked_and_its_states_documented(program: ModuleType, path: Path) -> None:
    said = constants(path)
    options = yaml.safe_load(said["DOCUMENTATION"])["options"]
    table = said.get("VERBS", {})
    assert {verb for verb, *_ in table.values()} <= set(program.WORDS)
    if table:
        assert set(options["state"]["choices"]) == set(table)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_documentation_names_every_argument_and_no_other(path: Path) -> None:
    said = constants(path)
    about = yaml.safe_load(said["DOCUMENTATION"])
    assert about["module"] == path.stem
    assert [each for each in yaml.safe_load(said["EXAMPLES"]) if f"haclusterd.cluster.{path.stem}" in each]
    assert all(each["description"] and each["returned"] for each in yaml.safe_load(said["RETURN"]).values())
    (spec,) = [
        node.value for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "SPEC"
    ]  # fmt: skip
    assert isinstance(spec, ast.Dict)
    assert {key.value for key in spec.keys if isinstance(key, ast.Constant)} == set(about["options"])


def test_the_connection_is_documented_as_it_is(program: ModuleType) -> None:
    text = (COLLECTION / "plugins" / "doc_fragments" / "connection.py").read_text()
    (made,) = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    said = {
        node.targets[0].id: yaml.safe_load(ast.literal_eval(node.value))
        for node in made.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }  # fmt: skip
    for documented, spec in (("DOCUMENTATION", program.CONNECTION), ("CHANGES", program.CHANGES)):
        options = said[documented]["options"]
        assert set(options) == set(spec)
        for name, each in spec.items():
            assert (options[name]["type"], options[name].get("default")) == (each["type"], each.get("default"))
    assert program.CONNECTION["token"]["no_log"] is True


@pytest.mark.parametrize("path", YAML, ids=lambda path: str(path.relative_to(COLLECTION)))
def test_files_of_yaml_can_be_read(path: Path) -> None:
    assert yaml.safe_load(path.read_text())


def test_the_roles_variables_are_described() -> None:
    role = COLLECTION / "roles" / "cluster"
    described = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text())
    assert set(defaults) <= set(described)
    page = (role / "README.md").read_text()
    assert [name for name in described if f"`{name}`" not in page] == []
