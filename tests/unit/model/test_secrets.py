"""References to secrets: what is one, and what they are in the configuration that is in force."""

import pytest

from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import AttributeSet, Configuration, Operation, Primitive
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.secrets import (
    Secret,
    Secrets,
    is_reference,
    masked,
    objection_to,
    reference_of,
    sealed_value,
    with_revisions,
)

WEB = Primitive(
    ResourceId("web"), AgentReference("ocf", "test", "web"),
    parameters=(AttributeSet("p", (("password", "secret:db"), ("port", "80"), ("other", "secret:none"))),),
    operations=(Operation("o", "monitor", 1000, parameters=(AttributeSet("q", (("login", "secret:db"),)),)),),
)  # fmt: skip
PLAIN = Primitive(ResourceId("plain"), WEB.agent, parameters=(AttributeSet("r", (("port", "81"),)),))
CONFIGURATION = Configuration(resources={WEB.id: WEB, PLAIN.id: PLAIN})
SECRETS = Secrets(1, "k", {}, {"db": Secret(7, "newest", earlier={"5": "before"})})


@pytest.mark.parametrize(("text", "found"), [
    ("secret:db", ("db", None)), ("secret:db@7", ("db", 7)), ("secret:a.b-c_1", ("a.b-c_1", None)),
    ("secret:", None), ("secret:1", None), ("secret:a b", None), ("xsecret:a", None), ("secret:a\n", None),
    (f"secret:{'a' * 65}", None), ("secret", None), ("", None),
])  # fmt: skip
def test_what_is_a_reference(text: str, found: object) -> None:
    assert reference_of(text) == found
    assert is_reference(text) is (found is not None)
    assert is_reference("lrm://")


def test_in_force_a_reference_carries_the_revision_of_its_value() -> None:
    cib = Cib(configuration=CONFIGURATION, secrets=SECRETS)
    web = cib.in_force.resources[WEB.id]
    assert isinstance(web, Primitive)
    assert web.parameters[0].pairs == (("password", "secret:db@7"), ("port", "80"), ("other", "secret:none"))
    assert web.operations[0].parameters[0].pairs == (("login", "secret:db@7"),)
    assert cib.in_force.resources[PLAIN.id] is PLAIN
    assert cib.in_force is replace(cib, index=9).in_force, "the same object: a plan may be kept"
    assert with_revisions(cib.in_force, SECRETS) == cib.in_force, "what is in force stays so"
    later = replace(cib, secrets=replace(SECRETS, values={"db": Secret(9, "x")}))
    assert later.in_force.resources[WEB.id].parameters[0].get("password") == "secret:db@9"
    assert Cib(configuration=CONFIGURATION).in_force is CONFIGURATION
    alone = Configuration(resources={PLAIN.id: PLAIN})
    assert with_revisions(alone, SECRETS) is alone


def test_a_revision_is_its_own_value_as_long_as_it_is_kept() -> None:
    assert [sealed_value(SECRETS, "db", revision) for revision in (7, 5, 3, None)] == [
        "newest", "before", "newest", "newest",
    ]  # fmt: skip
    assert sealed_value(SECRETS, "none", 7) is None


@pytest.mark.parametrize(
    "value", ["", "ab", "a" * 1025, "two\nlines", "tab\there", "nul\0", "secret:x", "lrm://", "*****"]
)
def test_what_cannot_be_a_value(value: str) -> None:
    assert objection_to(value)


def test_values_are_taken_out_of_what_agents_say() -> None:
    assert not objection_to("pass word é")
    assert masked("login abcd as abc: abcd", {"abc", "abcd"}) == "login *** as ***: ***"
    assert "newest" not in repr(SECRETS)
