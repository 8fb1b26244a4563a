"""Each value of the scheduler's entities is written by one package; the others read it, or ask that package."""

import ast

import pytest

from haclusterd.scheduler.model.definition import Definition
from tests.house.writers import EXCEPTIONS, WRITERS, all_breaches, attributes, breaches


def test_no_stage_writes_what_another_stage_has_worked_out() -> None:
    assert list(all_breaches()) == []


@pytest.mark.parametrize(
    ("package", "statement"),
    [
        ("assign", "resource.found.is_managed = False"),
        ("scores", "resource.found.required_stops.add(node.name)"),
        ("scores", "resource.assignment.allowed[node.name] = 0"),
        ("assign", "resource.scores.add(node.name, 1, 'x')"),
        ("order", "resource.assignment.node = None"),
        ("order", "action.is_optional = False"),
        ("actions", "action.is_graphed = True"),
        ("actions", "node.is_online, seen = True, 1"),
        ("assign", "del resource.definition"),
        ("graph", "resource.children[0] = action.resource"),
        ("order", "found = resource.found; found.is_failed = True"),
    ],
)
def test_a_breach_is_noticed(package: str, statement: str) -> None:
    body = statement.replace("; ", "\n    ")
    tree = ast.parse(f"def change(resource: Resource, node: Node | None, action: Action):\n    {body}\n")
    assert len(list(breaches(package, tree))) == 1


@pytest.mark.parametrize(
    ("package", "statement"),
    [
        ("unpack", "resource.found.is_managed = False"),
        ("scores", "resource.scores.add(node.name, 1, 'x')"),
        ("actions", "action.is_optional = False"),
        ("graph", "action.is_graphed = True"),
        ("assign", "table.append(resource.assignment.allowed.get(node.name))"),
    ],
)
def test_what_is_a_stages_own_is_no_breach(package: str, statement: str) -> None:
    tree = ast.parse(f"def change(resource: Resource, node: Node, action: Action):\n    {statement}\n")
    assert list(breaches(package, tree)) == []


def test_every_exception_is_an_attribute() -> None:
    known = attributes()
    assert {(name, attribute) for name, attribute in EXCEPTIONS if attribute not in known[name]} == set()
    assert all(known[name] for name in WRITERS)


def test_a_definition_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Definition().is_managed = False
