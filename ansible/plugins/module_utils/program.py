"""The one way in which the modules reach a cluster: a verb with its arguments, asked by `crm` or over REST.

Both answer alike, so that a module does not know which it is. Whether something was changed, or would be, is what the
program says; nothing is worked out here. What the program refuses ends the module with its own message, place and
remedy.
"""

from __future__ import annotations

import json
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.text.converters import to_text
from ansible.module_utils.urls import open_url

CHANGED = 10
"""What `crm configure apply` ends with when something was changed."""
STANDARD_INPUT = "standard input"
"""What crm calls a text that a module hands over."""
TEXT = "text"

CONNECTION = {
    "crm": {"type": "str", "default": "crm"},
    "socket": {"type": "path"},
    "url": {"type": "str"},
    "token": {"type": "str", "no_log": True},
    "ca_path": {"type": "path"},
    "validate_certs": {"type": "bool", "default": True},
    "timeout": {"type": "int", "default": 90},
}
CHANGES = {
    "reason": {"type": "str"},
    "force": {"type": "bool", "default": False},
    "wait": {"type": "str"},
}
"""What everything that changes something takes beside."""

READS = ("status", "node.show", "resource.status", "configure.show", "configure.get_property")
"""Asked with GET; all else that is in WORDS changes something."""


def _applied(arguments):
    words = ["configure", "apply", arguments.get("source") or "-"]
    for name, option in (("prune", "--prune"), ("format", "--format")):
        words += [option, arguments[name]] if arguments.get(name) else []
    for each in arguments.get("variables") or ():
        words += ["--set", each]
    return words + (["--diff"] if arguments.get("difference") else [])


WORDS = {
    "status": lambda _given: ["status"],
    "node.show": lambda given: ["node", "show", *_each(given, "node")],
    "resource.status": lambda given: ["resource", "status", *given.get("resources", ())],
    "configure.show": lambda _given: ["configure", "show"],
    "configure.get_property": lambda given: ["configure", "get_property", *given.get("names", ())],
    "configure.apply": _applied,
    "node.online": lambda given: ["node", "online", given["node"]],
    "node.standby": lambda given: ["node", "standby", given["node"]],
    "node.maintenance": lambda given: ["node", "ready" if given.get("ready") else "maintenance", given["node"]],
    "resource.start": lambda given: ["resource", "start", *given["resources"]],
    "resource.stop": lambda given: ["resource", "stop", *given["resources"]],
    "resource.promote": lambda given: ["resource", "promote", given["resource"]],
    "resource.demote": lambda given: ["resource", "demote", given["resource"]],
    "resource.manage": lambda given: [
        "resource", "unmanage" if given.get("unmanage") else "manage", *given["resources"]
    ],
    "resource.maintenance": lambda given: ["resource", "maintenance", given["resource"], given["state"]],
    "resource.move": lambda given: ["resource", "move", given["resource"], given["node"]],
    "resource.clear": lambda given: ["resource", "clear", given["resource"]],
    "resource.cleanup": lambda given: ["resource", "cleanup", *_each(given, "resource", "node")],
}
"""By verb: what is typed behind `crm`, made of the verb's arguments."""


def _each(given, *names):
    return [given[name] for name in names if given.get(name)]


class Answer:
    """What the program answered."""

    def __init__(self, data, reports):
        """Keep both.

        data: as the answer's schema has it. reports: each with severity, code, message, place, remedy.
        """
        self.data = data
        self.reports = reports

    @property
    def is_preview(self):
        """Whether this says what would be, and nothing was done."""
        return self.data.get("schema", "").startswith("haclusterd.preview/")

    @property
    def change(self):
        """What was done to the configuration, or would be."""
        return (self.data.get("change") or {}) if self.is_preview else self.data

    @property
    def is_changed(self):
        """Whether something was changed, or would be: the program says when there is nothing to do."""
        if isinstance(self.change.get("changed"), bool):
            return self.change["changed"]
        return not any(each.get("code") == "NOTHING_TO_DO" for each in self.reports)


def argument_spec(*more, **own):
    """Return the options of a module: its own, how it reaches the cluster, and what `more` has."""
    spec = dict(CONNECTION)
    for each in more:
        spec.update(each)
    spec.update(own)
    return spec


def made_module(spec, **rules):
    """Return the module, with the rules of its connection."""
    return AnsibleModule(
        argument_spec=spec,
        supports_check_mode=True,
        required_together=[("url", "token")],
        mutually_exclusive=[("url", "socket"), *rules.pop("mutually_exclusive", ())],
        **rules,
    )


class Program:
    """The program that answers for the cluster: `crm` on the managed machine, or `haclusterd-api` at a URL."""

    def __init__(self, module):
        """Reach the cluster as the module's parameters say."""
        self._module = module
        self._given = module.params

    def read(self, verb, **arguments):
        """Return the data of a question."""
        return self._ask(verb, arguments, {}).data

    def change(self, verb, **arguments):
        """Carry out a verb that changes something, or in check mode only ask what it would do; return the Answer."""
        given = self._given
        options = {"dry_run": True} if self._module.check_mode else {}
        for name in ("reason", "force", "wait"):
            if given.get(name):
                options[name] = given[name]
        return self._ask(verb, arguments, options)

    def _ask(self, verb, arguments, options):
        arguments = {name: value for name, value in arguments.items() if value not in (None, [], False)}
        if self._given.get("url"):
            return self._ask_url(verb, arguments, options)
        return self._ask_crm(verb, arguments, options)

    # -- crm ---------------------------------------------------------------------------------------------------------

    def _ask_crm(self, verb, arguments, options):
        command = [self._path(), "-o", "json"]
        if self._given.get("socket"):
            command.append("--socket=" + self._given["socket"])
        command += ["--dry-run"] if options.get("dry_run") else []
        command += ["--force"] if options.get("force") else []
        command += [f"--{name}={options[name]}" for name in ("wait", "reason") if options.get(name)]
        # A file is read by crm itself, so that messages have its name.
        text = None if arguments.get("source") else arguments.get("text")
        done = self._module.run_command(command + WORDS[verb](arguments), data=text, binary_data=True)
        return self._read_crm(*done)

    def _path(self):
        crm = self._given["crm"]
        path = self._module.get_bin_path(crm)
        if path is None:
            remedy = "install haclusterd there, say with crm where it is, or name a node's REST interface with url"
            self._fail([_report("NO_CRM", f"there is no {crm} on this machine", remedy)])
        return path

    def _read_crm(self, status, printed, complained):
        data, error = _as_object(printed), _as_object(complained).get("error")
        if status in (0, CHANGED) and data:
            return Answer(data, _placed(data.get("reports", [])))
        if isinstance(error, dict):
            self._fail(error.get("details") or [_report(error["code"], error["message"], error.get("hint", ""))])
        said = (complained or printed).strip()[-500:] or "nothing"
        message = f"crm ended with {status} and said: {said}"
        self._fail([_report("NOT_UNDERSTOOD", message, "see that it is the crm of haclusterd")])
        return None

    # -- REST --------------------------------------------------------------------------------------------------------

    def _ask_url(self, verb, arguments, options):
        url = self._given["url"].rstrip("/") + "/v1/" + verb.replace(".", "/")
        is_reading = verb in READS
        query = dict(arguments) if is_reading else {
            name: "true" if value is True else value for name, value in options.items()
        }
        url += "?" + urlencode(query, doseq=True) if query else ""
        body = None if is_reading else json.dumps(arguments).encode()
        headers = {"Authorization": "Bearer " + self._given["token"], "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            answer = open_url(
                url, data=body, headers=headers, method="GET" if is_reading else "POST",
                timeout=self._given["timeout"], validate_certs=self._given["validate_certs"],
                ca_path=self._given["ca_path"], follow_redirects="none",
            )
            data = _as_object(to_text(answer.read(), errors="replace"))
        except HTTPError as error:
            data = _as_object(to_text(error.read(), errors="replace"))
            other = _report(f"HTTP_{error.code}", f"{url} answered {error.code}", "name the address of haclusterd-api")
            self._fail(data.get("reports") or [other])
        except (URLError, OSError, ValueError) as error:
            message = f"{self._given['url']} does not answer: {getattr(error, 'reason', None) or error}"
            self._fail([_report("NOT_REACHED", message, "on that node: systemctl status haclusterd-api")])
        return Answer(data, data.get("reports", []))

    # -- refusals ----------------------------------------------------------------------------------------------------

    def _fail(self, reports):
        """End the module with all errors, each with its place and remedy."""
        reports = _placed(reports)
        errors = [each for each in reports if each.get("severity") == "error"] or reports
        # A change that was made, and did not get where it should within `wait`, is a change all the same.
        is_made = any(each.get("code") == "CONFIGURATION_CHANGED" for each in reports)
        self._module.fail_json(
            msg="\n".join(_sentence(each) for each in errors), code=errors[0].get("code", ""), reports=reports,
            changed=is_made and not self._module.check_mode,
        )


def _sentence(each):
    place, remedy = each.get("place"), each.get("remedy")
    return (f"{place}: " if place else "") + each.get("message", "") + (f" ({remedy})" if remedy else "")


def _report(code, message, remedy):
    return {"severity": "error", "code": code, "message": message, "remedy": remedy, "place": ""}


def _placed(reports):
    """Call a text by what it is for a playbook."""
    return [dict(each, place=(each.get("place") or "").replace(STANDARD_INPUT, TEXT)) for each in reports]


def _as_object(text):
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def file_text(module, path):
    """Return the text of a file on the managed machine."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "is no UTF-8"
        module.fail_json(msg=f"file: {path}: {problem} (name a file on the managed machine, or give the text)")
        return ""


def difference(answer, before, after):
    """Return a difference for --diff: what was before, and that with what is so afterwards and the edits."""
    if not answer.is_changed:
        return {"before": before, "after": before}
    edits = answer.change.get("edits")
    return {"before": before, "after": dict(before, **after, **({"edits": edits} if edits else {}))}


def finish(module, answer, shown):
    """End a module that changed something, or would; shown: the difference, as a dictionary or a prepared text."""
    for each in answer.reports:
        if each.get("severity") == "warning":
            module.warn(_sentence(each))
    change = answer.change
    result = {
        "changed": answer.is_changed,
        "edits": change.get("edits", []),
        "version": change.get("to_version"),
        "reports": answer.reports,
    }
    if answer.is_preview:
        result["actions"] = [each["text"] for each in answer.data.get("actions", []) if not each.get("is_probe")]
        result["interruptions"] = answer.data.get("interruptions") or []
    if module._diff:
        edits = "".join(f"{each}\n" for each in change.get("edits", []))
        result["diff"] = shown if isinstance(shown, dict) else {"prepared": shown + "\n" if shown else edits}
    module.exit_json(**result)
