"""What is written is read back as it was; whatever is read, nothing raises."""

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haclusterd.commands.verify.configuration import verify
from haclusterd.formats.crm.syntax import Arrangement, assemble, parse_script, parse_words, show
from haclusterd.formats.policy.yaml import dump_policy, load_policy
from haclusterd.model.configuration import Configuration
from haclusterd.reports.codes import Code
from haclusterd.reports.rendering import render
from tests.examples import examples
from tests.replicated_values import values_of
from tests.written_configurations import configurations

_relaxed = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
_fuzzed = settings(_relaxed, max_examples=examples(200))


def read_crm(text: str) -> Configuration:
    script = parse_script(text, "shown")
    made = assemble(script.statements)
    assert not script.reports, script.reports
    assert not made.reports, made.reports
    return made.configuration


def read_yaml(text: str) -> Configuration:
    policy = load_policy(text, "dumped")
    assert policy.configuration is not None, policy.reports
    return policy.configuration


def in_order(configuration: Configuration) -> tuple[list[str], list[str], list[str]]:
    return list(configuration.nodes), list(configuration.resources), list(configuration.constraints)


@settings(_relaxed, max_examples=examples(100))
@given(configuration=configurations())
def test_crm_text_reads_back_as_an_equal_configuration(configuration: Configuration) -> None:
    text = show(configuration)
    again = read_crm(text)
    assert again == configuration
    assert show(again) == text
    again = read_crm(show(configuration, arrangement=Arrangement.DOCUMENT))
    assert again == configuration
    assert in_order(again) == in_order(configuration)


@settings(_relaxed, max_examples=examples(100))
@given(configuration=configurations())
def test_yaml_reads_back_as_an_equal_configuration(configuration: Configuration) -> None:
    text = dump_policy(configuration)
    again = read_yaml(text)
    assert again == configuration
    assert in_order(again) == in_order(configuration)
    assert dump_policy(again) == text


def exercise(text: str) -> None:
    """Read a text in every way and tell what was found."""
    script = parse_script(text, "text")
    made = assemble(script.statements)
    policy = load_policy(text, "text", {"X": "1"})
    words = parse_words(text.split())
    for item in (*script.reports, *made.reports, *policy.reports, *words.reports):
        assert "\n" not in render(item)
        # That there are too many faults is said of the text as a whole.
        assert item.place is not None or item.code is Code.MORE_FAULTS


@_fuzzed
@given(text=st.text())
def test_no_text_raises(text: str) -> None:
    exercise(text)


_WORDS = """
primitive group location colocation order property rsc_defaults op_defaults monitor node clone ms xml tag a b n1
ocf:heartbeat:Dummy stonith:x params meta utilization op op_params op_meta monitor operations rule $id=x $id-ref=y
$x:a=1 @x interval=10s timeout=5 interval=x role=Started enabled=perhaps a=1 a= =1 a inf: -inf: 100: Mandatory:
Sometimes: a:Started a:promote a:x ( ) [ ] { } /x.*/ \\ # ' " description=x symmetrical=no node-attribute=z
influence=true 1: x:remote
"""


@_fuzzed
@given(words=st.lists(st.sampled_from([*_WORDS.split(), "\\\n", "\n"]), max_size=12))
def test_no_crm_words_raise(words: list[str]) -> None:
    exercise(" ".join(words))


_YAML = st.sampled_from(
    ["nodes:", "properties:", "resources:", "constraints:", "- primitive: a", "- group: g", "- fence-device: f",
     "- location: l", "- colocation: c", "- order: o", "agent: ocf:x:y", "agent: stonith:x", "members: [a, a]",
     "operations:", "- monitor: {interval: 1s}", "- start:", "parameters:", "a: 1", "a: ${X}", "a: ${Y}", "a: ~",
     "- {id: x, score: 1, values: {a: 1}}", "score: 5", "resource: a", "node: n1", "with: b", "first: a", "then: b",
     "meta: {a: [1]}", "[", "{", "&x", "*x", "!!str a", "? a", "<<: {}", "---", "...", "\t", '"\\UFFFFFFFF"', "%YAML 3"]
)  # fmt: skip


@_fuzzed
@given(lines=st.lists(st.tuples(st.integers(0, 4), _YAML), max_size=14))
def test_no_yaml_lines_raise(lines: list[tuple[int, str]]) -> None:
    exercise("\n".join("  " * indent + line for indent, line in lines))


@settings(_relaxed, max_examples=examples(40))
@given(configuration=configurations(), seed=st.integers(0, 2**32))
def test_no_damaged_text_raises(configuration: Configuration, seed: int) -> None:
    chance = random.Random(seed)
    for text in (show(configuration), dump_policy(configuration)):
        start = chance.randrange(len(text) + 1)
        exercise(
            text[:start]
            + chance.choice(["", "\\", '"', "\n", " ", "$", ":", "[", "}"])
            + text[start + chance.randrange(3) :]
        )


@settings(_relaxed, max_examples=examples(60))
@given(configuration=st.one_of(configurations(), values_of(Configuration)))
def test_no_configuration_makes_verification_raise(configuration: Configuration) -> None:
    for item in verify(configuration, members={}, agents={}, places=None):
        assert item.message
