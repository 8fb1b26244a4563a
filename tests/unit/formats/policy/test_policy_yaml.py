"""Policy YAML: what is read, and what is refused with which code at which place."""

import re
from pathlib import Path

import pytest

from haclusterd.commands.verify.configuration import verify
from haclusterd.formats.crm.syntax import Arrangement, show
from haclusterd.formats.policy.yaml import Mode, assemble, dump_policy, load_policy, read_policy
from haclusterd.model.configuration import AttributeSet, Configuration
from haclusterd.reports.items import has_errors

ROOT = Path(__file__).parents[4]
REFERENCE = ROOT / "docs" / "reference" / "policy-yaml.md"


def read(text: str, variables: dict[str, str] | None = None) -> Configuration:
    policy = load_policy(text, "f", variables)
    assert policy.reports == ()
    assert policy.configuration is not None
    return policy.configuration


def faults(text: str, variables: dict[str, str] | None = None) -> list[tuple[str, str]]:
    policy = load_policy(text, "f", variables)
    assert (policy.configuration is None) == has_errors(policy.reports)
    return [(str(report.code), str(report.place)) for report in policy.reports]


def test_a_whole_document_means_what_the_same_crm_text_means() -> None:
    text = """\
nodes:
  n1: {description: left, attributes: {rack: left}, utilization: {cpu: 4}}
  n2:
properties:
  node-timeout: 2s
resource-defaults:
  - {values: {resource-stickiness: 100}}
  - {id: night, score: 5, values: {resource-stickiness: 0}}
operation-defaults: {timeout: 30s}
resources:
- group: shop
  members: [address, web]
  description: the shop
  parameters: {x: "1"}
  meta: {target-role: Started}
- primitive: address
  agent: IPaddr2
- primitive: web
  agent: ocf:haclusterd:http-service
  description: ""
  parameters: {command: 'a b', ready_url: "http://h/"}
  meta: {priority: 10}
  utilization: {cpu: 2}
  operations:
  - start:
  - monitor: {interval: 10, timeout: 500ms, role: slave, on-fail: block, start-delay: 1s, enabled: no, requires: quorum}
  - monitor: {id: deep, interval: PT1M, parameters: {OCF_CHECK_LEVEL: 10}, meta: {timeout: 1}}
- fence-device: power
  agent: stonith:fence_ipmilan
constraints:
- {location: l, resource: shop, node: n1, score: -inf}
- {colocation: c, resource: power, with: web, score: 5, role: Started, with-role: Promoted, node-attribute: rack,
   influence: off}
- {order: o, first: power, then: web, kind: optional, first-action: STOP, then-action: start, symmetrical: no,
   require-all: 0}
"""
    assert show(read(text), arrangement=Arrangement.DOCUMENT) == """\
node n1 description=left \\
	attributes rack=left \\
	utilization cpu=4
node n2
group shop address web description="the shop" \\
	params x=1 \\
	meta target-role=Started
primitive address ocf:heartbeat:IPaddr2
primitive web ocf:haclusterd:http-service \\
	params command="a b" ready_url="http://h/" \\
	meta priority=10 \\
	utilization cpu=2 \\
	op start $id=web-start-0 interval=0 \\
	op monitor $id=web-monitor-10 interval=10 timeout=500ms role=Unpromoted on-fail=block start-delay=1s \
enabled=false requires=quorum \\
	op monitor $id=deep interval=PT1M OCF_CHECK_LEVEL=10 op_meta timeout=1
primitive power stonith:fence_ipmilan
location l shop -inf: n1
colocation c 5: power:Started web:Promoted node-attribute=rack influence=false
order o Optional: power:stop web:start symmetrical=false require-all=false
property cib-bootstrap-options: \\
	node-timeout=2s
rsc_defaults rsc-options: \\
	resource-stickiness=100
rsc_defaults $id=night 5: \\
	resource-stickiness=0
op_defaults op-options: \\
	timeout=30s
"""  # fmt: skip


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("0x10", "0x10"),
        ("010", "010"),
        ("1.10", "1.10"),
        ("2020-01-01", "2020-01-01"),
        ("'~'", "~"),
        ("''", ""),
        ('"a\\tb"', "a\tb"),
        ("a: b", None),
        ("${X}y${X}", "1y1"),
        ("$${X}", "${X}"),
        ("'a $ b'", "a $ b"),
        ('"${BRACES}"', "{x: [1]}"),
        ("|-\n    a", "a"),
    ],
)
def test_values_are_what_they_spell(written: str, value: str | None) -> None:
    text = f"properties:\n  a: {written}\n"
    variables = {"X": "1", "BRACES": "{x: [1]}"}
    if value is None:
        assert faults(text, variables)
    else:
        assert read(text, variables).properties == (AttributeSet("cib-bootstrap-options", (("a", value),)),)


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        # the YAML itself
        ("a: [1", "SYNTAX", "f:1:6"),
        ("a: b: c", "SYNTAX", "f:1:5"),
        ("\ta: 1", "SYNTAX", "f:1:1"),
        ("nodes:\n  n1:\n- x", "SYNTAX", "f:3:1"),
        ("nodes: &x", "SYNTAX", "f:1:8"),
        ("nodes: *x", "SYNTAX", "f:1:8"),
        ("nodes: !!python/object:os.system {}", "SYNTAX", "f:1:8"),
        ("nodes:\n--- \nnodes:", "SYNTAX", "f:2:1"),
        ("nodes: {<<: {}}", "SYNTAX", "f:1:9"),
        ("nodes: {? [a] : b}", "SYNTAX", "f:1:11"),
        ('nodes: {n1: {description: "\\UFFFFFFFF"}}', "SYNTAX", "f:1"),
        ("nodes: {\x01}", "BAD_CHARACTER", "f:1:9"),
        ("[" * 90, "TOO_LARGE", "f:1:66"),
        ("{" * 90, "TOO_LARGE", "f:1:66"),
        ("a: " + "{b: [" * 90, "TOO_LARGE", "f:1:168"),
        ("#" * 1_000_001, "TOO_LARGE", "f:1"),
        ("nodes: {n1: , n1: }", "DUPLICATE_NAME", "f:1:15"),
        # the document
        ("- nodes", "WRONG_TYPE", "f:1:1"),
        ("node:", "UNKNOWN_KEY", "f:1:1"),
        ("nodes: [n1]", "WRONG_TYPE", "f:1:8"),
        ("nodes: {a/b: }", "BAD_ID", "f:1:9"),
        ("nodes: {n1: {colour: red}}", "UNKNOWN_KEY", "f:1:14"),
        ("nodes: {n1: {description: ~}}", "WRONG_TYPE", "f:1:27"),
        ("properties: 5", "WRONG_TYPE", "f:1:13"),
        ("properties: {a: }", "WRONG_TYPE", "f:1:16"),
        ("properties: {a: [1]}", "WRONG_TYPE", "f:1:17"),
        ("properties: {'a b': 1}", "BAD_VALUE", "f:1:14"),
        ('properties: {a: "\\x07"}', "BAD_CHARACTER", "f:1:17"),
        ("properties: [{values: {}, weight: 1}]", "UNKNOWN_KEY", "f:1:27"),
        ("properties: [{id: 9}]", "BAD_VALUE", "f:1:19"),
        ("properties: [{score: high}]", "BAD_VALUE", "f:1:22"),
        ("properties: [{id: a}, {id: a}]", "DUPLICATE_ID", "f:1:23"),
        ("resources: {}", "WRONG_TYPE", "f:1:12"),
        ("resources: [x]", "WRONG_TYPE", "f:1:13"),
        ("resources: [{tag: x}]", "SYNTAX", "f:1:13"),
        ("resources: [{primitive: p, group: p}]", "SYNTAX", "f:1:13"),
        ("resources: [{primitive: 9p, agent: Dummy}]", "BAD_VALUE", "f:1:25"),
        ("resources: [{primitive: p}]", "MISSING_KEY", "f:1:13"),
        ("resources: [{primitive: p, agent: 'a:b'}]", "BAD_VALUE", "f:1:35"),
        ("resources: [{primitive: p, agent: 'stonith:x'}]", "BAD_VALUE", "f:1:35"),
        ("resources: [{fence-device: p, agent: Dummy}]", "BAD_VALUE", "f:1:38"),
        ("resources: [{primitive: p, agent: Dummy, params: {}}]", "UNKNOWN_KEY", "f:1:42"),
        ("resources: [{primitive: p, agent: Dummy}, {primitive: p, agent: Dummy}]", "DUPLICATE_ID", "f:1:55"),
        ("resources: [{primitive: p, agent: Dummy, operations: {}}]", "WRONG_TYPE", "f:1:54"),
        ("resources: [{primitive: p, agent: Dummy, operations: [monitor]}]", "WRONG_TYPE", "f:1:55"),
        ("resources: [{primitive: p, agent: Dummy, operations: [{a: , b: }]}]", "SYNTAX", "f:1:55"),
        ("resources: [{primitive: p, agent: Dummy, operations: [{monitor: 5}]}]", "WRONG_TYPE", "f:1:65"),
        ("resources: [{primitive: p, agent: Dummy, operations: [{monitor: {every: 5}}]}]", "UNKNOWN_KEY", "f:1:66"),
        ("resources: [{primitive: p, agent: Dummy, operations: [{monitor: {interval: x}}]}]", "BAD_VALUE", "f:1:76"),
        ("resources: [{primitive: p, agent: Dummy, operations: [{monitor: {enabled: x}}]}]", "BAD_VALUE", "f:1:75"),
        ("resources: [{primitive: p, agent: Dummy, operations: [{monitor: {role: x}}]}]", "BAD_VALUE", "f:1:72"),
        ("resources: [{group: g}]", "MISSING_KEY", "f:1:13"),
        ("resources: [{group: g, members: a b}]", "WRONG_TYPE", "f:1:33"),
        ("resources: [{group: g, members: [9]}]", "BAD_ID", "f:1:34"),
        ("resources: [{group: g, members: [[a]]}]", "WRONG_TYPE", "f:1:34"),
        ("constraints: [{location: l, resource: r, node: n}]", "MISSING_KEY", "f:1:15"),
        ("constraints: [{location: l, resource: r, node: n, score: x}]", "BAD_VALUE", "f:1:58"),
        ("constraints: [{location: l, resource: r, node: n, score: 1, rule: x}]", "UNKNOWN_KEY", "f:1:61"),
        ("constraints: [{colocation: c, resource: r, with: s, score: 1, influence: x}]", "BAD_VALUE", "f:1:74"),
        ("constraints: [{order: o, first: r, then: s, kind: x}]", "BAD_VALUE", "f:1:51"),
        ("constraints: [{order: o, first: r, then: s, first-action: x}]", "BAD_VALUE", "f:1:59"),
        # variables
        ("properties: {a: 'x ${NONE}'}", "UNDEFINED_VARIABLE", "f:1:17"),
        ("properties: {a: '${a b}'}", "SYNTAX", "f:1:17"),
        ("properties: {a: '${A'}", "SYNTAX", "f:1:17"),
        ("constraints: [{location: l, resource: r, node: n, score: '${NONE}'}]", "UNDEFINED_VARIABLE", "f:1:58"),
    ],
)
def test_a_wrong_document_is_refused_with_code_and_place(text: str, code: str, place: str) -> None:
    assert faults(text) == [(code, place)]


def test_all_faults_are_reported_at_once() -> None:
    text = """\
nodes:
  n1: [1]
propertys: {a: 1}
properties: {a: ~, b: "${NONE}", b: 2}
resources:
  - primitive: p
    agent: ocf:heartbeat:foo:bar
    paramters: {}
    operations:
      - monitor: {interval: soon, every: 1}
constraints:
  - {location: l, score: lots}
"""
    assert faults(text) == [
        ("WRONG_TYPE", "f:2:7"),
        ("UNKNOWN_KEY", "f:3:1"),
        ("WRONG_TYPE", "f:4:17"),
        ("UNDEFINED_VARIABLE", "f:4:23"),
        ("DUPLICATE_NAME", "f:4:34"),
        ("BAD_VALUE", "f:7:12"),
        ("UNKNOWN_KEY", "f:8:5"),
        ("BAD_VALUE", "f:10:29"),
        ("UNKNOWN_KEY", "f:10:35"),
        ("SYNTAX", "f:12:5"),
        ("SYNTAX", "f:12:5"),
        ("BAD_VALUE", "f:12:26"),
    ]


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("propertys: {a: 1}", "did you mean properties?"),
        ("properties: {a: '${NODE_DIR}'}", "did you mean NODES_DIR?"),
        ("properties: {a: 1", "close it with }, or write the comma"),
        ("tags: {t: [a}", "close it with ], or write the comma"),
        ("properties:\n  a: b: c", "put a value that has one in quotes, or begin a line of its own with it"),
        ("properties:\n  a: @b", "put the value in quotes"),
        ("properties:\n  a: &.", "put the value in quotes"),
        ("properties:\n  a: 'b", "close it"),
        ("properties:\n  a: 1\nb\n", "write NAME: VALUE; indent continuation lines"),
        ("properties:\n  a: 1\n 2", "indent it like its neighbours"),
        ("properties: {a: }", 'write "" for an empty value'),
        ("constraints: [{location: l, resource: r, node: n}]", "add score: ..."),
    ],
)
def test_remedies(text: str, remedy: str) -> None:
    (report,) = load_policy(text, "f", {"NODES_DIR": "/x"}).reports
    assert report.remedy == remedy


@pytest.mark.parametrize("text", ["", "# nothing\n", "~", "{}"])
def test_nothing_is_an_empty_configuration(text: str) -> None:
    assert read(text) == Configuration()
    assert dump_policy(Configuration()) == ""


def test_aliases_cannot_multiply() -> None:
    lines = ["a: &a [x]"] + [
        f"{name}: &{name} [*{old}, *{old}]" for old, name in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    assert faults("\n".join(lines)) == [("SYNTAX", "f:1:4")]


def test_an_update_keeps_what_a_file_does_not_name() -> None:
    base = read("properties: {a: 1}\nresources: [{primitive: p, agent: Dummy}, {primitive: q, agent: Dummy}]")
    script = read_policy("properties: {b: 2}\nresources: [{primitive: p, agent: Stateful}]", "f")
    made = assemble(script.statements, base=base, mode=Mode.UPDATE)
    assert made.reports == ()
    assert list(made.configuration.resources) == ["p", "q"]
    assert made.configuration.properties[0].pairs == (("a", "1"), ("b", "2"))


def test_dump() -> None:
    text = """\
nodes:
  n1: null
  n2:
    description: 'yes: it is'
    attributes:
      rack: left
properties:
  node-timeout: 2s
  maintenance-mode: false
  cluster-name: 'null'
resources:
  - primitive: web
    agent: ocf:heartbeat:Dummy
    parameters:
      port: 80
      empty: ''
      pattern: $${X}
    meta:
      - score: 5
        values:
          priority: 10
    operations:
      - monitor: {interval: 10s, timeout: 20s, parameters: {OCF_CHECK_LEVEL: 10}}
  - group: site
    members: [web]
constraints:
  - location: l
    resource: site
    node: n1
    score: -INFINITY
  - order: o
    first: web
    then: site
    symmetrical: false
"""
    assert dump_policy(read(text)) == text


NOUNS = """\
nodes:
  n1:
    id: 1
    type: remote
    score: 5
resource-defaults:
  - id: business
    rule:
      score: INFINITY
      all:
        - {date: date_spec, spec: {hours: 9-17}}
    values:
      resource-stickiness: INFINITY
templates:
  - template: t
    agent: ocf:heartbeat:Dummy
    operations:
      - monitor: {interval: 10s, record-pending: true}
resources:
  - primitive: a
    template: t
  - clone: c
    resource: a
    meta:
      promotable: true
  - bundle: b
    engine: podman
    image: i:1
    replicas: 2
    network:
      ip-range-start: 10.0.0.1
      add-host: false
      ports:
        - {port: 80}
    storage:
      - {target-dir: /t, source-dir: /s}
tags:
  both: [a, b]
constraints:
  - location: l
    pattern: web.*
    rules:
      - score: 100
        any:
          - {attribute: '#uname', is: eq, value: n1}
          - rule:
              all:
                - {attribute: pingd, is: defined}
                - {date: gt, start: 2030-01-01}
    resource-discovery: never
  - colocation: k
    score: 5
    sets:
      - {resources: [a, b], sequential: false}
      - {resources: [c], role: Promoted}
  - order: o
    first: a
    then: b
    lifetime:
      - all:
          - {date: lt, end: 2030-01-31}
  - ticket-constraint: t1
    ticket: paris
    resource: both
    loss-policy: freeze
fencing-topology:
  - {target: n1, index: 1, devices: [f1, f2]}
  - {attribute: rack, value: '', index: 2, devices: [f1]}
"""


def test_all_nouns_are_read_and_written_as_they_are() -> None:
    policy = load_policy(NOUNS, "f")
    assert policy.reports == ()
    assert policy.configuration is not None
    assert dump_policy(policy.configuration) == NOUNS


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("templates: [{template: t}]", "MISSING_KEY", "f:1:13"),
        ("resources: [{primitive: p}]", "MISSING_KEY", "f:1:13"),
        ("resources: [{primitive: p, template: t}]", "UNKNOWN_TEMPLATE", "f:1:38"),
        ("resources: [{clone: c}]", "MISSING_KEY", "f:1:13"),
        ("resources: [{bundle: b, engine: rocket, image: i}]", "BAD_VALUE", "f:1:33"),
        ("resources: [{bundle: b, engine: podman, image: i, replicas: -1}]", "BAD_VALUE", "f:1:61"),
        ("tags: {t: []}", "SYNTAX", "f:1:8"),
        ("constraints: [{location: l, resource: a, node: n}]", "MISSING_KEY", "f:1:15"),
        ("constraints: [{location: l, resource: a, rules: [{all: [{x: 1}]}]}]", "SYNTAX", "f:1:57"),
        ("constraints: [{location: l, resource: a, rules: [{all: [{attribute: x, is: eq}]}]}]",
         "MISSING_KEY", "f:1:57"),
        ("constraints: [{location: l, resource: a, rules: [{all: [], any: []}]}]", "SYNTAX", "f:1:50"),
        ("constraints: [{order: o, sets: [{resources: []}]}]", "SYNTAX", "f:1:45"),
        ("constraints: [{ticket-constraint: t, ticket: p}]", "MISSING_KEY", "f:1:15"),
        ("fencing-topology: [{index: 1, devices: [f]}]", "SYNTAX", "f:1:20"),
        ("fencing-topology: [{target: n, index: one, devices: [f]}]", "BAD_VALUE", "f:1:39"),
    ],
)  # fmt: skip
def test_a_wrong_object_is_refused_with_code_and_place(text: str, code: str, place: str) -> None:
    assert faults(text) == [(code, place)]


# -- shipped files ----------------------------------------------------------------------------------------------------

VARIABLES = {
    "COMMAND": "/bin/true", "READY_URL": "http://127.0.0.1:1/", "NODES_DIR": "/run/nodes", "SCORES": "n1:10 n2:5",
}  # fmt: skip


@pytest.mark.parametrize("path", sorted((ROOT / "policies").glob("*.yaml")), ids=lambda path: path.name)
def test_shipped_policies_are_read_and_valid(path: Path) -> None:
    policy = load_policy(path.read_text(), path.name, VARIABLES)
    assert policy.reports == ()
    assert policy.configuration is not None
    assert verify(policy.configuration, members={}, agents=None, places=policy.places) == ()


def test_the_demonstration_has_what_it_shows() -> None:
    text = (ROOT / "policies" / "demo.yaml").read_text()
    made = read(text, VARIABLES)
    assert made.resources["site"].members == ("token", "web")
    assert [device.id for device in made.fence_devices()] == ["power"]
    assert [(c.id, c.node, c.score) for c in made.constraints.values()] == [("site-prefers-n1", "n1", 50)]
    assert {place for code, place in faults(text) if code == "UNDEFINED_VARIABLE"} == {
        place for _, place in faults(text)
    }


def test_the_reference_shows_what_can_be_read() -> None:
    documents = re.findall(r"```yaml\n(nodes.*?)```", REFERENCE.read_text(), re.DOTALL)
    assert documents
    for text in documents:
        policy = load_policy(text, "reference", {"PORT": "80"})
        assert policy.reports == ()
        assert policy.configuration is not None
        assert not has_errors(verify(policy.configuration, members={}, agents=None, places=policy.places))


@pytest.mark.parametrize(("levels", "is_too_deep"), [(15, False), (16, True), (17, True)])
def test_rules_are_nested_so_deep_and_no_deeper(levels: int, is_too_deep: bool) -> None:
    rule = "{attribute: x, is: defined}"
    for _ in range(levels):
        rule = "{rule: {all: [" + rule + "]}}"
    text = f"constraints:\n  - location: l\n    resource: a\n    rules:\n      - score: 5\n        all: [{rule}]\n"
    messages = [item.message for item in read_policy(text, "policy", {}).reports]
    assert messages == (["a rule is larger than 16 rules in each other"] if is_too_deep else [])
