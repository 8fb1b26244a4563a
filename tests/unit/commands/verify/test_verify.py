"""What verification finds: code, place and (where it says more) parameters; and what it leaves alone."""

from pathlib import Path

import pytest

from haclusterd.adapters.agents.metadata import read_agent_metadata
from haclusterd.cib.codec import encode_envelope
from haclusterd.cib.commands import Envelope, JudgeRules
from haclusterd.commands.verify.configuration import verify
from haclusterd.formats.crm.syntax import assemble, parse_script
from haclusterd.formats.policy.yaml import load_policy
from haclusterd.model.agents import AgentFacts, ParameterFacts
from haclusterd.model.cluster import Member
from haclusterd.model.configuration import AttributeSet, Configuration, Group, Primitive
from haclusterd.model.dated_blocks import dated_blocks
from haclusterd.model.ids import AgentReference, RequestId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.rules import DateExpression, Rule
from haclusterd.ports.store import MAX_ENTRY_BYTES
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import ReportItem

ROOT = Path(__file__).parents[4]

MEMBERS = {name: Member(name, ((name, 7700),)) for name in ("n1", "n2")}
MEMBERS["w"] = Member("w", (("w", 7700),), is_witness=True)

AGENTS = {
    "ocf:heartbeat:Dummy": AgentFacts(
        parameters={"fake": ParameterFacts(), "state": ParameterFacts(), "mode": ParameterFacts(options=("a", "b"))},
        action_timeouts_ms={"start": 20_000, "stop": None},
    ),
    "ocf:heartbeat:IPaddr2": AgentFacts(
        parameters={"ip": ParameterFacts(is_required=True), "nic": ParameterFacts(is_required=True, default="eth0")}
    ),
    "ocf:heartbeat:Filesystem": AgentFacts(
        parameters={"device": ParameterFacts(is_required=True, default=""), "options": ParameterFacts(default="")}
    ),
    "ocf:heartbeat:redis": AgentFacts(),
    "ocf:heartbeat:other": AgentFacts(missing_tools=("corosync-cmapctl",)),
    "ocf:heartbeat:broken": AgentFacts(is_unreadable=True),
    "ocf:pacemaker:ClusterMon": AgentFacts(),
    "ocf:pacemaker:Stateful": AgentFacts(action_timeouts_ms={"start": None, "promote": None, "demote": None}),
    "stonith:fence_x": AgentFacts(
        parameters={name: ParameterFacts(is_required=True) for name in ("action", "plug", "port", "ip")}
    ),
    **{f"{standard}:web": AgentFacts() for standard in ("lsb", "service", "systemd")},
    "stonith:fence_fabric": AgentFacts(unfences=True),
    "stonith:fence_y": AgentFacts(
        parameters={"login": ParameterFacts(is_required=True), "username": ParameterFacts(obsoletes="login")}
    ),
}

# Line 1: everything below is judged with these, which are good.
GOOD = (
    "property fencing-enabled=true\n"
    "primitive f stonith:fence_x ip=1 pcmk_host_list='n1 n2'\n"
    "primitive a Dummy op monitor interval=10s\n"
    "primitive b Dummy op monitor interval=10s\n"
    "primitive c Dummy op monitor interval=10s\n"
)
FIRST = GOOD.count("\n") + 1


MONITORED = "primitive d Dummy op monitor interval=5s"
TEMPLATE = "rsc_template t Dummy op monitor interval=5s"
STATEFUL = "primitive s ocf:pacemaker:Stateful op monitor interval=5s role=Promoted"
APART = "group g a b meta collocated=false"
PROMOTABLE = f"{STATEFUL}\nclone x s meta promotable=true"
A_WITH_B = "colocation x inf: a b"
IP = "ocf:heartbeat:IPaddr2"


def judge(text: str, **options: object) -> tuple[ReportItem, ...]:
    script = parse_script(text, "t")
    made = assemble(script.statements)
    assert (script.reports, made.reports) == ((), ())
    known = {"members": MEMBERS, "agents": AGENTS, "places": made.places, **options}
    return verify(made.configuration, **known)


def found(text: str, **options: object) -> list[tuple[str, str]]:
    """Judge GOOD and a text; return codes, and places relative to the text's first line."""
    reports = judge(GOOD + text, **options)
    return [(str(r.code), f"{r.place.line - FIRST + 1}:{r.place.column}" if r.place else "") for r in reports]


def test_a_good_configuration_has_no_faults() -> None:
    assert found("") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # references
        ("group g a nothere", [("UNKNOWN_RESOURCE", "1:11")]),
        ("group g a a", [("MEMBER_TWICE", "1:11")]),
        ("group g1 a\ngroup g2 b a", [("MEMBER_OF_TWO_GROUPS", "2:12")]),
        ("group g1 a\ngroup g2 g1", [("MEMBER_NOT_A_PRIMITIVE", "2:10")]),
        ("group g a f", [("FENCE_DEVICE_IN_GROUP", "1:11")]),
        ("location l nothere 5: n1", [("UNKNOWN_RESOURCE", "1:12")]),
        ("location l a 5: n3", [("UNKNOWN_NODE", "1:17")]),
        ("colocation x 5: a nothere", [("UNKNOWN_RESOURCE", "1:19")]),
        ("colocation x 5: nothere a", [("UNKNOWN_RESOURCE", "1:17")]),
        ("order x nothere gone", [("UNKNOWN_RESOURCE", "1:9"), ("UNKNOWN_RESOURCE", "1:17")]),
        ("order x a a", [("CONSTRAINT_WITH_ITSELF", "1:11")]),
        ("colocation x inf: a a", [("CONSTRAINT_WITH_ITSELF", "1:21")]),
        ("location a b 5: n1", [("DUPLICATE_ID", "1:10")]),
        ("group g a params $id=x fake=1\nproperty $id=x batch-limit=3", [("DUPLICATE_ID", "2:16")]),
        (f"{MONITORED} params $x:fake=1\nprimitive e @t params $x:fake=2\n{TEMPLATE}", [("DUPLICATE_ID", "2:11")]),
        ("node 1: n1\nnode 1: n2", [("DUPLICATE_ID", "2:9")]),
        ("node n3", [("NODE_NOT_A_MEMBER", "1:6")]),
        ("node n1 attributes terminate=true", [("WITHOUT_EFFECT", "1:20")]),
        ("node n1 attributes x=y\nlocation l a 5: w", []),
        # properties, meta-attributes, defaults
        ("property stonith-action=off", []),
        ("property fencing-enabeld=true", [("UNKNOWN_PROPERTY", "1:10")]),
        ("property batch-limit=-1", []),
        ("property batch-limit=-2", [("BAD_VALUE", "1:10")]),
        ("property redis_REPL_INFO=n1", [("KEPT", "1:10")]),
        ("property SAPHanaSR: hana-site=a", [("KEPT", "1:21")]),
        ("property SAPHanaSR: stonith-enable=true", [("UNKNOWN_PROPERTY", "1:21")]),
        ("property no-quorum-policy=Stop fencing-action=poweroff", []),
        ("property fencing-max-attempts=INFINITY", []),
        ("property batch-limit=many", [("BAD_VALUE", "1:10")]),
        ("property node-timeout=100ms", [("BAD_VALUE", "1:10")]),
        ("property node-timeout=1fortnight", [("BAD_VALUE", "1:10")]),
        ("property symmetric-cluster=perhaps", [("BAD_VALUE", "1:10")]),
        ("property no-quorum-policy=ignore", [("QUORUM_IGNORED", "1:10")]),
        ("property no-quorum-policy=freeze watchdog-fencing=true", [("POLICY_DEFEATS_WATCHDOG", "1:10")]),
        ("rsc_defaults resource-stickiness=sticky", [("BAD_VALUE", "1:14")]),
        ("rsc_defaults resource-stickyness=1", [("UNKNOWN_META", "1:14")]),
        ("op_defaults timeout=20s on-fail=block", []),
        ("op_defaults record-pending=true", []),
        ("op_defaults record-pending=false", [("BAD_VALUE", "1:13")]),
        ("op_defaults interval=20s", [("UNKNOWN_OPERATION_ATTRIBUTE", "1:13")]),
        ("op_defaults timeout=x on-fail=explode", [("BAD_VALUE", "1:13"), ("BAD_VALUE", "1:23")]),
        ("group g a meta target-role=Stop", [("BAD_VALUE", "1:16")]),
        ("group g a meta target-role=slave", []),
        ("group g a meta clone-maximum=2", [("UNKNOWN_META", "1:16")]),
        # under a rule: what is read without a plan
        ("property $id=p rule date gt 2030-01-01 maintenance-mode=true", []),
        ("property $id=p rule date gt 2030-01-01 node-timeout=5s stonith-timeout=5s", []),
        ("property $id=p rule #uname eq n1 node-timeout=5s", [("NOT_YET", "1:34")]),
        ("property $id=p rule #uname eq n1 maintenance-mode=true", [("RULE_WITHOUT_EFFECT", "1:34")]),
        ("primitive d Dummy meta rule date gt 2030-01-01 target-role=Stopped op monitor interval=5s", []),
        ("primitive d stonith:fence_x ip=1 params rule #uname eq n1 pcmk_host_list=n1", [("NOT_YET", "1:59")]),
        ("primitive d stonith:fence_x ip=1 params rule date gt 2030-01-01 pcmk_host_list=n1", []),
        ("primitive d stonith:fence_x ip=1 meta rule date gt 2030-01-01 target-role=Stopped", []),
        ("primitive d stonith:fence_x ip=1 meta rule #uname eq n1 target-role=Stopped", [("NOT_YET", "1:57")]),
        ("group g a meta rule #uname eq n1 priority=5", [("RULE_WITHOUT_EFFECT", "1:34")]),
        ("clone x a meta rule date gt 2030-01-01 clone-max=2", []),
        ("clone x a meta rule #uname eq n1 clone-max=2", [("NOT_YET", "1:34")]),
        ("rsc_defaults rule date gt 2030-01-01 clone-max=2", []),
        ("rsc_defaults rule rsc_expression type=Dummy clone-max=2", [("NOT_YET", "1:45")]),
        ("location l f rule -inf: date gt 2030-01-01", [("NOT_YET", "1:10")]),
        ("location l a rule -inf: date gt 2030-01-01", []),
        # operations
        ("primitive d Dummy", [("NO_MONITOR", "1:11")]),
        ("primitive d Dummy op monitor interval=0", [("NO_MONITOR", "1:11")]),
        ("primitive d Dummy op monitor interval=5s op monitor interval=5000ms", [("EQUAL_INTERVALS", "1:45")]),
        ("primitive d Dummy op monitor interval=5s op monitor interval=6s role=Stopped", []),
        ("primitive d Dummy op monitor interval=5s op start op start", [("OPERATION_TWICE", "1:54")]),
        ("primitive d Dummy op monitor interval=5s op start interval=5s", [("INTERVAL_OF_ONE_SHOT", "1:51")]),
        ("primitive d Dummy op monitor interval=5s op report interval=5s", [("WITHOUT_EFFECT", "1:45")]),
        ("primitive d Dummy op monitor interval=5s op stop on-fail=ignore", [("WITHOUT_EFFECT", "1:50")]),
        ("primitive d Dummy op monitor interval=5s timout=20s", [("WITHOUT_EFFECT", "1:42")]),
        ("primitive d Dummy op monitor interval=5s OCF_CHECK_LEVEL=10 check=1", []),
        ("primitive d Dummy op monitor interval=5s timeout=20ms", [("TIMEOUT_TOO_SHORT", "1:42")]),
        ("primitive d Dummy op monitor interval=5s timeout=0", [("TIMEOUT_TOO_SHORT", "1:42")]),
        ("primitive d Dummy op monitor interval=5s timeout=48h", [("TIMEOUT_TOO_LONG", "1:42")]),
        ("primitive d Dummy op monitor interval=5s on-fail=explode", [("BAD_VALUE", "1:42")]),
        ("primitive d Dummy op monitor interval=5s requires=quorum", [("NOT_YET", "1:42")]),
        (
            f"{MONITORED} op_meta timeout=5 colour=red",
            [("UNKNOWN_OPERATION_ATTRIBUTE", "1:60")],
        ),
        # agents
        ("primitive d Dumy op monitor interval=5s", [("UNKNOWN_AGENT", "1:13")]),
        ("primitive d broken x=1 op monitor interval=5s", [("AGENT_UNREADABLE", "1:13")]),
        ("primitive d IPaddr2 op monitor interval=5s", [("MISSING_PARAMETER", "1:11")]),
        ("primitive d Filesystem op monitor interval=5s", [("MISSING_PARAMETER", "1:11")]),
        ('primitive d Filesystem device="" op monitor interval=5s', [("MISSING_PARAMETER", "1:11")]),
        ("primitive d Filesystem device=/dev/x op monitor interval=5s", []),
        ("primitive d IPaddr2 params 5: ip=1 op monitor interval=5s", []),
        ("primitive d Dummy fak=1 op monitor interval=5s", [("UNKNOWN_PARAMETER", "1:19")]),
        ("primitive d Dummy trace_ra=1 op monitor interval=5s", []),
        ("primitive d Dummy mode=c op monitor interval=5s", [("BAD_VALUE", "1:19")]),
        ("primitive g stonith:fence_x pcmk_host_list=n1", [("MISSING_PARAMETER", "1:11")]),
        ("primitive g stonith:fence_y", [("MISSING_PARAMETER", "1:11")]),
        ("primitive g stonith:fence_y login=a", []),
        ("primitive g stonith:fence_y username=a", []),
        ("primitive g stonith:fence_fabric", [("UNFENCING_NOT_SAID", "1:11")]),
        ("primitive g stonith:fence_fabric meta provides=unfencing", []),
        ("primitive g stonith:fence_x ip=1 pcmk_host_map=n1:1 pcmk_off_retries=3 provides=x", []),
        ("primitive g stonith:fence_x ip=1 pcmk_delay_max=5", []),
        ("primitive g stonith:fence_x ip=1 pcmk_host_map='n1:1;n2:2'", []),
        ("primitive g stonith:fence_x ip=1 pcmk_host_map='n1:1;n2:1;n3:3'", [("NODES_SHARE_PORT", "1:34")]),
        ("primitive g stonith:fence_x ip=1 pcmk_reboot_action=off pcmk_off_action=reboot", []),
        ("primitive g stonith:fence_x ip=1 pcmk_reboot_action=Status", [("BAD_VALUE", "1:34")]),
        ("primitive g stonith:fence_x ip=1 pcmk_off_action=on", [("BAD_VALUE", "1:34")]),
        ("primitive g stonith:fence_x ip=1 pcmk_monitor_action=metadata pcmk_on_action=on", []),
        ("primitive g stonith:fence_x ip=1 pcmk_reboot_timeout=soon", [("BAD_VALUE", "1:34")]),
        ("primitive g stonith:fence_x ip=1 pcmk_reboot_retries=0", [("BAD_VALUE", "1:34")]),
        ("primitive g stonith:fence_x ip=1 pcmk_host_check=dynamic-list", []),
        (f"{MONITORED} op start timeout=5s op stop timeout=1", [("TIMEOUT_BELOW_ADVICE", "1:51")]),
        ("primitive d redis op monitor interval=5s", []),
        ("primitive d other op monitor interval=5s", [("TOOLS_MISSING", "1:13")]),
        ("primitive d ocf:pacemaker:ClusterMon op monitor interval=5s", [("TOOLS_MISSING", "1:13")]),
        # not yet
        ("node n1:remote", [("NOT_YET", "1:6")]),
        (f"{MONITORED} meta remote-node=r", [("NOT_YET", "1:47"), ("BAD_VALUE", "1:47")]),
        ("primitive d lsb:x op monitor interval=5s", [("UNKNOWN_AGENT", "1:13")]),
        ("primitive d lsb:web op monitor interval=5s", []),
        ("primitive d lsb:web port=1 op monitor interval=5s", [("TAKES_NO_PARAMETERS", "1:21")]),
        ("rsc_template t lsb:web port=1\nprimitive d @t op monitor interval=5s", [("TAKES_NO_PARAMETERS", "2:11")]),
        ("primitive d systemd:x op monitor interval=5s", [("UNKNOWN_AGENT", "1:13")]),
        ("primitive d systemd:web op monitor interval=5s", []),
        ("primitive d service:web op monitor interval=5s", []),
        ("primitive d service:web a=1 op monitor interval=5s", [("TAKES_NO_PARAMETERS", "1:25")]),
        ("primitive d nagios:x op monitor interval=5s", [("NOT_YET", "1:13"), ("UNKNOWN_AGENT", "1:13")]),
        ("bundle d docker image=x", [("NOT_YET", "1:8")]),
        # templates, tags
        (f"{TEMPLATE}\nprimitive d @t fake=1", []),
        (f"{TEMPLATE} meta colour=red", [("KEPT", "1:50")]),
        (f"{TEMPLATE} meta target-rol=Stopped", [("UNKNOWN_META", "1:50")]),
        ("rsc_template t IPaddr2 params ip=1 op monitor interval=5s\nprimitive d @t", []),
        ("tag t a f\nlocation l t 5: n1", []),
        ("tag t a lost", [("UNKNOWN_RESOURCE", "1:9")]),
        # what contains what
        ("clone x lost", [("UNKNOWN_RESOURCE", "1:9")]),
        ("clone x a\nclone y x", [("BAD_CHILD", "2:9")]),
        ("clone x a\nclone y a", [("CHILD_OF_TWO", "2:9")]),
        ("group g a b\nclone x a", [("CHILD_OF_TWO", "2:9")]),
        ("group g a b\nclone x g", []),
        ("clone x a\norder o x a", [("ORDER_CYCLE", "2:7")]),
        # roles
        ("primitive d Dummy op monitor interval=5s role=Promoted", [("NOT_PROMOTABLE", "1:42")]),
        ("colocation x 5: a b:Promoted", [("NOT_PROMOTABLE", "1:19")]),
        ("order x a:promote b:start", [("NOT_PROMOTABLE", "1:9")]),
        ("clone x a\nlocation l x role=Promoted 5: n1", [("NOT_PROMOTABLE", "2:12")]),
        ("clone x a meta promotable=true", [("CANNOT_PROMOTE", "1:16")]),
        (f"{STATEFUL}\nclone x s meta promotable=true\ncolocation y inf: a x:Promoted", []),
        ("clone x f meta globally-unique=true", []),
        ("rsc_ticket t paris: a loss-policy=demote", [("NOT_PROMOTABLE", "1:14")]),
        ("rsc_ticket t paris: a loss-policy=freeze", []),
        # sets
        ("colocation x inf: a b lost", [("UNKNOWN_RESOURCE", "1:12")]),
        ("order x a b c\norder y c a", [("ORDER_CYCLE", "2:7")]),
        ("order x ( a b ) c\norder y b a", []),
        # rules
        ("location l a rule 5: #uname eq n1", []),
        ("location l a rule pingd: defined pingd", []),
        ("location l a rule 5: date gt 2030-13-01", [("BAD_VALUE", "1:10")]),
        ("location l a rule 5: date in start=2030-01-02 end=2030-01-01", [("BAD_VALUE", "1:10")]),
        ("location l a rule 5: rsc_expression class=ocf", [("RULE_WITHOUT_EFFECT", "1:10")]),
        ("location l a rule : #uname eq n1", [("RULE_WITHOUT_EFFECT", "1:10")]),
        ("location l a rule 5: cores integer:gt many", [("BAD_VALUE", "1:10")]),
        ("location l /a(/ 5: n1", [("BAD_VALUE", "1:12")]),
        # utilization
        ("node n1 utilization cpu=4", []),
        ("node n1 utilization cpu=many", [("BAD_VALUE", "1:21")]),
        # fencing levels
        ("fencing_topology n1: f", []),
        ("fencing_topology n1: a f", [("NOT_A_FENCE_DEVICE", "1:22")]),
        ("fencing_topology n3: f", [("UNKNOWN_NODE", "1:22")]),
        ("fencing_topology n1: 12:f", [("BAD_VALUE", "1:22")]),
        # orders
        ("order x a b\norder y b a", [("ORDER_CYCLE", "2:7")]),
        ("order x a b\norder y b c\norder z c a", [("ORDER_CYCLE", "3:7")]),
        ("order x a b\norder y Optional: b a", [("ORDERS_WAIT", "2:7")]),
        ("order x Optional: a b\norder y Serialize: b a", [("ORDERS_WAIT", "2:7")]),
        ("group g a b\norder x Serialize: a g", [("ORDERS_WAIT", "2:7")]),
        ("group g a b\norder x Optional: a g", [("ORDERS_WAIT", "2:7")]),
        ("group g a b\norder x Serialize: g a", []),
        ("group g a b\norder x Serialize: b a", [("ORDERS_WAIT", "2:7")]),
        ("group g a b\norder x Serialize: a b", []),
        ("group g a b\norder x Serialize: c g\norder y b c", [("ORDERS_WAIT", "3:7")]),
        ("order x Serialize: ( a b ) ( b a )", [("ORDERS_WAIT", "1:7")]),
        ("tag t a b\norder x Optional: t c\norder y c a", [("ORDERS_WAIT", "3:7")]),
        ("tag t a b\norder x t c\norder y c a", [("ORDER_CYCLE", "3:7")]),
        (f"{PROMOTABLE}\norder o x:promote a:start\norder p a x", [("ORDER_CYCLE", "4:7")]),
        (f"{PROMOTABLE}\norder o x:promote a:start\norder p x a", []),
        ("order x a b\norder y a:stop b:stop", [("ORDERS_WAIT", "2:7")]),
        ("order x a b\norder y a:stop b:stop symmetrical=false", [("STOPS_WAIT", "2:7")]),
        ("order x a b\norder y b:stop a:stop symmetrical=false", []),
        ("order x a b symmetrical=false\norder y a:stop b:stop symmetrical=false", []),
        ("order x Serialize: a b\norder y a:stop b:stop symmetrical=false", []),
        ("group g a b\norder y a:stop b:stop symmetrical=false", [("STOPS_WAIT", "2:7")]),
        ("order x a:stop b:stop symmetrical=false\norder y b:stop a:stop symmetrical=false", [("STOPS_WAIT", "2:7")]),
        (
            f"{PROMOTABLE}\norder o x:demote a:stop symmetrical=false\norder p a:stop x:demote symmetrical=false",
            [("STOPS_WAIT", "4:7")],
        ),
        ("order x a:stop b:start\norder y b:stop a:start", []),
        ("group g a b\norder x b a", [("ORDER_CYCLE", "2:7")]),
        ("group g a b\norder x a b", []),
        ("group g a b\norder x g a", [("ORDER_CYCLE", "2:7")]),
        ("group g a b\norder x c g\norder y b c", [("ORDER_CYCLE", "3:7")]),
        # lifetimes
        ("order x a b lifetime date lt 2030-01-31", []),
        ("order x a b lifetime date lt 2030-13-01", [("BAD_VALUE", "1:7")]),
        ("order x a b lifetime #uname eq n1 or date lt 2030-01-31", [("RULE_WITHOUT_EFFECT", "1:7")]),
        ("colocation x inf: a b lifetime rsc_expression class=ocf", [("RULE_WITHOUT_EFFECT", "1:12")]),
        ("order x a b lifetime date lt 2030-01-31\norder y b a lifetime date gt 2030-01-31", []),
        ("colocation x inf: a b lifetime date lt 2030-01-31\ncolocation y -inf: a b lifetime date gt 2030-01-31", []),
        # colocations
        ("colocation x inf: a b\ncolocation y -inf: a b", [("COLOCATION_CONTRADICTION", "2:12")]),
        ("colocation x inf: a b\ncolocation y -inf: b a", [("COLOCATION_CONTRADICTION", "2:12")]),
        (f"{A_WITH_B}\ncolocation y inf: b c\ncolocation z -inf: a c", [("COLOCATION_CONTRADICTION", "3:12")]),
        ("colocation x inf: a b\ncolocation y inf: c b\ncolocation z -inf: a c", []),
        ("colocation x inf: a b\ncolocation y -100: a b", []),
        ("colocation x inf: a b\ncolocation y -inf: a b node-attribute=rack", []),
        ("group g a b\ncolocation x -inf: b a", [("COLOCATION_CONTRADICTION", "2:12")]),
        ("group g a b\ncolocation x inf: c g\ncolocation y -inf: c a", [("COLOCATION_CONTRADICTION", "3:12")]),
        ("group g a b\ncolocation x inf: g c\ncolocation y -inf: c b", [("COLOCATION_CONTRADICTION", "3:12")]),
        ("group g a b\ncolocation x -inf: c g", []),
        ("group g a b\ncolocation x inf: a b", [("COLOCATION_WITHIN_GROUP", "2:12")]),
        ("group g a b c\ncolocation x 10: a c", [("COLOCATION_WITHIN_GROUP", "2:12")]),
        ("group g a b\ncolocation x inf: a g", [("COLOCATION_WITHIN_GROUP", "2:12")]),
        ("group g a b\ncolocation x inf: b a", []),
        ("group g a b\ncolocation x inf: g c", []),
        (f"{APART}\ncolocation x inf: c g", [("COLOCATION_WITH_MEMBERS_APART", "2:12")]),
        (f"{APART}\nclone k g\ncolocation x inf: c k", [("COLOCATION_WITH_MEMBERS_APART", "3:12")]),
        (f"{APART}\ncolocation x 10: c g\ncolocation y -inf: c g", []),
        (f"{APART}\ncolocation x inf: g c", []),
        # instances
        ("group g a b\nclone x g meta clone-max=500", []),
        ("group g a b\nclone x g meta clone-max=501", [("BAD_VALUE", "2:16")]),
        ("clone x a meta clone-max=501", []),
        # locations
        ("location x a inf: n1\nlocation y a -inf: n1", [("LOCATION_NO_EFFECT", "1:10")]),
        ("location x a -inf: n1\nlocation y b inf: n1", []),
        ("location x a -inf: n1\nlocation y a -inf: n2", [("NO_NODE_ALLOWED", "2:10")]),
        # fencing
        ("property fencing-enabled=false", [("FENCING_DISABLED", "1:10")]),
        ("property stonith-timeout=60s fencing-timeout=60s", [("DUPLICATE_NAME", "1:30")]),
        ("property $id=other 5: stonith-enabled=true", []),
    ],
)  # fmt: skip
def test_findings(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected


def test_what_findings_say() -> None:
    text = "group g a b\norder x c g\norder y b c\ncolocation p inf: c g\ncolocation q -inf: c a"
    findings = {str(report.code): dict(report.parameters) for report in judge(GOOD + text)}
    assert findings == {
        "ORDER_CYCLE": {"circle": "g -> a -> b -> c -> g", "constraints": "x, y"},
        "COLOCATION_CONTRADICTION": {"dependent": "c", "primary": "a", "constraints": "q, p, group g"},
    }


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("property fencing-enabeld=true", "did you mean fencing-enabled?"),
        ("group g a meta resource-stickyness=1", "did you mean resource-stickiness?"),
        ("location l webb 5: n1\nprimitive web Dummy op monitor interval=1s", "did you mean web?"),
        ("location l a 5: n11", "did you mean n1?"),
        ("primitive d Dummy fakee=1 op monitor interval=1s", "did you mean fake?"),
        ("primitive d ocf:heartbeat:IPAddr2 op monitor interval=1s", f"install it, or did you mean {IP}?"),
        ("property node-timeout=100ms", "node-timeout: How long a host may be silent before it is lost. Default: 2s"),
        ("property default-action-timeout=120s", "write today: op_defaults timeout=VALUE"),
        ("property is-managed-default=no", "write today: rsc_defaults is-managed=VALUE"),
        ("property crmd-transition-delay=3s", "write today: property transition-delay=VALUE"),
    ],
)  # fmt: skip
def test_remedies(text: str, remedy: str) -> None:
    (report,) = judge(GOOD + text)
    assert report.remedy == remedy


@pytest.mark.parametrize(
    ("text", "severity", "remedy"),
    [
        ("rsc_defaults stickiness=1", "warning", "did you mean resource-stickiness?"),
        ("group g a meta managed=false", "error", "did you mean is-managed?"),
        ("clone x a meta max-clone=2", "warning", "did you mean clone-max?"),
        ("group g a meta my-own=1", "info", ""),
        ("rsc_defaults timeout=30s", "warning", "write: crm configure op_defaults timeout=VALUE"),
        ("rsc_defaults no-quorum-policy=stop", "warning", "write: crm configure property no-quorum-policy=VALUE"),
        ("property stickiness=1", "error", "did you mean: crm configure rsc_defaults resource-stickiness=VALUE?"),
        ("property migration-threshold=3", "error", "write: crm configure rsc_defaults migration-threshold=VALUE"),
        ("property maintenance=true", "error", "did you mean maintenance-mode?"),
        ("op_defaults onfail=block", "error", "did you mean on-fail?"),
        ("op_defaults failure-timeout=1h", "error", "write: crm configure rsc_defaults failure-timeout=VALUE"),
    ],
)
def test_a_wrong_name_is_answered_with_the_right_one(text: str, severity: str, remedy: str) -> None:
    only, = judge(f"{GOOD}{text}")
    assert (str(only.severity), only.remedy or "") == (severity, remedy)


def test_an_operation_that_is_none_is_answered_with_the_nearest() -> None:
    said = [str(each) for each in judge(f"{GOOD}primitive z Dummy op moniter interval=10s")]
    assert any("only monitors recur; did you mean monitor?" in each for each in said), said


def _instead(today: str) -> str:
    return f"use stonith:{today}; its parameters have other names: crm ra info stonith:{today}"


PACKAGE = "install it (package cluster-glue) on the nodes"
LIBRARY = "only the library of cluster-glue can load it"


@pytest.mark.parametrize(
    ("agent", "remedy"),
    [
        ("external/ec2", f"{PACKAGE}, or {_instead('fence_aws')}"),
        ("external/sbd", f"{PACKAGE}, or {_instead('fence_sbd')}"),
        ("external/nut", PACKAGE),
        ("external/ipmy", f"{PACKAGE}, or did you mean stonith:external/ipmi?"),
        ("apcmastersnmp", f"{LIBRARY}: {_instead('fence_apc_snmp')}"),
        ("suicide", f"{LIBRARY}: use an agent of crm ra list stonith"),
        ("meatware", f"{LIBRARY}: use an agent of crm ra list stonith; a person confirms with: crm fencing confirm"),
    ],
)
def test_a_plugin_of_cluster_glue_that_cannot_be_run_is_refused_with_what_can(agent: str, remedy: str) -> None:
    known = {**AGENTS, "stonith:external/ipmi": AgentFacts()}
    reports = judge(f"{GOOD}primitive old stonith:{agent} op monitor interval=60s", agents=known)
    unknown = [each for each in reports if each.code is Code.UNKNOWN_AGENT]
    assert [each.remedy for each in unknown] == [remedy]


HOSTS_PLUGIN = AgentFacts(parameters={"hostlist": ParameterFacts(is_required=True), "passwd": ParameterFacts()})


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("hostlist=n1 pcmk_delay_max=30s", []),
        ("passwd=x", ["MISSING_PARAMETER"]),
        ("hostlist=n1 paswd=x", ["UNKNOWN_PARAMETER"]),
        ("hostlist=n1 port=1", ["UNKNOWN_PARAMETER"]),
        ("hostlist=n1 pcmk_host_list=n1", []),
        ("hostlist=n1 pcmk_host_map=n1:N1", []),
        ("hostlist=n1 pcmk_host_map=n1:vm1", ["WITHOUT_EFFECT"]),
        ("hostlist=n1 pcmk_host_argument=hostlist", ["WITHOUT_EFFECT"]),
        ("hostlist=n1 pcmk_host_check=status", ["WITHOUT_EFFECT"]),
        ("hostlist=n1 pcmk_host_check=dynamic-list", []),
    ],
)
def test_parameters_of_a_plugin_of_cluster_glue(parameters: str, expected: list[str]) -> None:
    reports = judge(
        f"{GOOD}primitive p stonith:external/x params {parameters} op monitor interval=60s",
        agents={**AGENTS, "stonith:external/x": HOSTS_PLUGIN},
    )
    assert [str(each.code) for each in reports] == expected


@pytest.mark.parametrize(
    ("agent", "remedy"),
    [
        ("systemd:ngnix", "install it, or did you mean systemd:nginx?"),
        ("systemd:nosuchunit", "install it or correct the name"),
        ("systemd:rescu", "install it or correct the name"),
        ("lsb:cron", "install it or correct the name"),
    ],
)
def test_a_service_is_guessed_only_where_its_name_is_misspelled(agent: str, remedy: str) -> None:
    known = {name: AgentFacts() for name in ("systemd:nginx", "systemd:rescue", "lsb:corosync", "lsb:nginx")}
    unknown, *_ = judge(f"primitive d {agent} op monitor interval=1s", agents=known)
    assert unknown.remedy == remedy


def test_a_plugin_that_has_a_node_restart_itself_is_for_tests() -> None:
    reports = judge(
        f"{GOOD}primitive p stonith:external/ssh params hostlist=n1 op monitor interval=60s",
        agents={**AGENTS, "stonith:external/ssh": HOSTS_PLUGIN},
    )
    assert [(str(each.code), str(each.severity)) for each in reports] == [("ASKS_ITS_TARGET", "warning")]


def test_devices_that_cut_the_power_together_all_say_off() -> None:
    devices = "".join(f"primitive {name} stonith:fence_x ip=1 pcmk_host_list=n1 {more}\n"
                      for name, more in (("d1", ""), ("d2", "pcmk_off_action=reboot")))  # fmt: skip
    assert [code for code, _ in found(f"{devices}fencing_topology n1: d1,d2")] == ["LEVEL_NEVER_OFF"]
    assert found(f"{devices}fencing_topology n1: d1 d2") == []


def test_circles_of_groups_alone_are_the_groups_fault() -> None:
    assert found("group g a b\ngroup h b a") == [("MEMBER_OF_TWO_GROUPS", "2:9"), ("MEMBER_OF_TWO_GROUPS", "2:11")]


def test_uncovered_nodes_are_named_and_witnesses_need_no_device() -> None:
    text = "primitive f stonith:fence_x ip=1 pcmk_host_list=n1"
    assert [(str(r.code), dict(r.parameters)) for r in judge(text)] == [("NODE_NOT_COVERED", {"node": "n2"})]


@pytest.mark.parametrize(
    "text", ["location l a 5: nowhere\nprimitive a lost", "node n1\nlocation l a 5: n1\nprimitive a x"]
)
def test_what_is_not_known_is_not_judged(text: str) -> None:
    codes = {str(report.code) for report in judge(text, members={}, agents=None)}
    assert codes <= {"NO_MONITOR", "NODE_NOT_COVERED"}


def test_without_places_there_is_still_everything_to_say() -> None:
    (report,) = verify(Configuration(properties=(AttributeSet("p", (("batch-limt", "1"),)),)), members={}, agents=None)
    assert (str(report.code), report.place) == ("UNKNOWN_PROPERTY", None)


def test_values_that_no_text_could_say_are_refused() -> None:
    made = Configuration(
        resources={"g": Group("g", (), parameters=(AttributeSet("s", (("a", "x\ny"),)),))},
    )
    assert {str(report.code) for report in verify(made, members={}, agents=None)} == {"GROUP_EMPTY", "BAD_CHARACTER"}


def given_to_an_agent(
    parameters: tuple[tuple[str, str], ...] = (), meta: tuple[tuple[str, str], ...] = (), *, is_foreign: bool = False
) -> list[ReportItem]:
    """Return the errors of a group whose member has these parameters, in the group, and these meta-attributes."""
    member = Primitive("p", AgentReference("ocf", "heartbeat", "Dummy"), meta=(AttributeSet("m", meta),))
    made = Configuration(resources={"p": member, "g": Group("g", ("p",), parameters=(AttributeSet("s", parameters),))})
    found = verify(made, members={}, agents=None, is_foreign=is_foreign)
    return [report for report in found if report.severity is Severity.ERROR]


@pytest.mark.parametrize("name", ["no=te", "no\x00te", ""])
def test_a_name_that_no_environment_can_have_is_refused(name: str) -> None:
    """Every action of the resource would fail by it, also the stop of what runs, which gets its node fenced."""
    expected = ["BAD_CHARACTER" if name else "BAD_VALUE"]
    assert [str(report.code) for report in given_to_an_agent(((name, "1"),))] == expected
    assert [str(report.code) for report in given_to_an_agent((), ((name, "1"),))][:1] == expected
    assert given_to_an_agent(((name, "1"),), is_foreign=True) == []


def test_a_meta_attribute_of_ones_own_holds_no_control_character() -> None:
    [report] = given_to_an_agent((), (("note", "a\x00b"),))
    assert (str(report.code), report.place) == ("BAD_CHARACTER", None)


@pytest.mark.parametrize(("value", "is_fit"), [("a" * 45_000, True), ("a" * 50_000, False), ("\u6f22" * 17_000, False),
                                               ('"' * 25_000, False)])  # fmt: skip
def test_what_no_entry_of_the_log_could_hold_is_refused_with_what_to_do(value: str, is_fit: bool) -> None:
    for reports in (given_to_an_agent((("config", value),)), given_to_an_agent((), (("config", value),))):
        assert [str(report.code) for report in reports] == ([] if is_fit else ["TOO_LARGE"])
        assert all("most of it in config, is larger than 48 KiB" in report.message for report in reports)
        assert all("file" in (report.remedy or "") for report in reports)


@pytest.mark.parametrize(
    ("meta", "is_fit"),
    [
        ("notify=true globally-unique=true clone-max=700 clone-node-max=700", False),
        ("notify=true globally-unique=true clone-max=400 clone-node-max=400", True),
        ("globally-unique=true clone-max=900 clone-node-max=900", True),
        ("notify=true clone-max=900", True),
    ],
)
def test_no_more_instances_are_notified_of_each_other_than_one_order_can_name(meta: str, *, is_fit: bool) -> None:
    """Without that order none of them is started or stopped any more."""
    name = "database-of-another-part"
    text = f"primitive {name} ocf:pacemaker:Dummy\nclone databases {name} meta {meta}"
    reports = [each for each in judge(text) if each.code is Code.TOO_LARGE]
    assert bool(reports) is not is_fit
    assert all("databases" in each.message and "clone-max" in (each.remedy or "") for each in reports)


def with_dated_blocks(count: int) -> Configuration:
    """Return as many resources with a meta-attribute that is in force until the end of the century."""
    rule = Rule("r", (DateExpression("lt", end="2100-01-01T00:00:00Z"),))
    return Configuration(resources={
        name: Primitive(name, AgentReference("ocf", "heartbeat", "Dummy"),
                        meta=(AttributeSet(f"{name}-meta_attributes-1", (("priority", "1"),), rule=rule),))
        for name in map("service-{:04}".format, range(count))
    })  # fmt: skip


def test_no_more_blocks_under_rules_on_dates_are_configured_than_one_judgement_can_name() -> None:
    """Rules that were not judged keep everything from being planned and fenced."""
    most = with_dated_blocks(950)
    judgement = JudgeRules(Term(1), 1, WallTime(0), tuple(dated_blocks(most)))
    assert len(encode_envelope(Envelope(RequestId("n1:token:1"), "n1", WallTime(0), judgement))) < MAX_ENTRY_BYTES
    assert "TOO_LARGE" not in {str(report.code) for report in verify(most, members={}, agents=None)}
    [report] = [each for each in verify(with_dated_blocks(1200), members={}, agents=None)
                if str(each.code) == "TOO_LARGE"]  # fmt: skip
    assert report.message == "the names of all 1200 blocks under rules on dates together is larger than 60 KiB"
    assert "template" in (report.remedy or "")


def test_the_demonstration_fits_the_shipped_agents() -> None:
    agents = {}
    for name in ("ocf:haclusterd:dummy", "ocf:haclusterd:http-service", "stonith:fence_local"):
        reference = AgentReference.parse(name)
        text = (ROOT / "tests" / "golden" / "agents" / f"{reference.type}.xml").read_text()
        agents[name] = read_agent_metadata(text, reference).facts()
    variables = {"COMMAND": "c", "READY_URL": "u", "NODES_DIR": "d"}
    policy = load_policy((ROOT / "policies" / "demo.yaml").read_text(), "demo.yaml", variables)
    members = {name: Member(name, ()) for name in ("n1", "n2", "n3")}
    assert policy.configuration is not None
    assert verify(policy.configuration, members=members, agents=agents, places=policy.places) == ()


def test_many_circles_and_long_chains_end() -> None:
    chain = "\n".join(f"primitive p{n} Dummy op monitor interval=1s\norder o{n} p{n} p{n + 1}" for n in range(600))
    pairs = "\n".join(f"order x{n} p{n} p{n + 1}\norder y{n} p{n + 1} p{n}" for n in range(0, 100, 2))
    reports = judge(f"{GOOD}{chain}\nprimitive p600 Dummy op monitor interval=1s\norder back p600 p0\n{pairs}")
    assert {str(report.code) for report in reports} == {"ORDER_CYCLE"}
    assert 0 < len(reports) <= 20


@pytest.mark.parametrize(("count", "remedy"), [(2, "one of: p0, p1"), (20, "what it takes: crm ra info ocf:x:y")])
def test_an_unknown_parameter_is_answered_with_what_the_agent_takes(count: int, remedy: str) -> None:
    facts = AgentFacts(parameters={f"p{number}": ParameterFacts() for number in range(count)})
    script = assemble(parse_script("primitive w ocf:x:y params colour=red op monitor interval=5s", "t").statements)
    reports = verify(script.configuration, members={}, agents={"ocf:x:y": facts}, places=script.places)
    assert [each.remedy for each in reports if each.code is Code.UNKNOWN_PARAMETER] == [remedy]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("colocation x inf: ( a b ) c node-attribute=rack", "1:12"),
        ("location x { a b } role=Started 5: n1", "1:10"),
        ("primitive d Dummy op monitor interval=5s start-delay=1s interval-origin=2030-01-01", "1:22"),
    ],
)
def test_what_would_make_a_file_of_pacemakers_unreadable_is_refused_there_alone(text: str, place: str) -> None:
    assert ("NOT_IN_SCHEMA", place) in found(text, is_foreign=True)
    assert "NOT_IN_SCHEMA" not in dict(found(text))
