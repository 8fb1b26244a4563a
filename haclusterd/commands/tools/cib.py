"""cibadmin, crm_verify: the CIB as XML for those who read it, and changes of it that are judged.

`cibadmin --query` answers a text made of this cluster's CIB; secrets are asterisks, as everywhere. A change is carried
out on that text and loaded as `crm configure load xml replace` would: nothing is stored that verification refuses, and
asterisks keep the secrets that they stand for. XPath is what access control lists know of it (`formats.cib_xml.xpath`),
with `/..` at its end; more is refused by name.
"""

import hashlib
import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from haclusterd.commands.configure import configure
from haclusterd.commands.configure.view import masked
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.planning.planning import status_for_pacemakers_tools
from haclusterd.commands.tools.call import (
    NO_SUCH_OBJECT,
    USAGE,
    Given,
    Tool,
    ToolCall,
    ToolUsageError,
    ask,
    carry_out,
    printed,
)
from haclusterd.commands.tools.differences import PatchError, patch
from haclusterd.commands.tools.documents import parsed, path_of, select, written
from haclusterd.commands.tools.result import OUTPUT, document, wants_xml
from haclusterd.formats.cib_xml.elements import element
from haclusterd.formats.cib_xml.status_writer import FEATURE_SET, with_probes
from haclusterd.formats.cib_xml.writer import WRITTEN, write_cib, write_configuration
from haclusterd.model.cluster import NodeState
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code, Severity
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.verbs.verb import Cost

_VERBS = {each.name: each for each in configure.VERBS}
_Element = ET.Element
_SECTIONS = {
    "all": ".", "configuration": "configuration", "crm_config": "configuration/crm_config",
    "nodes": "configuration/nodes", "resources": "configuration/resources",
    "constraints": "configuration/constraints", "rsc_defaults": "configuration/rsc_defaults",
    "op_defaults": "configuration/op_defaults", "fencing-topology": "configuration/fencing-topology",
    "tags": "configuration/tags", "alerts": "configuration/alerts", "acls": "configuration/acls", "status": "status",
}  # fmt: skip
_CHANGES = frozenset({"create", "modify", "replace", "delete", "delete_all", "patch", "bump"})
_WRITTEN_BY = ("cib-last-written", "update-origin", "update-client", "update-user")
_NUMBER = re.compile(r"[0-9]{1,18}")
_WHOLE_PATH = re.compile(r"/cib(/@[\w-]+)?$|//cib$|/?self::|/\*?$|//(\*|node_state)")
"""Paths to what contains histories."""
_EMPTY = f"""<cib crm_feature_set="{FEATURE_SET}" validate-with="{WRITTEN}" epoch="1" num_updates="0" admin_epoch="0">
<configuration><crm_config/><nodes/><resources/><constraints/></configuration><status/></cib>"""
CONFIGURATION_ERROR, OLD, UNSAFE, EXISTS, NOT_APPLIED = 78, 103, 107, 108, 1
_FAILED = {
    NO_SUCH_OBJECT: "Call failed: No such device or address\n", EXISTS: "Call failed: File exists\n",
    OLD: "Call failed: Update was older than existing configuration\n",
    NOT_APPLIED: "Call failed: Application of update diff failed, requesting full refresh\n",
}  # fmt: skip
_DANGEROUS = (
    "The supplied command is considered dangerous.  To prevent accidental destruction of the cluster, the --force "
    "flag is required in order to proceed.\n"
)


def administer(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """cibadmin: query the CIB or a part of it, or change the configuration."""
    action = given.any_of("query", "md5", "md5_versioned", *sorted(_CHANGES), "upgrade", "erase", "empty")
    action = "delete" if action == "delete_all" else action
    if "access" in given and "user" not in given:
        raise ToolUsageError("The supplied command requires -U user specified.")
    if "access" in given or given.text("user", "root") not in ("root", "hacluster"):
        raise ToolUsageError("-U, -S: what another user may read is not shown here; see: crm acl can")
    if (action in ("upgrade", "erase") or "delete_all" in given) and "force" not in given:
        return printed(err=_DANGEROUS, status=UNSAFE)
    if action in ("md5", "md5_versioned"):
        return _digest(given.text("text") or call.text, is_versioned=action == "md5_versioned")
    if action == "erase":
        raise ToolUsageError("--erase: not done here: crm configure erase")
    if not action:
        actions = "--query, --create, --modify, --replace, --delete, --patch or --empty"
        raise ToolUsageError(f"say what to do: {actions}; others are not done here")
    if action in ("upgrade", "empty"):
        return printed(written(parsed(_EMPTY)) if action == "empty" else "")
    if action == "query":
        return _queried(context, given)
    if action == "bump":  # What is replaced by itself is a version of its own.
        return _loaded(context, call, given, _configured(context))
    return _changed(context, call, given, action)


# Questions


def _queried(context: Context, given: Given) -> Outcome[ToolOutput]:
    wanted = given.text("section")
    xpath = given.text("xpath", "lrm")
    is_of_histories = wanted in ("", "all", "status") and ("lrm" in xpath or _WHOLE_PATH.match(xpath) is not None)
    text = whole(context, has_digests=True) if is_of_histories and context.seen_xml is None else seen(context)
    if wanted in ("", "all") and "xpath" not in given and "shallow" not in given:
        return printed("" if "node_path" in given else text)
    root = parsed(text)
    found = list(_found(root, given))
    if not found:
        return printed(err="Call cib_query failed (-6): No such device or address\n", status=NO_SUCH_OBJECT)
    if "node_path" in given and "xpath" not in given:
        return printed()
    if "node_path" in given and "shallow" in given:
        return printed("".join(f"{each.get('id')}\n" for each in found if "id" in each.attrib))
    if "node_path" in given:
        return printed("".join(f"{path_of(root, each)}\n" for each in found))
    if "shallow" in given:
        found = [_Element(each.tag, each.attrib) for each in found]
    shown = "".join(written(each) for each in found)
    if len(found) > 1:
        lines = "".join(f"  {line}\n" for line in shown.splitlines())
        shown = f"<xpath-query>\n{lines}</xpath-query>\n"
    return printed(shown)


def seen(context: Context) -> str:
    """Return as much of the CIB as the caller may see, as XML."""
    return whole(context) if context.seen_xml is None else context.seen_xml()


def whole(context: Context, *, has_digests: bool = False) -> str:
    """Return the whole CIB as XML, with secrets hidden; what is to be planned from has Pacemaker's digests."""
    shown = masked(context.cib.configuration, context.agents)
    probed = with_probes(context.cib)
    status = status_for_pacemakers_tools(probed, shown, context.now) if has_digests else probed.status
    cib = replace(context.cib, configuration=shown, status=status)
    controller = cib.status.controller
    acting = None if controller is None else controller.node
    if acting is not None and acting in cib.status.nodes and cib.status.nodes[acting].state is not NodeState.ONLINE:
        acting = None
    has_quorum = context.live is not None and context.live.has_quorum
    return write_cib(cib, has_quorum=has_quorum, controller=acting)


def _found(root: _Element, given: Given) -> Iterator[_Element]:
    if "xpath" in given:
        yield from select(root, given.text("xpath"))
        return
    section = given.text("section") or "all"
    path = _SECTIONS.get(section)
    if path is None:
        raise ToolUsageError(f"there is no section {section}: {', '.join(_SECTIONS)}")
    yield from (root,) if path == "." else root.findall(path)


def _digest(text: str, *, is_versioned: bool) -> Outcome[ToolOutput]:
    """Answer Pacemaker's digest of a document: the MD5 of its elements without what indents them.

    The versioned one, of a document with a feature set, leaves out who wrote it and when.
    """
    if not text.strip():
        return printed(err="Please supply XML to process with -X, -x or -p\n", status=USAGE)
    root = parsed(text)
    feature_set = root.get("crm_feature_set")
    is_bare = is_versioned and feature_set is not None
    for each in root.iter() if is_bare else ():
        for name in _WRITTEN_BY:
            each.attrib.pop(name, None)
    lines = "".join(line.strip() for line in written(root).splitlines())
    counted = lines if is_bare else f" {lines}\n"
    label = f"Versioned ({feature_set or '(null)'}) digest: " if is_versioned else "Digest: "
    return printed(f"{hashlib.md5(counted.encode(), usedforsecurity=False).hexdigest()}\n", label)


# Changes


def _changed(context: Context, call: ToolCall, given: Given, action: str) -> Outcome[ToolOutput]:
    root = _configured(context)
    given_text = given.text("text") or call.text
    wanted = parsed(given_text) if given_text.strip() else None
    if action == "patch":
        status = _patched(root, parsed(seen(context)), wanted)
        if status:
            return printed(err=_FAILED[status], status=status)
    elif action == "delete" and "xpath" in given:
        found = select(root, given.text("xpath"))
        _delete(root, found if "delete_all" in given else found[:1])
    elif wanted is None:
        raise ToolUsageError("the XML is missing: -X TEXT, -x FILE or -p")
    elif given.text("section") == "status" or wanted.tag == "status":
        raise ToolUsageError("the status is not written from outside: crm_attribute, crm_resource --cleanup")
    else:
        place = _place(root, given, wanted, action)
        if place is None:
            return printed(err=_FAILED[NO_SUCH_OBJECT], status=NO_SUCH_OBJECT)
        if action == "delete":
            same = [each for each in root.iter(wanted.tag) if _fits(each, wanted)]
            if not same:
                return printed()
            _delete(root, same)
        else:
            status = _put(root, place, wanted, action, is_new_allowed="create_too" in given)
            if status:
                return printed(_failed(wanted) if status == EXISTS else "", _FAILED[status], status)
    return _loaded(context, call, given, root)


def _configured(context: Context) -> _Element:
    return parsed(write_configuration(masked(context.cib.configuration, context.agents)))


def _loaded(context: Context, call: ToolCall, given: Given, root: _Element) -> Outcome[ToolOutput]:
    text = ET.tostring(root, encoding="unicode")
    arguments: dict[str, Json] = {"mode": "replace", "text": text, "format": "xml", "source": call.tool}
    forced = replace(context, is_forced="force" in given or context.is_forced)
    return carry_out(forced, _VERBS["configure.load"], arguments)


def _failed(wanted: _Element) -> str:
    """Return what could not be created, as Pacemaker's tool prints it."""
    attributes = {"id": wanted.get("id"), "object_type": wanted.tag, "operation": "cib_create", "reason": "File exists"}
    inside = element("failed_update", attributes, written(wanted).splitlines())
    return "".join(f"{line}\n" for line in element("failed", {}, inside))


def _patched(root: _Element, now: _Element, diff: _Element | None) -> int:
    """Apply a patch of the configuration; return an exit status. The version is counted here, whatever it says."""
    if diff is None:
        raise ToolUsageError("the XML is missing: -X TEXT, -x FILE or -p")
    source = diff.find("version/source")
    if source is not None and any(source.get(name) != now.get(name) for name in ("admin_epoch", "epoch")):
        return OLD if _version_of(source) < _version_of(now) else NOT_APPLIED
    for change in diff.findall("change"):
        if change.get("path") == "/cib":
            diff.remove(change)
        elif change.get("path", "").startswith("/cib/status"):
            raise ToolUsageError("the status is not written from outside: crm_attribute, crm_resource --cleanup")
    try:
        patch(root, diff)
    except PatchError as problem:
        raise ToolUsageError(f"the patch is not applied: {problem}") from None
    return 0


def _version_of(element: _Element) -> tuple[int, ...]:
    """Return admin_epoch and epoch. Raises ToolUsageError."""
    texts = {name: element.get(name, "0") for name in ("admin_epoch", "epoch")}
    for name, text in texts.items():
        if _NUMBER.fullmatch(text) is None:
            raise ToolUsageError(f"the patch's {name} is no number: {text[:20]!r}")
    return tuple(int(text) for text in texts.values())


def _place(root: _Element, given: Given, wanted: _Element, action: str) -> _Element | None:
    """Return the section that a change is made in; None: there is none for it. Raises ToolUsageError."""
    if "xpath" in given:
        found = select(root, given.text("xpath"))
        if not found:
            return None
        if len(found) != 1:
            raise ToolUsageError(f"{given.text('xpath')} names {len(found)} elements")
        return found[0]
    section = given.text("section")
    if wanted.tag in ("cib", "configuration"):
        return root
    if section and section not in _SECTIONS:
        raise ToolUsageError(f"there is no section {section}: {', '.join(_SECTIONS)}")
    if action == "create" and not section and wanted.tag not in _SECTIONS:
        return None
    path = _SECTIONS.get(section or wanted.tag, "configuration")
    found = root.findall(path)
    if found:
        return found[0]
    made = _Element(path.rpartition("/")[2])
    root.findall("configuration")[0].append(made)
    return made


def _put(root: _Element, place: _Element, wanted: _Element, action: str, *, is_new_allowed: bool) -> int:
    """Add an element, or change one; return an exit status. A new one is added by --modify only with --allow-create."""
    if wanted.tag in ("cib", "configuration"):
        own = wanted if wanted.tag == "configuration" else wanted.find("configuration")
        if own is None or action != "replace":
            raise ToolUsageError("a whole configuration is only replaced: --replace")
        root.remove(root.findall("configuration")[0])
        root.insert(0, own)
        return 0
    if wanted.tag == place.tag and place.get("id") == wanted.get("id"):
        same: _Element | None = place
    else:
        same = next((each for each in place.iter(wanted.tag) if _is_same(each, wanted)), None)
    if action == "create" and same is not None and same is not place:
        return EXISTS
    if same is None:
        if "id" in wanted.attrib and action != "create" and not (action == "modify" and is_new_allowed):
            return NO_SUCH_OBJECT
        place.append(wanted)
    elif action == "replace":
        same.attrib.clear()
        same.attrib.update(wanted.attrib)
        same[:] = list(wanted)
    else:
        _merge(same, wanted)
    return 0


def _merge(old: _Element, new: _Element) -> None:
    """Give an element the attributes and children of another one; children are the same by their id."""
    old.attrib.update(new.attrib)
    for child in new:
        same = next((each for each in old if _is_same(each, child)), None)
        if same is None:
            old.append(child)
        else:
            _merge(same, child)


def _is_same(old: _Element, new: _Element) -> bool:
    return old.tag == new.tag and old.get("id") == new.get("id") and (new.get("id") is not None or len(new.attrib) == 0)


def _fits(old: _Element, wanted: _Element) -> bool:
    """Tell whether an element has the attributes of one that is to be deleted; one without any fits nothing."""
    return bool(wanted.attrib) and all(old.get(name) == value for name, value in wanted.attrib.items())


def _delete(root: _Element, gone: list[_Element]) -> None:
    parents = {child: parent for parent in root.iter() for child in parent}
    for each in gone:
        if each in parents:
            parents[each].remove(each)


# crm_verify, crm_simulate


def verify(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_verify: judge the configuration that runs, or a file; what refers to nothing there is makes it invalid."""
    is_xml = wants_xml(given)
    if "save" in given:
        raise ToolUsageError("--save-xml: not done here: cibadmin --query > FILE")
    if given.any_of("live", "file", "text", "pipe") == "":
        return _verified(call, ["crm_verify: No configuration source specified.  Use --help for usage information.\n"],
                         1, is_xml=is_xml)  # fmt: skip
    text = given.text("text") or call.text
    arguments: dict[str, Json] = {"strict": True}
    if "live" not in given:
        arguments.update(text=text, format="xml", source=given.text("file") or "text")
    outcome = ask(context, _VERBS["configure.verify"], arguments)
    wrong = [each for each in outcome.reports if each.severity is Severity.ERROR or each.code is Code.UNKNOWN_RESOURCE]
    others = [each for each in outcome.reports if each not in wrong and each.severity is not Severity.INFO]
    lines = [f"error: {each.message}\n" for each in wrong] + [f"{each.severity}: {each.message}\n" for each in others]
    if len(lines) > 1 and "verbose" not in given:
        lines = [lines[0], "crm_verify: -V shows all\n"]
    return _verified(call, lines, CONFIGURATION_ERROR if wrong else 0, is_xml=is_xml)


def _verified(call: ToolCall, lines: list[str], status: int, *, is_xml: bool) -> Outcome[ToolOutput]:
    return printed(document(call, (), status) if is_xml else "", "".join(lines), status)


TOOLS = {
    "cibadmin": Tool(administer, {
        "query": "Q query", "create": "C create", "modify": "M modify", "replace": "R replace", "delete": "D delete",
        "patch": "P patch",
        "upgrade": "u upgrade", "bump": "B bump", "erase": "E erase", "empty": "a empty", "md5": "5 md5-sum",
        "md5_versioned": "6 md5-sum-versioned",
        "section": "o: scope:", "xpath": "A: xpath:", "text": "X: xml-text:", "file": "x: xml-file:",
        "pipe": "p xml-pipe", "local": "l local", "shallow": "n no-children", "node_path": "e node-path",
        "force": "f force", "timeout": "t: timeout:", "sync": "s sync-call", "create_too": "c allow-create",
        "node": "N: node:", "delete_all": "d delete-all", "access": "S show-access?", "user": "U: user:",
    }, _CHANGES, Cost.LONG),
    "crm_verify": Tool(verify, {
        "live": "L live-check", "file": "x: xml-file:", "text": "X: xml-text:", "pipe": "p xml-pipe",
        "save": "S: save-xml:", **OUTPUT,
    }, cost=Cost.LONG),
}  # fmt: skip
