"""The one table of everything that can be reported to a user: code, message, default severity, exit status, usual
remedy.

A code is part of the interface (scripts and tests look at it): it is never renamed or given another meaning. Templates
name their parameters; `items.report` insists on exactly those. A new message is a new row here.
"""

from enum import StrEnum

from haclusterd.model.records import dataclass
from haclusterd.reports.exit_codes import ExitStatus


class Severity(StrEnum):
    """How grave a message is: an error refuses the whole change, a warning does not."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Code(StrEnum):
    """What a message says, for programs."""

    # reading text
    SYNTAX = "SYNTAX"
    EXPECTED = "EXPECTED"
    UNEXPECTED = "UNEXPECTED"
    UNCLOSED_QUOTE = "UNCLOSED_QUOTE"
    UNKNOWN_KEYWORD = "UNKNOWN_KEYWORD"
    NOT_YET = "NOT_YET"
    LEFT_OUT = "LEFT_OUT"
    NO_QUORUM_LEFT = "NO_QUORUM_LEFT"
    STALE = "STALE"
    STORED_AS = "STORED_AS"
    KEPT = "KEPT"
    NOT_IN_SCHEMA = "NOT_IN_SCHEMA"
    SECRET_KEPT = "SECRET_KEPT"
    SECRET_HIDDEN = "SECRET_HIDDEN"
    WITHOUT_EFFECT = "WITHOUT_EFFECT"
    BAD_ID = "BAD_ID"
    BAD_VALUE = "BAD_VALUE"
    BAD_CHARACTER = "BAD_CHARACTER"
    DUPLICATE_NAME = "DUPLICATE_NAME"
    UNKNOWN_KEY = "UNKNOWN_KEY"
    MISSING_KEY = "MISSING_KEY"
    WRONG_TYPE = "WRONG_TYPE"
    UNDEFINED_VARIABLE = "UNDEFINED_VARIABLE"
    TOO_LARGE = "TOO_LARGE"
    NEEDS_UPGRADE = "NEEDS_UPGRADE"
    MORE_FAULTS = "MORE_FAULTS"
    # what is configured, as a whole
    DUPLICATE_ID = "DUPLICATE_ID"
    EXISTS = "EXISTS"
    UNKNOWN_RESOURCE = "UNKNOWN_RESOURCE"
    UNKNOWN_TEMPLATE = "UNKNOWN_TEMPLATE"
    UNKNOWN_NODE = "UNKNOWN_NODE"
    NODE_NOT_A_MEMBER = "NODE_NOT_A_MEMBER"
    UNKNOWN_OBJECT = "UNKNOWN_OBJECT"
    NOT_SET = "NOT_SET"
    UNKNOWN_ROLE = "UNKNOWN_ROLE"
    ACL_OFF = "ACL_OFF"
    UNKNOWN_PROPERTY = "UNKNOWN_PROPERTY"
    UNKNOWN_META = "UNKNOWN_META"
    UNKNOWN_OPERATION_ATTRIBUTE = "UNKNOWN_OPERATION_ATTRIBUTE"
    UNKNOWN_AGENT = "UNKNOWN_AGENT"
    UNKNOWN_PARAMETER = "UNKNOWN_PARAMETER"
    TAKES_NO_PARAMETERS = "TAKES_NO_PARAMETERS"
    AGENT_UNREADABLE = "AGENT_UNREADABLE"
    ASKS_ITS_TARGET = "ASKS_ITS_TARGET"
    MISSING_PARAMETER = "MISSING_PARAMETER"
    TOOLS_MISSING = "TOOLS_MISSING"
    AGENT_OBJECTS = "AGENT_OBJECTS"
    AGENTS_SILENT = "AGENTS_SILENT"
    MEMBER_NOT_A_PRIMITIVE = "MEMBER_NOT_A_PRIMITIVE"
    MEMBER_TWICE = "MEMBER_TWICE"
    MEMBER_OF_TWO_GROUPS = "MEMBER_OF_TWO_GROUPS"
    CHILD_OF_TWO = "CHILD_OF_TWO"
    BAD_CHILD = "BAD_CHILD"
    GROUP_EMPTY = "GROUP_EMPTY"
    EQUAL_INTERVALS = "EQUAL_INTERVALS"
    OPERATION_TWICE = "OPERATION_TWICE"
    INTERVAL_OF_ONE_SHOT = "INTERVAL_OF_ONE_SHOT"
    TIMEOUT_TOO_SHORT = "TIMEOUT_TOO_SHORT"
    TIMEOUT_TOO_LONG = "TIMEOUT_TOO_LONG"
    TIMEOUT_BELOW_ADVICE = "TIMEOUT_BELOW_ADVICE"
    UNFENCING_NOT_SAID = "UNFENCING_NOT_SAID"
    NO_MONITOR = "NO_MONITOR"
    CONSTRAINT_WITH_ITSELF = "CONSTRAINT_WITH_ITSELF"
    ORDER_CYCLE = "ORDER_CYCLE"
    ORDERS_WAIT = "ORDERS_WAIT"
    STOPS_WAIT = "STOPS_WAIT"
    COLOCATION_CONTRADICTION = "COLOCATION_CONTRADICTION"
    COLOCATION_WITHIN_GROUP = "COLOCATION_WITHIN_GROUP"
    COLOCATION_WITH_MEMBERS_APART = "COLOCATION_WITH_MEMBERS_APART"
    LOCATION_NO_EFFECT = "LOCATION_NO_EFFECT"
    NO_NODE_ALLOWED = "NO_NODE_ALLOWED"
    FENCING_DISABLED = "FENCING_DISABLED"
    NODE_NOT_COVERED = "NODE_NOT_COVERED"
    POLICY_DEFEATS_WATCHDOG = "POLICY_DEFEATS_WATCHDOG"
    QUORUM_IGNORED = "QUORUM_IGNORED"
    FENCE_DEVICE_IN_GROUP = "FENCE_DEVICE_IN_GROUP"
    NOT_A_FENCE_DEVICE = "NOT_A_FENCE_DEVICE"
    DEVICE_NOT_USABLE = "DEVICE_NOT_USABLE"
    NODES_SHARE_PORT = "NODES_SHARE_PORT"
    LEVEL_NEVER_OFF = "LEVEL_NEVER_OFF"
    NEEDS_OCF = "NEEDS_OCF"
    CANNOT_PROMOTE = "CANNOT_PROMOTE"
    NOT_PROMOTABLE = "NOT_PROMOTABLE"
    POLICY_NEEDS_FENCING = "POLICY_NEEDS_FENCING"
    RULE_WITHOUT_EFFECT = "RULE_WITHOUT_EFFECT"
    # what an administrator asks for
    UNKNOWN_VERB = "UNKNOWN_VERB"
    UNKNOWN_ARGUMENT = "UNKNOWN_ARGUMENT"
    MISSING_ARGUMENT = "MISSING_ARGUMENT"
    BAD_ARGUMENT = "BAD_ARGUMENT"
    USAGE = "USAGE"
    AMBIGUOUS = "AMBIGUOUS"
    NOT_PERMITTED = "NOT_PERMITTED"
    ACL_DENIED = "ACL_DENIED"
    NOT_OFFLINE = "NOT_OFFLINE"
    NO_SUCH_NODE = "NO_SUCH_NODE"
    NO_SUCH_RESOURCE = "NO_SUCH_RESOURCE"
    NO_SUCH_TICKET = "NO_SUCH_TICKET"
    NO_SUCH_DEVICE = "NO_SUCH_DEVICE"
    DEVICE_IN_USE = "DEVICE_IN_USE"
    DEVICE_NOT_RECOVERED = "DEVICE_NOT_RECOVERED"
    UNKNOWN_FAULT = "UNKNOWN_FAULT"
    BAD_FAULT_TABLE = "BAD_FAULT_TABLE"
    ALERT_FAILED = "ALERT_FAILED"
    ALERT_WAITS = "ALERT_WAITS"
    NO_SUCH_TOKEN = "NO_SUCH_TOKEN"
    NOT_AUTHENTICATED = "NOT_AUTHENTICATED"
    NO_SUCH_VERSION = "NO_SUCH_VERSION"
    VERSION_NOT_KEPT = "VERSION_NOT_KEPT"
    NO_SUCH_TRANSITION = "NO_SUCH_TRANSITION"
    HISTORY_INCOMPLETE = "HISTORY_INCOMPLETE"
    HISTORY_DIFFERS = "HISTORY_DIFFERS"
    HISTORIES_EQUAL = "HISTORIES_EQUAL"
    SECRET_LEFT_OUT = "SECRET_LEFT_OUT"
    SECRET_MISSING = "SECRET_MISSING"
    SECRET_UNKNOWN = "SECRET_UNKNOWN"
    SECRET_CLOSED = "SECRET_CLOSED"
    SECRET_WAS_CLEAR = "SECRET_WAS_CLEAR"
    NO_SUCH_SECRET = "NO_SUCH_SECRET"
    DAMAGED = "DAMAGED"
    READ_CONFIRMED = "READ_CONFIRMED"
    OLD_NODE_UNSURE = "OLD_NODE_UNSURE"
    RECOVERED = "RECOVERED"
    MACHINE_ADOPTED = "MACHINE_ADOPTED"
    HAS_DEPENDANTS = "HAS_DEPENDANTS"
    NOT_ACTIVE = "NOT_ACTIVE"
    NOT_STARTED = "NOT_STARTED"
    NOT_STARTED_AGAIN = "NOT_STARTED_AGAIN"
    NOT_STOPPED = "NOT_STOPPED"
    UNMANAGED = "UNMANAGED"
    UNSAFE = "UNSAFE"
    NOTHING_TO_DO = "NOTHING_TO_DO"
    CONFIGURATION_CHANGED = "CONFIGURATION_CHANGED"
    REQUESTED = "REQUESTED"
    MOVED = "MOVED"
    MOVE_KEPT = "MOVE_KEPT"
    MOVE_WITHDRAWN = "MOVE_WITHDRAWN"
    MOVE_HAS_NO_EFFECT = "MOVE_HAS_NO_EFFECT"
    NO_DEVICE = "NO_DEVICE"
    # how a request went
    NO_INPUT = "NO_INPUT"
    INPUT_OUTPUT = "INPUT_OUTPUT"
    UNREADABLE = "UNREADABLE"
    NOT_RUNNING = "NOT_RUNNING"
    DISCONNECTED = "DISCONNECTED"
    NO_QUORUM = "NO_QUORUM"
    TRY_AGAIN = "TRY_AGAIN"
    CHANGED_BY_BOTH = "CHANGED_BY_BOTH"
    CONFLICT = "CONFLICT"
    REFUSED = "REFUSED"
    TIMEOUT = "TIMEOUT"
    TAKES_TOO_LONG = "TAKES_TOO_LONG"
    NOT_ANSWERED = "NOT_ANSWERED"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    SCHEDULER_FAILED = "SCHEDULER_FAILED"
    DRY_RUN = "DRY_RUN"
    EVEN_VOTERS = "EVEN_VOTERS"
    # who belongs to the cluster
    NOT_ADMITTED = "NOT_ADMITTED"
    TOKEN_SEEN = "TOKEN_SEEN"
    NO_INVITER = "NO_INVITER"
    NO_AUTHORITY = "NO_AUTHORITY"
    CLOCKS_DIFFER = "CLOCKS_DIFFER"
    CERTIFICATE_EXPIRES = "CERTIFICATE_EXPIRES"


@dataclass(frozen=True, slots=True)
class CodeRow:
    """What belongs to one code."""

    template: str
    exit_status: ExitStatus
    remedy: str = ""
    """May use the template's parameters."""
    severity: Severity = Severity.ERROR

    @property
    def names(self) -> frozenset[str]:
        """The parameters that the template and the remedy use."""
        # Loaded with the first report: a command without one does not wait for it.
        from string import Formatter

        texts = (self.template, self.remedy)
        return frozenset(name for text in texts for _, name, _, _ in Formatter().parse(text) if name)


_DATA = ExitStatus.DATA
_CONFIGURATION = ExitStatus.CONFIGURATION
_WARNING = Severity.WARNING

CODES: dict[Code, CodeRow] = {
    Code.SYNTAX: CodeRow("{problem}", _DATA, "correct the text there"),
    Code.EXPECTED: CodeRow(
        "{construct}: expected {expected}, near <{found}>", _DATA, "write it there; see: crm help configure"
    ),
    Code.UNEXPECTED: CodeRow(
        "{construct}: unexpected <{found}>", _DATA, "correct or remove it; see: crm help configure"
    ),
    Code.UNCLOSED_QUOTE: CodeRow("a quote is opened with {quote} and never closed", _DATA, "close it with {quote}"),
    Code.UNKNOWN_KEYWORD: CodeRow("unknown keyword {word}", _DATA),
    Code.NOT_YET: CodeRow("{construct} is not supported yet", _DATA, "remove it; nothing of this text was used"),
    Code.LEFT_OUT: CodeRow("left out: {problem}", ExitStatus.OK, severity=Severity.WARNING),
    Code.NO_QUORUM_LEFT: CodeRow(
        "NO QUORUM: {left} of {voters} voters are there, {needed} are needed: nothing is fenced, started or recovered",
        ExitStatus.OK, "bring voters back", severity=Severity.WARNING,
    ),
    Code.STALE: CodeRow(
        "{node} has no quorum: it answers from its state of {age} ago, and the other nodes may have a newer one",
        ExitStatus.OK, "ask a node that has quorum", severity=Severity.WARNING,
    ),
    Code.STORED_AS: CodeRow("{what} is kept as {stored}", ExitStatus.OK, severity=Severity.INFO),
    Code.NOT_IN_SCHEMA: CodeRow("{where}: a CIB of Pacemaker cannot have {what}", _CONFIGURATION, "leave it out"),
    Code.KEPT: CodeRow("{what} is kept and shown; {why}", ExitStatus.OK, severity=Severity.INFO),
    Code.SECRET_KEPT: CodeRow(
        "{name} keeps its value: the text has asterisks in its place", ExitStatus.OK, severity=Severity.INFO
    ),
    Code.SECRET_HIDDEN: CodeRow(
        "{name} is ******, which stands for a secret that was not shown", ExitStatus.BAD_VALUE,
        "write the secret itself; crm configure save and crm configure show --show-secrets have it",
    ),
    Code.WITHOUT_EFFECT: CodeRow("{what} has no effect here: {why}", ExitStatus.OK, severity=Severity.WARNING),
    Code.BAD_ID: CodeRow(
        "{id!r} cannot be an id", _DATA, "start with a letter or _, continue with letters, digits, '.', '-' and '_'"
    ),
    Code.BAD_VALUE: CodeRow("{name}: {problem}", ExitStatus.BAD_VALUE, "correct the value"),
    Code.BAD_CHARACTER: CodeRow("{name} contains the character {character}", _DATA, "remove it"),
    Code.DUPLICATE_NAME: CodeRow("{name} is given twice", _DATA, "remove one of the two"),
    Code.UNKNOWN_KEY: CodeRow("{where}: unknown key {key}", _DATA),
    Code.MISSING_KEY: CodeRow("{where}: {key} is missing", _DATA, "add {key}: ..."),
    Code.WRONG_TYPE: CodeRow("{name} must be {expected}, not {found}", _DATA, "write {expected} there"),
    Code.UNDEFINED_VARIABLE: CodeRow(
        "variable {name} is not defined", _DATA, "define {name}, or write $${{ for a literal ${{"
    ),
    Code.TOO_LARGE: CodeRow("{what} is larger than {limit}", _DATA, "split it"),
    Code.NEEDS_UPGRADE: CodeRow(
        "this needs feature level {level}, which {nodes} cannot read", _CONFIGURATION,
        "upgrade haclusterd there; the cluster's level rises by itself",
    ),
    Code.MORE_FAULTS: CodeRow("there are more than {limit} errors", _DATA, "correct these first"),
    Code.DUPLICATE_ID: CodeRow("{id} is defined twice", _CONFIGURATION, "give one of them another id"),
    Code.EXISTS: CodeRow(
        "{kind} {id} exists already", ExitStatus.EXISTS, "choose another id, or replace it with: configure load update"
    ),
    Code.UNKNOWN_RESOURCE: CodeRow("{where}: there is no resource {id}", _CONFIGURATION, "define {id}"),
    Code.UNKNOWN_TEMPLATE: CodeRow("{where}: there is no template {id}", _CONFIGURATION, "define {id}: rsc_template"),
    Code.UNKNOWN_NODE: CodeRow(
        "{where}: there is no node {node}", _CONFIGURATION, "correct it, or let {node} join the cluster",
        severity=_WARNING,
    ),
    Code.NODE_NOT_A_MEMBER: CodeRow(
        "node {node} is configured, but no member of the cluster", _CONFIGURATION, "let it join the cluster",
        severity=_WARNING,
    ),
    Code.NOT_SET: CodeRow("{name} is not set for {where}", ExitStatus.NO_SUCH_OBJECT),
    Code.UNKNOWN_OBJECT: CodeRow(
        "there is no object {id}", ExitStatus.NO_SUCH_OBJECT, "see: crm configure show"
    ),
    Code.UNKNOWN_ROLE: CodeRow("{where}: there is no role {role}", _CONFIGURATION),
    Code.ACL_OFF: CodeRow(
        "access control lists are not in force: enable-acl is not true", ExitStatus.OK,
        "try them first: crm acl can VERB --user NAME; then: crm configure property enable-acl=true", Severity.WARNING,
    ),
    Code.UNKNOWN_PROPERTY: CodeRow("unknown cluster property {name}", _CONFIGURATION),
    Code.UNKNOWN_META: CodeRow("{where}: unknown meta-attribute {name}", _CONFIGURATION),
    Code.UNKNOWN_OPERATION_ATTRIBUTE: CodeRow("{where}: unknown operation attribute {name}", _CONFIGURATION),
    Code.UNKNOWN_AGENT: CodeRow("{where}: there is no agent {agent}", _CONFIGURATION, "install it or correct the name"),
    Code.AGENT_UNREADABLE: CodeRow(
        "{where}: agent {agent} is here, and what it prints as meta-data cannot be read", _CONFIGURATION,
        "see what is wrong with it: crm ra info {agent}",
    ),
    Code.ASKS_ITS_TARGET: CodeRow(
        "{where}: {agent} has a node restart itself, and cannot fence one that hangs or is cut off", _CONFIGURATION,
        "use it for tests only; for the others: crm ra list stonith", severity=_WARNING,
    ),
    Code.UNKNOWN_PARAMETER: CodeRow("{where}: agent {agent} has no parameter {name}", _CONFIGURATION),
    Code.TAKES_NO_PARAMETERS: CodeRow(
        "{where}: an agent of class {standard} takes no parameters, so {name} has no effect", _CONFIGURATION,
        "remove it; what the service needs is in its own configuration",
    ),
    Code.MISSING_PARAMETER: CodeRow(
        "{where}: agent {agent} requires parameter {name}", _CONFIGURATION, "add to {where}: params {name}=VALUE"
    ),
    Code.TOOLS_MISSING: CodeRow(
        "{where}: agent {agent} calls {tools}, which haclusterd does not have: it would act without their answers",
        _CONFIGURATION, "use another agent, or one of your own",
    ),
    Code.AGENT_OBJECTS: CodeRow(
        "{where} objects on {node}: {words}", _CONFIGURATION,
        "correct the parameters; on the node that is to run it: crm configure validate-all", severity=_WARNING,
    ),
    Code.AGENTS_SILENT: CodeRow(
        "agents of {node} gave no answer about the parameters of {ids}", ExitStatus.OK,
        "ask them all, with more time: crm configure validate-all", severity=Severity.INFO,
    ),
    Code.MEMBER_NOT_A_PRIMITIVE: CodeRow(
        "group {group}: member {id} is not a primitive", _CONFIGURATION, "a group is made of primitives only"
    ),
    Code.MEMBER_TWICE: CodeRow("group {group}: {id} is a member twice", _CONFIGURATION, "name it once"),
    Code.MEMBER_OF_TWO_GROUPS: CodeRow(
        "{id} is a member of group {first} and of group {second}", _CONFIGURATION, "remove it from one of them"
    ),
    Code.CHILD_OF_TWO: CodeRow("{id} is in {first} and in {second}", _CONFIGURATION, "remove it from one of them"),
    Code.BAD_CHILD: CodeRow("{parent}: {id} is a {kind}", _CONFIGURATION),
    Code.GROUP_EMPTY: CodeRow("group {group} has no members", _CONFIGURATION, "name at least one primitive"),
    Code.EQUAL_INTERVALS: CodeRow(
        "{resource}: two monitors have the interval {interval}: only the first of them runs", _CONFIGURATION,
        "give them different intervals, as in 10s and 11s", severity=_WARNING,
    ),
    Code.OPERATION_TWICE: CodeRow(
        "{resource}: operation {operation} is given twice: the first one counts", _CONFIGURATION, "remove one",
        severity=_WARNING,
    ),
    Code.INTERVAL_OF_ONE_SHOT: CodeRow(
        "{resource}: operation {operation} cannot recur (interval {interval})", _CONFIGURATION, "write interval=0"
    ),
    Code.TIMEOUT_TOO_SHORT: CodeRow(
        "{where}: a timeout of {timeout} ends every action at once", _CONFIGURATION, "write seconds, as in timeout=20s"
    ),
    Code.TIMEOUT_TOO_LONG: CodeRow(
        "{where}: a timeout of {timeout} delays recovery that long", _CONFIGURATION, "lower it", severity=_WARNING
    ),
    Code.TIMEOUT_BELOW_ADVICE: CodeRow(
        "{where}: timeout {timeout} is below the agent's advice {advice}", _CONFIGURATION, "raise it to {advice}",
        severity=_WARNING,
    ),
    Code.UNFENCING_NOT_SAID: CodeRow(
        "{where}: agent {agent} must let each node in when it joins, and is not configured to: it will not be asked to",
        _CONFIGURATION, "add meta provides=unfencing", severity=_WARNING,
    ),
    Code.NO_MONITOR: CodeRow(
        "{resource} has no recurring monitor: its failures are not noticed", _CONFIGURATION,
        "add: op monitor interval=10s timeout=20s", severity=_WARNING,
    ),
    Code.CONSTRAINT_WITH_ITSELF: CodeRow(
        "constraint {id} relates {resource} to itself", _CONFIGURATION, "name two resources"
    ),
    Code.ORDER_CYCLE: CodeRow(
        "mandatory orders form a cycle: {circle}", _CONFIGURATION, "remove one of: {constraints}"
    ),
    Code.ORDERS_WAIT: CodeRow(
        "orders form a cycle: {circle}; what is to start together waits forever", _CONFIGURATION,
        "remove one of: {constraints}", severity=_WARNING,
    ),
    Code.STOPS_WAIT: CodeRow(
        "orders of stops form a cycle: {circle}; what is to stop together is never stopped", _CONFIGURATION,
        "remove one of: {constraints}", severity=_WARNING,
    ),
    Code.COLOCATION_CONTRADICTION: CodeRow(
        "{dependent} must and must not run with {primary}: {constraints}", _CONFIGURATION, "remove one of them"
    ),
    Code.COLOCATION_WITHIN_GROUP: CodeRow(
        "colocation {id} places {dependent} with {primary}, but group {group} places {primary} after {dependent}",
        _CONFIGURATION, "remove it: the members of a group run together"
    ),
    Code.COLOCATION_WITH_MEMBERS_APART: CodeRow(
        "colocation {id} has no effect while the members of {group} are on several nodes, which its collocated=false "
        "allows", _CONFIGURATION, "place {dependent} with the member that it needs, or remove collocated=false",
        severity=_WARNING,
    ),
    Code.LOCATION_NO_EFFECT: CodeRow(
        "location {id} is overruled by location {other} for the same resource and node", _CONFIGURATION,
        "remove one of them", severity=_WARNING,
    ),
    Code.NO_NODE_ALLOWED: CodeRow(
        "{resource} is banned from every node", _CONFIGURATION, "remove one of: {constraints}", severity=_WARNING
    ),
    Code.FENCING_DISABLED: CodeRow(
        "fencing is disabled: resources of a lost node are not recovered", _CONFIGURATION,
        "set fencing-enabled=true and configure a fence device", severity=_WARNING,
    ),
    Code.NODE_NOT_COVERED: CodeRow(
        "NO FAILOVER for {node}: no fencing device", _CONFIGURATION,
        "configure a fence device for {node}", severity=_WARNING,
    ),
    Code.QUORUM_IGNORED: CodeRow(
        "no-quorum-policy=ignore: a node that is cut off runs on; where it is not fenced, two copies run",
        _CONFIGURATION, "set no-quorum-policy=stop", severity=_WARNING,
    ),
    Code.POLICY_DEFEATS_WATCHDOG: CodeRow(
        "{problem}", _CONFIGURATION, "set no-quorum-policy=stop, or watchdog-fencing=false",
    ),
    Code.FENCE_DEVICE_IN_GROUP: CodeRow(
        "fence device {id} is a member of group {group}", _CONFIGURATION, "take it out of the group",
        severity=_WARNING,
    ),
    Code.NOT_A_FENCE_DEVICE: CodeRow(
        "{where}: {id} is not a fence device", _CONFIGURATION, "name primitives of the class stonith"
    ),
    Code.DEVICE_NOT_USABLE: CodeRow(
        "NO FENCING with {device}: symmetric-cluster=false, and no location constraint allows a node to use it",
        _CONFIGURATION, "for each node that may use it: crm configure location NAME {device} 0: NODE",
        severity=_WARNING,
    ),
    Code.NODES_SHARE_PORT: CodeRow(
        "{where}: {nodes} have one name, {port}: who fences one of them fences another, and the first runs on",
        _CONFIGURATION, "give each node the name that the device has for it", severity=_WARNING,
    ),
    Code.LEVEL_NEVER_OFF: CodeRow(
        "{where}: {id} has pcmk_off_action={action}, so its devices cut a node's power one after the other, and never "
        "all of it", _CONFIGURATION, "leave pcmk_off_action out", severity=_WARNING,
    ),
    Code.NEEDS_OCF: CodeRow(
        "clone {clone} cannot be {what}: {id} has the agent {agent}", _CONFIGURATION,
        "only agents of the class ocf can tell their instances apart",
    ),
    Code.CANNOT_PROMOTE: CodeRow(
        "clone {clone} cannot be promotable: agent {agent} has no action {actions}", _CONFIGURATION,
        "take promotable=true away, or use an agent that can be promoted",
    ),
    Code.NOT_PROMOTABLE: CodeRow(
        "{where}: {id} is not promotable, so {word} has no effect", _CONFIGURATION,
        "make it a clone with meta promotable=true, and name the clone", severity=_WARNING,
    ),
    Code.POLICY_NEEDS_FENCING: CodeRow(
        "{where}: loss-policy=fence does nothing while fencing is disabled", _CONFIGURATION,
        "set fencing-enabled=true, or another loss-policy", severity=_WARNING,
    ),
    Code.RULE_WITHOUT_EFFECT: CodeRow(
        "{where}: a rule has no effect: {problem}", _CONFIGURATION, "correct or remove it", severity=_WARNING
    ),
    Code.UNKNOWN_VERB: CodeRow("there is no command {verb}", ExitStatus.USAGE),
    Code.UNKNOWN_ARGUMENT: CodeRow("{verb}: unknown argument {name}", ExitStatus.USAGE),
    Code.MISSING_ARGUMENT: CodeRow("{verb}: {name} is missing: {meaning}", ExitStatus.USAGE),
    Code.BAD_ARGUMENT: CodeRow("{name}: {problem}", ExitStatus.BAD_VALUE),
    Code.USAGE: CodeRow("{problem}", ExitStatus.USAGE),
    Code.AMBIGUOUS: CodeRow("{word} is ambiguous: {choices}", ExitStatus.AMBIGUOUS, "write more of it"),
    Code.NOT_PERMITTED: CodeRow("{verb} needs the permission {permission}", ExitStatus.NOT_PERMITTED,
                                "be root, or a member of the group haclient"),
    Code.ACL_DENIED: CodeRow("{verb} is denied: {what} ({rule})", ExitStatus.NOT_PERMITTED,
                             "see: crm acl whoami; root can grant more: crm configure show type:role"),
    Code.NOT_OFFLINE: CodeRow("{what} needs a running cluster", ExitStatus.UNAVAILABLE, "leave out --cib-file"),
    Code.NO_SUCH_NODE: CodeRow("there is no node {node}", ExitStatus.UNKNOWN_NODE),
    Code.NO_SUCH_RESOURCE: CodeRow("there is no resource {resource}", ExitStatus.NO_SUCH_OBJECT),
    Code.NO_SUCH_TOKEN: CodeRow("there is no API token {name}", ExitStatus.NO_SUCH_OBJECT),
    Code.NOT_AUTHENTICATED: CodeRow("not accepted: {problem}", ExitStatus.NOT_PERMITTED,
                                    "make a token: crm api token add NAME --role viewer"),
    Code.NO_SUCH_DEVICE: CodeRow("there is no device {device}", ExitStatus.NO_SUCH_OBJECT),
    Code.UNKNOWN_FAULT: CodeRow("there is no fault {name}", ExitStatus.NO_SUCH_OBJECT),
    Code.BAD_FAULT_TABLE: CodeRow("{file} is not used: {problem}", ExitStatus.OK, "see: crm gpu lint",
                                  severity=Severity.WARNING),
    Code.DEVICE_NOT_RECOVERED: CodeRow("device {device} {problem}", ExitStatus.UNSAFE),
    Code.DEVICE_IN_USE: CodeRow("device {device} cannot be forgotten: {problem}", ExitStatus.UNSAFE),
    Code.ALERT_FAILED: CodeRow("the alert agent for {recipient} has not succeeded: {problem}", ExitStatus.FAILED,
                               "see what it said; crm alert list shows its path and settings"),
    Code.ALERT_WAITS: CodeRow(
        "the alert agent for {recipient} has not ended yet, or other events wait before the test", ExitStatus.OK,
        "look again: crm alert list; wait longer: crm --wait=5min alert test", severity=_WARNING,
    ),
    Code.NO_SUCH_TICKET: CodeRow("there is no ticket {ticket}", ExitStatus.NO_SUCH_OBJECT),
    Code.NO_SUCH_VERSION: CodeRow(
        "there is no configuration version {number}", ExitStatus.NO_SUCH_OBJECT, "see: crm history config"
    ),
    Code.VERSION_NOT_KEPT: CodeRow(
        "configuration version {number} is not in the history of {node}", ExitStatus.NO_SUCH_OBJECT,
        "another node may have it: run this there",
    ),
    Code.NO_SUCH_TRANSITION: CodeRow(
        "transition {transition} is not in the history of this node", ExitStatus.NO_SUCH_OBJECT,
        "see: crm history events",
    ),
    Code.HISTORY_INCOMPLETE: CodeRow("the history of this node is incomplete: {problem}", ExitStatus.OK,
                                     severity=_WARNING),
    Code.HISTORY_DIFFERS: CodeRow("the history of {node} {problem}", ExitStatus.FAILED,
                                  "what is missing is fetched from peers that have it; look again: crm history check"),
    Code.HISTORIES_EQUAL: CodeRow("the histories of {count} nodes are equal", ExitStatus.OK, severity=Severity.INFO),
    Code.SECRET_LEFT_OUT: CodeRow(
        "left out, because it is secret: {what}", ExitStatus.OK, "with --show-secrets it is written too",
        severity=_WARNING,
    ),
    Code.SECRET_MISSING: CodeRow(
        "the backup does not hold the secret {what}", ExitStatus.OK, "set it before it is needed: crm configure edit",
        severity=_WARNING,
    ),
    Code.SECRET_UNKNOWN: CodeRow(
        "{where} refers to secret {name}, which does not exist: it will not start", ExitStatus.OK,
        severity=_WARNING,
    ),
    Code.SECRET_CLOSED: CodeRow("this node cannot open {what}: {problem}", ExitStatus.FAILED),
    Code.SECRET_WAS_CLEAR: CodeRow(
        "earlier versions of the configuration, and their backups, contain {what} in plain text", ExitStatus.OK,
        "set another value where it is used, then: crm resource secret RESOURCE set PARAMETER", severity=_WARNING,
    ),
    Code.NO_SUCH_SECRET: CodeRow("there is no secret {name}", ExitStatus.NO_SUCH_OBJECT),
    Code.DAMAGED: CodeRow("{where}: {problem}", _DATA, "use another backup; nothing of this one was used"),
    Code.OLD_NODE_UNSURE: CodeRow(
        "something listens at {address}, where {node} was, and does not identify itself", ExitStatus.OK,
        "make sure that it is not a stopped daemon of the old cluster", severity=_WARNING,
    ),
    Code.RECOVERED: CodeRow("{node} starts a new cluster alone", ExitStatus.OK,
                            "no node of the old cluster may be switched on with its old files", severity=_WARNING),
    Code.MACHINE_ADOPTED: CodeRow("this machine is {node} now, by {machine}", ExitStatus.OK,
                                  "start it: systemctl start haclusterd; the first machine must never be started again"
                                  " with this disk or a copy of it", severity=_WARNING),
    Code.READ_CONFIRMED: CodeRow("a majority confirmed within {took_ms} ms that log entry {index} is the newest",
                                 ExitStatus.OK, severity=Severity.INFO),
    Code.HAS_DEPENDANTS: CodeRow("{id} is used by: {dependants}", ExitStatus.UNSAFE, "delete those too: --cascade"),
    Code.NOT_ACTIVE: CodeRow("{resource} is not running anywhere", ExitStatus.FAILED),
    Code.NOT_STARTED: CodeRow("{resource} does not run: {why}", ExitStatus.FAILED, "crm resource why {resource}"),
    Code.NOT_STOPPED: CodeRow("{resource} is not stopped: {why}", ExitStatus.FAILED, "crm resource why {resource}"),
    Code.NOT_STARTED_AGAIN: CodeRow("{resource} does not run again: {why}", ExitStatus.FAILED,
                                    "crm resource why {resource}"),
    Code.UNMANAGED: CodeRow("{resource} is unmanaged on {nodes}: the cluster does not stop it", ExitStatus.FAILED,
                            "crm resource manage {resource}, or crm maintenance off"),
    Code.UNSAFE: CodeRow("{problem}", ExitStatus.UNSAFE, "if that is what you want: --force"),
    Code.NOTHING_TO_DO: CodeRow("nothing to do: {state}", ExitStatus.OK, severity=Severity.INFO),
    Code.CONFIGURATION_CHANGED: CodeRow("{what}", ExitStatus.OK, severity=Severity.INFO),
    Code.REQUESTED: CodeRow("{what}", ExitStatus.OK, severity=Severity.INFO),
    Code.MOVED: CodeRow("{resource} runs on {node}; constraint {constraint} removed", ExitStatus.OK,
                        severity=Severity.INFO),
    Code.MOVE_KEPT: CodeRow("constraint {constraint} is kept: {why}", ExitStatus.OK, "crm resource clear {resource}",
                            severity=_WARNING),
    Code.MOVE_WITHDRAWN: CodeRow("{resource} does not run {where}: {why}; constraint {constraint} removed",
                                 ExitStatus.TIMEOUT, "crm resource why {resource}"),
    Code.MOVE_HAS_NO_EFFECT: CodeRow("{resource} would not run on {node}: {why}", ExitStatus.UNSAFE,
                                     "remove the cause, or move it anyway: --force"),
    Code.NO_DEVICE: CodeRow("no fencing device for {node}", ExitStatus.UNSAFE, "configure a fence device for {node}"),
    Code.NO_INPUT: CodeRow("cannot read {file}: {problem}", ExitStatus.NO_INPUT),
    Code.INPUT_OUTPUT: CodeRow("{what}: {problem}", ExitStatus.IO),
    Code.UNREADABLE: CodeRow("{what} cannot be read: {problem}", ExitStatus.DATA),
    Code.NOT_RUNNING: CodeRow("no daemon answers on {socket}: {problem}", ExitStatus.UNAVAILABLE,
                              "start it: systemctl start haclusterd; or name its socket: --socket, HACLUSTERD_SOCKET"),
    Code.DISCONNECTED: CodeRow("the daemon closed the connection", ExitStatus.DISCONNECTED,
                               "look at what it did: crm history events"),
    Code.NO_QUORUM: CodeRow("no quorum: {connected} of {total} voters reachable; missing: {missing}",
                            ExitStatus.NO_QUORUM, "bring a missing voter back"),
    Code.TRY_AGAIN: CodeRow("not now: {problem}", ExitStatus.TRY_AGAIN, "try again"),
    Code.CHANGED_BY_BOTH: CodeRow("{what} was changed here, and differently by {author}", ExitStatus.OUTDATED,
                                  "what they changed: crm history diff {version}; then repeat the change"),
    Code.CONFLICT: CodeRow("the configuration was changed meanwhile, by {author}: version {version}",
                           ExitStatus.OUTDATED, "look at it, then repeat the change"),
    Code.REFUSED: CodeRow("refused: {problem}", ExitStatus.FAILED),
    Code.TIMEOUT: CodeRow("not reached in {time}: {what}", ExitStatus.TIMEOUT, "crm status"),
    Code.TAKES_TOO_LONG: CodeRow("not answered: {problem}", ExitStatus.TIMEOUT,
                                 "ask for less, or try again later"),
    Code.NOT_ANSWERED: CodeRow("not answered: {problem}", ExitStatus.FAILED, "ask for less"),
    Code.OUTCOME_UNKNOWN: CodeRow("it is not known whether this took effect: {problem}", ExitStatus.INDETERMINATE,
                                  "check before you repeat it: crm history events"),
    Code.SCHEDULER_FAILED: CodeRow("the scheduler failed: {problem}", ExitStatus.FAILED),
    Code.EVEN_VOTERS: CodeRow("{count} voters: the loss of half of them leaves no quorum", ExitStatus.OK,
                              "add a witness: --witness NAME=HOST:PORT", severity=_WARNING),
    Code.TOKEN_SEEN: CodeRow("every user of this machine can see a token on the command line, and the shell keeps it",
                             ExitStatus.OK, "leave it out: crm cluster join asks for it", Severity.WARNING),
    Code.NOT_ADMITTED: CodeRow("not admitted: {problem}", ExitStatus.NOT_PERMITTED),
    Code.NO_INVITER: CodeRow("no inviting node answers: {problem}", ExitStatus.UNAVAILABLE,
                             "the invitation may have ended: crm cluster invite, on a node of the cluster"),
    Code.NO_AUTHORITY: CodeRow(
        "the authority's key is not here: {problem}", ExitStatus.NO_INPUT,
        "do it on the node where the cluster was begun, or name the directory: --authority DIR",
    ),
    Code.CLOCKS_DIFFER: CodeRow("the clocks differ by {seconds} s", ExitStatus.OK, "let NTP or chrony set them",
                                severity=_WARNING),
    Code.CERTIFICATE_EXPIRES: CodeRow("the certificate of {node} {state}", ExitStatus.OK,
                                      "crm cluster certificates renew {node}", severity=_WARNING),
    Code.DRY_RUN: CodeRow("nothing was changed (--dry-run)", ExitStatus.OK, severity=Severity.INFO),
}  # fmt: skip
