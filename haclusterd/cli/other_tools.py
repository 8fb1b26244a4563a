"""What to type here instead of the words of crmsh and pcs that are no commands here.

Each entry is under the level in which the other tool has the word ("" is the root). A `crm` command in an entry
exists (tests/unit/cli/test_other_tools.py); the words are those of crmsh 4.4 and pcs 0.11.
"""

from collections.abc import Mapping, Sequence

_SERVICE = "on the node itself: systemctl"
_NO_COROSYNC = "there is no corosync here"
_AGENT = "crm ra info AGENT"
_ACLS = "crm configure role, crm configure acl_target, crm configure acl_group; who may what: crm acl list"
_ALERTS = "crm configure alert NAME PATH to RECIPIENT"
_NO_GEO = "no booth here: a site's ticket is granted by hand, crm ticket grant TICKET"
_NO_QDEVICE = "a third vote is a witness: crm cluster witness NODE"
_WATCHDOG = "without sbd: crm configure property watchdog-fencing=true; with a shared disk: the agent stonith:fence_sbd"
_SHOWN = "crm configure show"

OTHER_TOOLS: Mapping[str, Mapping[str, str]] = {
    "": {
        "booth": _NO_GEO,
        "client": "not needed: who is root or in group haclient may ask this node's daemon",
        "constraint": "crm configure location, crm configure colocation, crm configure order",
        "corosync": f"{_NO_COROSYNC}: crm cluster members, crm cluster timing",
        "dr": "not supported: crm cluster backup FILE, and a second cluster made of it",
        "geo": _NO_GEO,
        "host": "nodes join with a token: crm cluster invite NODE",
        "nodes": "crm node show",
        "pcsd": f"there is one daemon: {_SERVICE} status haclusterd",
        "property": "crm configure property NAME=VALUE",
        "qdevice": _NO_QDEVICE,
        "quorum": "crm status shows it; crm cluster members, crm cluster vote NODE on",
        "quit": "this word is for the interactive shell: crm",
        "resources": "crm resource status",
        "tag": "crm configure tag NAME: ID ID",
    },
    "acl": {
        **dict.fromkeys(("create", "group", "permission", "role", "target", "user"), _ACLS),
        **dict.fromkeys(("delete", "remove"), "crm configure delete NAME"),
        "config": "crm acl list",
        "disable": "crm configure property enable-acl=false",
        "enable": "crm configure property enable-acl=true",
    },
    "alert": {
        **dict.fromkeys(("add", "create", "recipient", "update"), _ALERTS),
        **dict.fromkeys(("delete", "remove"), "crm configure delete NAME"),
    },
    "booth": dict.fromkeys(
        ("cib", "config", "create", "delete", "destroy", "disable", "enable", "pull", "remove", "restart", "setup",
         "start", "status", "stop", "sync", "ticket"),
        _NO_GEO,
    ),
    "client": {"local-auth": "not needed: who is root or in group haclient may ask this node's daemon"},
    "cluster": {
        "auth": "crm cluster invite NODE",
        "authkey": "crm cluster certificates",
        "cib": "crm configure show xml",
        "cib-push": "crm configure load xml replace FILE --dry-run, and without --dry-run when that is what is meant",
        "cib-upgrade": "not needed: what is loaded is upgraded as it is read",
        "config": "crm cluster members, crm cluster timing",
        "corosync": f"{_NO_COROSYNC}: crm cluster members, crm cluster timing",
        "crash_test": "crm fencing test NODE fences a node for real",
        "destroy": "see docs/howto/uninstall.md",
        "edit": "crm configure edit",
        "geo-init": _NO_GEO,
        "geo-init-arbitrator": _NO_GEO,
        "geo-join": _NO_GEO,
        "geo_init": _NO_GEO,
        "geo_init_arbitrator": _NO_GEO,
        "geo_join": _NO_GEO,
        "kill": f"{_SERVICE} stop haclusterd ends it in order; a node that hangs is fenced by itself",
        "link": "a node's addresses: crm cluster address NODE HOST:PORT",
        "node": "crm cluster invite NODE; one that is to leave: crm cluster remove NODE",
        "reload": f"{_SERVICE} reload haclusterd",
        "rename": "not supported: a cluster keeps the name that crm cluster init gave it",
        "report": "crm report FILE",
        "sync": "not needed: the configuration is replicated",
        "uidgid": "not needed: group haclient may ask the daemon",
        "verify": "crm verify",
    },
    "configure": {
        "backup": "crm cluster backup FILE",
        "checkpoint": "crm history config, crm history diff",
        "restore": "see docs/howto/back-up-and-restore.md",
        "acl_permission": "permissions belong to a role: crm configure role NAME read|write|deny ...",
        "history": "crm history config, crm history diff",
        "rsctest": "not supported: run the agent by hand on a node where nothing of it runs",
        "show_property": "crm configure get_property NAME",
    },
    "constraint": {
        "colocation": "crm configure colocation NAME inf: A B",
        "config": _SHOWN,
        "delete": "crm configure delete NAME",
        "list": _SHOWN,
        "location": "crm configure location NAME RESOURCE 100: NODE",
        "order": "crm configure order NAME Mandatory: A B",
        "ref": "crm resource constraints RESOURCE",
        "remove": "crm configure delete NAME",
        "rule": "crm configure location NAME RESOURCE rule 100: NAME eq VALUE",
        "show": _SHOWN,
        "ticket": "crm configure rsc_ticket NAME TICKET: RESOURCE",
    },
    "corosync": {
        **dict.fromkeys(("add-node", "add_node"), "crm cluster invite NODE"),
        **dict.fromkeys(("del-node", "del_node"), "crm cluster remove NODE"),
        **dict.fromkeys(
            ("diff", "edit", "get", "pull", "push", "set", "show"),
            f"{_NO_COROSYNC}: crm cluster timing; timers are properties, crm configure property node-timeout=2s",
        ),
        "log": f"{_NO_COROSYNC}: journalctl -u haclusterd -u haclusterd-pacer",
        "reload": f"{_NO_COROSYNC}: {_SERVICE} reload haclusterd",
        "status": f"{_NO_COROSYNC}: crm cluster members",
    },
    "dr": dict.fromkeys(
        ("config", "destroy", "set-recovery-site", "status"),
        "not supported: crm cluster backup FILE, and a second cluster made of it",
    ),
    "fencing": {
        "agents": "crm ra list stonith",
        "config": "crm configure show",
        "create": "crm configure primitive NAME stonith:AGENT params NAME=VALUE",
        "delete": "crm configure delete NAME",
        "describe": "crm ra info stonith:AGENT",
        "disable": "crm resource stop NAME",
        "enable": "crm resource start NAME",
        "fence": "crm node fence NODE",
        "level": "crm configure fencing_topology NODE: DEVICE DEVICE; crm fencing topology",
        "meta": "crm resource meta NAME set target-role Started",
        "op": "crm configure edit NAME",
        "refresh": "crm resource refresh NAME",
        "remove": "crm configure delete NAME",
        "sbd": _WATCHDOG,
        "update": "crm resource param NAME set PARAMETER VALUE",
        "update-scsi-devices": "crm resource param NAME set devices DEVICES",
    },
    "history": {
        "clear": "not supported: what is old is forgotten by itself",
    },
    "host": {
        "auth": "nodes join with a token: crm cluster invite NODE",
        "deauth": "crm cluster certificates revoke NODE",
    },
    "maintenance": {
        "action": "not supported: run the agent by hand on the node while the resource is unmanaged",
    },
    "node": {
        "unmaintenance": "crm node ready NODE",
        "unstandby": "crm node online NODE",
    },
    "options": {
        "add-quotes": "not needed: words are taken as the shell hands them over",
        "manage-children": "what is said of a group or clone holds for what is in it; crm resource meta shows it",
        "skill-level": "who may do what: members of group haclient operate, root administers",
        "user": "not needed: members of group haclient may ask the daemon",
    },
    "pcsd": dict.fromkeys(
        ("accept_token", "certkey", "deauth", "status", "sync-certificates"),
        "crm cluster certificates; nodes join with a token: crm cluster invite NODE",
    ),
    "property": {
        "config": "crm configure get_property",
        "defaults": "crm configure get_property",
        "describe": "crm configure get_property NAME",
        "list": "crm configure get_property",
        "set": "crm configure property NAME=VALUE",
        "show": "crm configure get_property",
        "unset": "crm configure unset NAME",
    },
    "qdevice": dict.fromkeys(
        ("destroy", "disable", "enable", "kill", "setup", "start", "status", "stop"), _NO_QDEVICE
    ),
    "quorum": {
        "config": "crm cluster members",
        "device": _NO_QDEVICE,
        "expected-votes": "votes follow from the members: crm cluster vote NODE on",
        "status": "crm cluster members",
        "unblock": "bring voters back; when a majority is gone for good: docs/howto/recover.md",
        "update": "crm cluster vote NODE on",
    },
    "resource": {
        "agents": "crm ra list ocf",
        "bundle": "crm configure bundle NAME podman image=IMAGE",
        "clone": "crm configure clone NAME-clone NAME",
        "config": "crm configure show NAME",
        "create": "crm configure primitive NAME AGENT params NAME=VALUE op monitor interval=10s",
        **dict.fromkeys(
            ("debug-demote", "debug-monitor", "debug-promote", "debug-start", "debug-stop"),
            "not supported: run the agent by hand on the node while the resource is unmanaged",
        ),
        "defaults": "crm configure rsc_defaults NAME=VALUE",
        "delete": "crm configure delete NAME",
        "describe": _AGENT,
        "disable": "crm resource stop NAME",
        "enable": "crm resource start NAME",
        "group": "crm configure group NAME MEMBER MEMBER; crm configure modgroup NAME add MEMBER",
        "move-with-constraint": "crm resource move NAME NODE --constraint",
        "op": "crm configure edit NAME; crm configure monitor NAME 10s:20s",
        "promotable": "crm configure clone NAME-clone NAME meta promotable=true",
        "providers": "crm ra classes",
        "reprobe": "crm resource refresh NAME",
        "relations": "crm resource constraints NAME",
        "relocate": "crm resource clear NAME",
        "remove": "crm configure delete NAME",
        "simulate": "crm simulate; of one command: --dry-run",
        "safe-disable": "crm resource stop NAME --dry-run shows what else would stop",
        "standards": "crm ra classes",
        "ungroup": "crm configure modgroup NAME remove MEMBER",
        "unclone": "crm configure delete CLONE",
        "update": "crm resource param NAME set PARAMETER VALUE",
    },
    "sbd": {
        "configure": f"the device is named in haclusterd.yaml, docs/howto/use-a-watchdog.md; {_WATCHDOG}",
    },
    "tag": {
        "config": "crm configure show",
        "create": "crm configure tag NAME: ID ID",
        "delete": "crm configure delete NAME",
        "list": "crm configure show",
        "remove": "crm configure delete NAME",
        "update": "crm configure edit NAME",
    },
    "ticket": {
        "ticket": "crm ticket grant TICKET, crm ticket revoke TICKET, crm ticket show",
        "time": "crm ticket show TICKET",
    },
}


_DELETE = "crm configure delete NAME; the names: crm configure show"
_OP_DEFAULTS = "crm configure op_defaults NAME=VALUE"
_SET_MEMBERS = "in brackets, as in crm configure order NAME Mandatory: [ A B ] C"
_NO_REMOTE = "not supported: there are no remote and guest nodes in a running cluster"
_ONE_VALUE = "crm resource {} RESOURCE set NAME VALUE"
_NODE_VALUE = "crm node {} NODE set NAME VALUE"

DEEPER: Mapping[str, Mapping[str, str]] = {
    "cluster health": {"hawk2": "crm cluster health; of the web page: crm api token list"},
    "cluster node": {
        **dict.fromkeys(("add-guest", "add-remote", "delete-guest", "delete-remote"), _NO_REMOTE),
        "add": "crm cluster invite NODE",
        "add-outside": "crm cluster invite NODE",
    },
    "constraint colocation": {
        "config": _SHOWN,
        "delete": _DELETE,
        "remove": _DELETE,
        "set": "crm configure colocation NAME inf: ( A B ) C",
    },
    "constraint location": {
        "avoids": "crm configure location NAME RESOURCE -inf: NODE",
        "config": _SHOWN,
        "delete": _DELETE,
        "remove": _DELETE,
        "rule": "crm configure location NAME RESOURCE rule 100: NAME eq VALUE",
    },
    "constraint order": {"config": _SHOWN, "delete": _DELETE, "remove": _DELETE, "set": _SET_MEMBERS},
    "constraint rule": {"delete": "crm configure edit NAME", "remove": "crm configure edit NAME"},
    "constraint ticket": {
        "config": _SHOWN,
        "delete": _DELETE,
        "remove": _DELETE,
        "set": "crm configure rsc_ticket NAME TICKET: { A B }",
    },
    "fencing history": {"cleanup": "crm fencing cleanup", "show": "crm fencing history NODE"},
    "fencing level": {
        **dict.fromkeys(("clear", "delete", "remove"), "crm configure edit fencing_topology"),
        "config": "crm fencing topology",
        "verify": "crm verify",
    },
    "fencing op": {"defaults": _OP_DEFAULTS},
    "fencing sbd": {
        "disable": "crm configure property watchdog-fencing=false",
        "status": "crm fencing list",
        "watchdog": "the device is named in haclusterd.yaml; see docs/howto/use-a-watchdog.md",
    },
    "node attribute": {"": _NODE_VALUE.format("attribute")},
    "node utilization": {"": _NODE_VALUE.format("utilization")},
    " verify": {"scores": "crm resource scores"},
    "resource bundle": {"reset": "crm configure edit NAME", "update": "crm configure edit NAME"},
    "resource defaults": {"config": _SHOWN},
    "resource group": {
        "add": "crm configure modgroup NAME add MEMBER; a new one: crm configure group NAME MEMBER MEMBER",
        "delete": "crm configure modgroup NAME remove MEMBER",
        "list": "crm resource status",
        "remove": "crm configure modgroup NAME remove MEMBER",
    },
    "resource meta": {"": _ONE_VALUE.format("meta")},
    "resource op": {"defaults": _OP_DEFAULTS},
    "resource relocate": dict.fromkeys(("dry-run", "run", "show"), "crm resource why NAME; crm simulate"),
    "resource utilization": {"": _ONE_VALUE.format("utilization")},
    " report": dict.fromkeys(
        ("-A", "-D", "-E", "-L", "-M", "-S", "-V", "-Z", "-d", "-e", "-l", "-n", "-p", "-s", "-u", "-v"),
        "crm report [-f FROM] [-t TO] [FILE], which asks the cluster; on each node for its own journal",
    ),
    " status": {
        "failures": "crm resource failcount, or crm status",
        "html": "the web page, docs/howto/web-page.md; for programs: crm status xml",
        "json": "crm -o json status",
        "cluster": "crm cluster members",
        "corosync": f"{_NO_COROSYNC}: crm cluster members",
        "nodes": "crm node show",
        "pcsd": f"there is one daemon: {_SERVICE} status haclusterd",
        "query": "crm -o json status",
        "quorum": "crm cluster members",
        "resources": "crm resource status",
        "wait": "crm cluster wait_for_startup",
    },
}
"""Answers that depend on a third word: by level and command, the root's level being empty. The entry for the word ""
is about a command that is here and takes its words in another order."""


def instead_of(level: str, word: str, following: Sequence[str] = ()) -> str:
    """Return what to type here for another tool's command; empty for a word that none of them has.

    `following` are the words after it: the first that says more decides.
    """
    known = OTHER_TOOLS.get(level, {}).get(word, "")
    return (known and deeper(level, word, following)) or known


def deeper(level: str, word: str, following: Sequence[str]) -> str:
    """Return what to type for what the words after another tool's command say; empty when they say nothing more."""
    known = DEEPER.get(f"{level} {word}", {})
    return next((known[each] for each in following if each in known), "")
