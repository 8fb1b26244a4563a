"""Access control lists at the one way to the verbs: what is seen, what may be changed, and that no verb tells more."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haclusterd.cib.changes import Change, ChangeKind
from haclusterd.commands import registry
from haclusterd.commands.context import Context, Event
from haclusterd.commands.outcome import AnyOutcome
from haclusterd.commands.permissions import access_of
from haclusterd.model.access import Principal
from haclusterd.model.agents import AgentFacts, ParameterFacts, Validation, ValidationQuestion
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from haclusterd.reports.rendering import render
from haclusterd.simulator.hosts.secrets import SimulatedKeeper
from haclusterd.verbs.verb import Permission
from tests.administered_clusters import NOW, Cluster, ListedPast, running

HIDDEN, SECRET = "zorro", "sesame-9x"
RESOURCES = f"""
primitive address ocf:haclusterd:dummy op monitor interval=10s timeout=20s
primitive web ocf:haclusterd:http-service params command=/bin/true op monitor interval=10s timeout=20s
primitive db ocf:haclusterd:dummy params fake={SECRET} op monitor interval=10s timeout=20s
primitive power stonith:fence_local params pcmk_host_list="n1 n2 n3" nodes_dir=/nodes op monitor interval=60s
primitive {HIDDEN} ocf:haclusterd:dummy op monitor interval=10s timeout=20s
group site address web
location db-likes-n2 db 100: n2
location l-of-{HIDDEN} {HIDDEN} 100: n1
order db-first Mandatory: db site
rsc_defaults resource-stickiness=100
"""
LISTS = f"""
property enable-acl=true
role see read cib
role blind deny ref:{HIDDEN} deny ref:l-of-{HIDDEN} deny xpath:"//lrm_resource[@id='{HIDDEN}']" \\
    deny xpath:"//nvpair[@name='fake']" deny xpath:"//acls"
role web-operator write meta:web:target-role write location:web
role change-all write cib
role first-node write xpath:"//node_state[@uname='n1']"
acl_target alice see blind
acl_target bob see web-operator
acl_target carol change-all blind
acl_target dave operator blind
acl_target grace see first-node
acl_target erin missing-role-only
acl_group ops web-operator see
"""
MISSING = "role missing-role-only read xpath:\"//nothing\""


def cluster() -> Cluster:
    made = running(RESOURCES)
    made.configure(f"{MISSING}\n{LISTS}")
    made.run(HIDDEN, "n1")
    made.run("db", "n2")
    made.run("web", "n1")
    made.count_failure("web", "n1", "monitor", 10_000, 2)
    change = Change(ChangeKind.OPERATION_SUCCEEDED, NodeName("n1"), ResourceId(HIDDEN), f"{HIDDEN} started on n1")
    made.past = ListedPast((Event(3, NOW, change, "root@n1"), Event(4, NOW, Change(
        ChangeKind.OPERATION_SUCCEEDED, NodeName("n1"), ResourceId("web"), f"web started after {HIDDEN}"), "root@n1")))
    return made


BASE = cluster()


def ask(name: str, arguments: dict[str, Json], user: str, *groups: str) -> AnyOutcome:
    access = access_of(BASE.cib.in_force, Principal(user, groups))
    context = Context(BASE.cib, NOW, f"{user}@n1", live=BASE.live, past=BASE.past, access=access, is_forced=True)
    return registry.run(name, arguments, context)


VALIDATED = AgentFacts(
    parameters={"command": ParameterFacts(), "ready_url": ParameterFacts()},
    action_timeouts_ms={"start": 20_000, "validate-all": 5000},
)


class Questions:
    """The questions to agents that a request has; none is answered."""

    def __init__(self) -> None:
        self.wanted: list[ValidationQuestion] = []

    def answer(self, question: ValidationQuestion) -> Validation | None:
        self.wanted.append(question)
        return None


@pytest.mark.parametrize(
    ("user", "resource", "asked"),
    [("bob", "evil", []), ("bob", "web", []), ("alice", "evil", []), ("dave", "evil", []), ("carol", "evil", ["evil"])],
)
def test_no_agent_is_asked_about_parameters_that_may_not_be_set(user: str, resource: str, asked: list[str]) -> None:
    """Agents are asked as root, and many execute what their parameters name (validate-all)."""
    questions = Questions()
    access = access_of(BASE.cib.in_force, Principal(user))
    agents = {"ocf:haclusterd:http-service": VALIDATED}
    context = Context(
        BASE.cib, NOW, f"{user}@n1", live=BASE.live, access=access, is_forced=True, agents=agents, validations=questions
    )
    words = ("primitive", resource, "ocf:haclusterd:http-service", "params", "command=/srv/mine")
    outcome = registry.run(*statement(*words), context)
    assert sorted({question.resource for question in questions.wanted}) == asked
    assert outcome.is_refused == (not asked), said(outcome)


def said(outcome: AnyOutcome) -> str:
    return json.dumps(outcome.data) + "".join(map(render, outcome.reports)) + outcome.waiting_for


def loading(text: str) -> tuple[str, dict[str, Json]]:
    return "configure.load", {"mode": "update", "text": text}


def statement(*words: str) -> tuple[str, dict[str, Json]]:
    return "configure.statement", {"words": list(words)}


READING = ["status", "configure.show", "resource.why", "resource.status", "history.events", "node.show",
           "resource.scores", "simulate", "resource.operations", "metrics", "configure.graph",
           "cluster.names"]  # fmt: skip


@pytest.mark.parametrize("verb", READING)
@pytest.mark.parametrize("user", ["alice", "carol", "dave"])
def test_what_may_not_be_read_is_not_in_the_answer(verb: str, user: str) -> None:
    arguments: dict[str, Json] = {"resource": "web"} if verb in ("resource.why", "resource.operations") else {}
    outcome = ask(verb, arguments, user)
    assert not outcome.is_refused, said(outcome)
    assert outcome.data is not None
    assert HIDDEN not in said(outcome)
    assert SECRET not in said(outcome)
    if verb in ("status", "configure.show", "history.events"):
        assert "web" in said(outcome)


def test_the_cib_is_shown_as_pacemaker_shows_it() -> None:
    shown: Any = ask("tool.run", {"tool": "cibadmin", "words": ["-Q"]}, "alice").data
    assert HIDDEN not in shown["out"]
    assert 'name="fake"' not in shown["out"]
    assert '<primitive id="db"' in shown["out"]
    assert "<acls" not in shown["out"]


@pytest.mark.parametrize("verb", ["status", "configure.show", "history.events", "metrics"])
@pytest.mark.parametrize("user", ["erin", "mallory"])
def test_who_has_no_right_sees_nothing(verb: str, user: str) -> None:
    assert [each.code for each in ask(verb, {}, user).reports] == [Code.ACL_DENIED]


@pytest.mark.parametrize(
    ("user", "verb", "arguments", "is_permitted"),
    [
        ("bob", "resource.stop", {"resources": ["web"]}, True),
        ("bob", "resource.start", {"resources": ["web"]}, True),
        ("bob", "resource.stop", {"resources": ["db"]}, False),
        ("bob", *statement("property", "stonith-enabled=false"), False),
        ("bob", *loading("acl_target bob admin"), False),
        ("bob", *statement("primitive", "evil", "ocf:haclusterd:dummy"), False),
        ("bob", "node.standby", {"node": "n2"}, False),
        ("bob", "resource.cleanup", {"resource": "web"}, False),
        ("bob", "node.fence", {"node": "n2"}, False),
        ("bob", "api.token_add", {"name": "t", "role": "admin", "digest": "0" * 64}, False),
        ("bob", "cluster.backup", {}, False),
        ("alice", "resource.stop", {"resources": ["web"]}, False),
        ("dave", "node.standby", {"node": "n2"}, True),
        ("dave", "resource.stop", {"resources": ["db"]}, True),
        ("dave", "resource.stop", {"resources": [HIDDEN]}, False),
        ("dave", "resource.cleanup", {"resource": "web"}, True),
        ("dave", *statement("property", "stonith-enabled=false"), False),
        ("carol", *statement("property", "stonith-enabled=false"), True),
        ("carol", "configure.delete", {"ids": [f"l-of-{HIDDEN}"]}, False),
        ("carol", "configure.delete", {"ids": ["db-first"]}, True),
        ("carol", "node.fence", {"node": "n2"}, True),
        ("grace", "node.standby", {"node": "n1", "lifetime": "reboot"}, True),
        ("grace", "node.standby", {"node": "n1", "others": ["n2"], "lifetime": "reboot"}, False),
        ("carol", *loading("acl_target carol change-all"), False),
        ("carol", *loading("role blind read cib"), False),
        ("hacluster", *statement("property", "stonith-enabled=false"), False),
        ("root", *statement("property", "stonith-enabled=false"), False),
    ],
)  # fmt: skip
def test_what_may_be_changed(user: str, verb: str, arguments: dict[str, Json], is_permitted: bool) -> None:
    """The last two: that a name is root's or hacluster's makes nobody so; `ControlService.caller` does."""
    outcome = ask(verb, arguments, user)
    codes = {each.code for each in outcome.reports}
    assert (not codes & {Code.ACL_DENIED, Code.NOT_PERMITTED}) is is_permitted, said(outcome)
    assert is_permitted or not outcome.commands
    assert not is_permitted or outcome.commands or outcome.is_refused


def test_a_refusal_names_the_element_and_the_rule() -> None:
    (found,) = ask("resource.stop", {"resources": ["db"]}, "bob").reports
    assert found.message == (
        "resource.stop is denied: /cib/configuration/resources/primitive[@id='db']/meta_attributes"
        "[@id='db-meta_attributes']/nvpair[@id='db-meta_attributes-target-role'] may not be added (role see: read "
        'xpath:"/cib")'
    )
    (found,) = ask("resource.stop", {"resources": ["web"]}, "alice").reports
    assert found.code is Code.NOT_PERMITTED
    assert found.remedy == "user alice has roles see, blind"


def test_groups_give_roles() -> None:
    assert ask("resource.stop", {"resources": ["web"]}, "mallory", "users", "ops").commands
    assert not ask("resource.stop", {"resources": ["web"]}, "mallory", "users").commands


@pytest.mark.parametrize("verb", sorted(registry.VERBS))
def test_no_verb_is_answered_without_the_check(verb: str) -> None:
    """Derived from the table: who has no right gets an answer about themselves, and nothing else."""
    outcome = ask(verb, {}, "mallory")
    if verb in {"api.whoami", "acl.whoami", "acl.can"}:
        return
    assert outcome.reports[0].code in (Code.ACL_DENIED, Code.NOT_PERMITTED), said(outcome)
    assert not outcome.commands
    assert outcome.data is None


WORDS = st.sampled_from(["", "n1", "n2", "n9", "web", "db", "site", "power", "cli-prefer-db", "primitive", "update",
                         "show", "-Q", "-L", "-1", "crm_mon", "cibadmin", "crm_resource", "on", "start"])  # fmt: skip
OF_OPERATORS = ("ChangeConfiguration", "SetTransientAttribute", "CleanUp", "RestartResource", "SetTicket",
                "RequestLeader", "ForgetFencings", "SteerDevice")  # fmt: skip
VALUES = st.one_of(WORDS, st.lists(WORDS, max_size=3), st.booleans(), st.integers(-3, 3))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(registry.VERBS)), st.sampled_from(["alice", "bob", "carol", "dave"]), st.data())
def test_whatever_is_asked_no_verb_escapes(name: str, user: str, data: st.DataObject) -> None:
    known = {argument.name: argument for argument in registry.VERBS[name].arguments}
    given_values = data.draw(st.dictionaries(st.sampled_from(sorted(known)), VALUES, max_size=4)) if known else {}
    for each, argument in known.items():
        if argument.choices and data.draw(st.booleans()):
            given_values[each] = data.draw(st.sampled_from(argument.choices))
    outcome = ask(name, given_values, user)
    if user != "bob":
        assert HIDDEN not in said(outcome)
        assert SECRET not in said(outcome)
    if user == "alice":
        assert not outcome.commands
    for command in outcome.commands:
        name = type(command).__name__
        assert user == "carol" or name in OF_OPERATORS, name


def test_the_difference_that_a_change_makes_is_shown_without_what_may_not_be_read() -> None:
    text = "primitive web ocf:haclusterd:http-service params command=/bin/true op monitor interval=10s timeout=33s"
    shown = {user: ask("configure.apply", {"text": text, "difference": True}, user) for user in ("carol", "root")}
    full = registry.run("configure.apply", {"text": text, "difference": True}, Context(BASE.cib, NOW, "root@n1"))
    assert SECRET in said(full), "the difference of all would have it"
    assert "timeout=33s" in said(shown["carol"])
    assert SECRET not in said(shown["carol"])
    assert not shown["root"].commands


def test_a_simple_role_of_a_token_stays_what_it_is() -> None:
    made = running(RESOURCES)
    made.configure("role viewer write cib\nrole admin deny cib\nacl_target alice viewer\nproperty enable-acl=true")
    now = made.cib.in_force
    assert access_of(now, Principal(token="t", token_role="viewer")).permission is Permission.READ
    assert access_of(now, Principal(token="t", token_role="admin")).rules is None
    assert access_of(now, Principal("alice")).permission is Permission.ADMINISTER, "of a user configured roles count"


def test_a_role_that_is_gone_gives_nothing() -> None:
    access = access_of(BASE.cib.in_force, Principal(token="t", token_role="deleted"))
    context = Context(BASE.cib, NOW, "token:t@n1", access=access)
    assert [each.code for each in registry.run("status", {}, context).reports] == [Code.ACL_DENIED]


DB = "primitive db ocf:haclusterd:dummy params fake={} op monitor interval=10s timeout=20s"
ZORRO = f"primitive {HIDDEN} ocf:haclusterd:{{}} op monitor interval=10s timeout=20s"
RANK = f"location l-of-{HIDDEN} {HIDDEN} {{}}: n1"
FAKE = (
    "<primitive id='db'><instance_attributes id='db-instance_attributes'>"
    "<nvpair id='db-instance_attributes-fake' name='fake' value='{}'/></instance_attributes></primitive>"
)
BESIDE = f"location beside {HIDDEN} 1: n2"
"""Names what is hidden, so that no CIB without it can be judged."""


@pytest.mark.parametrize(
    ("verb", "arguments", "right", "wrong"),
    [
        ("configure.load", {"mode": "update", "text": DB}, SECRET, "other"),
        ("configure.load", {"mode": "update", "text": ZORRO}, "dummy", "health"),
        ("configure.load", {"mode": "update", "text": RANK}, "100", "7"),
        ("configure.load", {"mode": "update", "text": f"{BESIDE}\n{DB}"}, SECRET, "other"),
        ("configure.load", {"mode": "update", "text": f"{BESIDE}\n{ZORRO}"}, "dummy", "health"),
        ("configure.load", {"mode": "update", "text": f"{BESIDE}\n{RANK}"}, "100", "7"),
        ("configure.apply", {"text": DB}, SECRET, "other"),
        ("configure.apply", {"text": DB, "difference": True}, SECRET, "other"),
        ("configure.set", {"path": "db.fake", "value": "{}"}, SECRET, "other"),
        ("resource.setting", {"resource": "db", "section": "params", "action": "set", "name": "fake", "value": "{}"},
         SECRET, "other"),
        ("tool.run", {"tool": "cibadmin", "words": ["-M", "-X", FAKE]}, SECRET, "other"),
        ("tool.run", {"tool": "crm_resource", "words": ["-r", "db", "-p", "fake", "-v", "{}"]}, SECRET, "other"),
    ],
)  # fmt: skip
def test_a_guess_of_what_may_not_be_read_is_not_confirmed(
    verb: str, arguments: dict[str, Json], right: str, wrong: str
) -> None:
    def answer(guess: str) -> tuple[Json, int | None, list[Code], str]:
        written = json.loads(json.dumps(arguments).replace("{}", guess))
        outcome = ask(verb, written, "carol")
        assert not outcome.commands
        written_out = "".join(map(render, outcome.reports)).replace(guess, "?")
        return outcome.data, outcome.exit_status, [each.code for each in outcome.reports], written_out

    assert set(answer(right)[2]) == {Code.ACL_DENIED}, answer(right)
    assert answer(right) == answer(wrong)


def test_nor_is_a_guess_of_an_agent_beside_the_name_of_something_else_that_is_hidden() -> None:
    """So that it is judged over the CIB in which hidden objects stand bare."""
    made = cluster()
    made.configure("primitive yonder ocf:haclusterd:dummy\nrole blinder deny ref:yonder")
    made.configure("acl_target gina change-all blind blinder")
    access = access_of(made.cib.in_force, Principal("gina", ()))
    context = Context(made.cib, NOW, "gina@n1", live=made.live, past=made.past, access=access, is_forced=True)
    text = f"location beside yonder 1: n2\nprimitive {HIDDEN} ocf:haclusterd:{{}}"
    right, wrong = (
        registry.run("configure.load", {"mode": "update", "text": text.format(guess)}, context)
        for guess in ("dummy", "health")
    )
    assert {each.code for each in right.reports} == {Code.ACL_DENIED}, said(right)
    assert said(right).replace("dummy", "?") == said(wrong).replace("health", "?")


def test_what_may_be_read_is_loaded_again_and_nothing_is_to_do() -> None:
    web = "primitive web ocf:haclusterd:http-service params command=/bin/true op monitor interval=10s timeout=20s"
    outcome = ask("configure.load", {"mode": "update", "text": f"{web}\nrsc_defaults resource-stickiness=100"}, "carol")
    assert [each.code for each in outcome.reports] == [Code.NOTHING_TO_DO], said(outcome)


def test_who_may_write_one_attribute_of_what_they_may_not_read_writes_it_twice() -> None:
    made = cluster()
    made.configure("role stopper write meta:web:target-role\nacl_target frank stopper")
    access = access_of(made.cib.in_force, Principal("frank", ()))
    context = Context(made.cib, NOW, "frank@n1", live=made.live, past=made.past, access=access, is_forced=True)
    stop = "resource.stop", {"resources": ["web"]}
    first = registry.run(*stop, context)
    assert len(first.commands) == 1, said(first)
    made.do(first.commands[0])
    again = registry.run(*stop, replace(context, cib=made.cib))
    assert [each.code for each in again.reports] == [Code.NOTHING_TO_DO], said(again)


def test_a_guess_of_a_secret_is_not_confirmed() -> None:
    made, keeper = cluster(), SimulatedKeeper(NodeName("n1"), random.Random(1))
    made.configure("role stopper write meta:web:target-role\nacl_target frank stopper")
    root = Context(made.cib, NOW, "root@n1", live=made.live, secrets=keeper)
    for command in registry.run("secret.set", {"name": "pdu", "value": SECRET}, root).commands:
        made.do(command)
    access = access_of(made.cib.in_force, Principal("frank", ()))
    context = replace(root, cib=made.cib, author="frank@n1", access=access)
    right, wrong = (registry.run("secret.set", {"name": "pdu", "value": each}, context) for each in (SECRET, "other"))
    assert [each.code for each in right.reports] == [Code.ACL_DENIED]
    assert said(right) == said(wrong)
