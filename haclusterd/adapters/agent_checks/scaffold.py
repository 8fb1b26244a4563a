"""The agent that `crm agent new` writes: complete, in the style of the library, and passing every trial as it is.

Its service is a command with a harmless default, so that an author starts from something that works.
"""

from pathlib import Path
from string import Template

PYTHON = "python"

_PYTHON = Template('''\
#!/usr/bin/env -S python3 -S -E
"""OCF resource agent: $name. See the comments; `crm agent test ./$name` tries it."""

import os
import sys

# Where haclusterd.agents is: the cluster says it; by hand and under Pacemaker it is where it is installed.
sys.path += [os.environ.get("HACLUSTERD_AGENT_LIBRARY") or "$library"]

from haclusterd.agents.ocf import ${imports}  # noqa: E402 (found above)
from haclusterd.agents.service import COMMON_PARAMETERS, ServiceAgent, split_words  # noqa: E402 (likewise)


class $class_(ServiceAgent):
    """The service is one process in the foreground; ServiceAgent starts it, watches it, and ends all of it."""

    name = "$name"
    shortdesc = "$name"
    longdesc = "Says what this agent does, for `crm agent info $name`."
    timeouts = {"start": "60s", "stop": "60s", "monitor": "20s"$timeouts}
    # Depth and interval of the monitors that you advise: 0 looks for the process, 10 asks check_ready.
    monitors = (("0", "10s"), ("10", "30s"))$flags
    # is_required, is_unique, is_private (a secret), is_reloadable (may change while it runs).
    parameters = (
        Parameter("command", shortdesc="Program", longdesc="Program: a path, or a name in PATH.", default="sleep"),
        Parameter("args", shortdesc="Arguments", longdesc="Split into words as by a shell.", default="infinity"),
        Parameter("port", shortdesc="Port of the service", longdesc="Asked when not empty.", content="integer"),
        Parameter(
            "check_timeout",
            shortdesc="Patience with the service",
            longdesc="How long it may take to accept a connection at its port.",
            content="time",
            default="2s",
            is_reloadable=True,
        ),
        *COMMON_PARAMETERS,
    )

    def validate(self):
        """Refuse parameters that cannot work: ConfigurationError is wrong on every node, NodeError on this one."""
        super().validate()
        self.program(self.text("command"))
        self.seconds("check_timeout")
        if self.text("port"):
            self.integer("port")

    def arguments(self):
        """Return what to start: the argument vector of a process that stays in the foreground."""
        return [self.text("command"), *split_words("args", self.text("args"))]

    def check_ready(self, timeout_s):
        """Return when the service does its work now; start waits for it, and so does a monitor of depth 10."""
        if not self.text("port"):
            return
        import socket  # Imported where it is needed: every action starts this program.

        try:
            limit_s = min(timeout_s, self.seconds("check_timeout"))
            socket.create_connection(("127.0.0.1", self.integer("port")), limit_s).close()
        except OSError as problem:
            raise ActionError(f"port {self.text('port')}: {problem}") from None

    def reload(self):
        """Take over parameters that are reloadable; here each monitor reads them, so nothing is to be done."""
$promotable

if __name__ == "__main__":
    $class_().main()
''')

_PYTHON_PROMOTABLE = '''
    # The role. Ask your service which it has; here it is a file, which a reboot takes away.

    @property
    def _role_path(self):
        return os.path.join(self.state_directory, f"{self.name}-{self.instance.replace('/', '_')}.role")

    def start(self):
        """Start it unpromoted, and say how much this node wants to be promoted."""
        super().start()
        if not os.path.exists(self._role_path):
            self.set_promotion_score(10)

    def stop(self):
        """Stop it; a stopped one is not promoted, and wants nothing."""
        super().stop()
        self._forget_role()
        self.forget_promotion_score()

    def monitor(self):
        """Say whether it runs, and with PromotedError that it is promoted."""
        try:
            super().monitor()
        except NotRunningError:
            self._forget_role()
            raise
        if os.path.exists(self._role_path):
            raise PromotedError("promoted")

    def promote(self):
        """Make it the promoted one. Refuse (ActionError) where its data are older than another node's."""
        super().monitor()
        with open(self._role_path, "w", encoding="utf-8"):
            pass
        self.set_promotion_score(100)

    def demote(self):
        """Make it one of the others."""
        super().monitor()
        self._forget_role()
        self.set_promotion_score(10)

    def notify(self):
        """What happens to the other instances: self.notification.nodes("promote"), .promoted_after() and so on."""

    def _forget_role(self):
        try:
            os.unlink(self._role_path)
        except FileNotFoundError:
            return
'''

_SHELL = Template('''\
#!/bin/sh
# OCF resource agent: $name. See the comments; `crm agent test ./$name` tries it.

# Where the library is: the cluster says it; by hand and under Pacemaker it is where it is installed.
. "$${HACLUSTERD_AGENT_LIBRARY:-$library}/haclusterd/agents/agent.sh"

ha_agent $name 1.0 "$name" "Says what this agent does, for crm agent info $name."
# Name, type (string, integer, boolean, time), default, what it is; then required, unique, private, reloadable.
ha_param command string sleep "Program: a path, or a name in PATH"
ha_param args string infinity "Its arguments: words separated by blanks"
ha_param patience integer 20 "Seconds between SIGTERM and SIGKILL at a stop" reloadable
ha_timeouts start=60s stop=60s monitor=20s interval=10$timeouts

agent_validate() {
    # Wrong on every node: ha_fail config "..."; only on this one: ha_fail node "...".
    ha_need "$$OCF_RESKEY_command"
}

agent_start() {
    set -f # The words of args are separated, not expanded.
    # shellcheck disable=SC2086
    ha_start_process "$$(ha_state pid)" "$$OCF_RESKEY_command" $$OCF_RESKEY_args
    # Return when the service does its work: ha_wait COMMAND, which is tried until it succeeds.$start
}

agent_stop() {
    ha_stop_process "$$(ha_state pid)" TERM "$$OCF_RESKEY_patience"$stop
}

agent_monitor() {
    ha_process_runs "$$(ha_state pid)" || return "$$HA_NOT_RUNNING"
    # OCF_CHECK_LEVEL=10 may look deeper: ha_fail soft "...", or ha_degraded "..." where it still serves.$monitor
}
$promotable
ha_main "$$@"
''')

_SHELL_PROMOTABLE = '''
# The role. Ask your service which it has; here it is a file, which a reboot takes away.

agent_promote() {
    ha_process_runs "$(ha_state pid)" || ha_fail soft "it does not run"
    # Refuse (ha_fail soft) where its data are older than another node's.
    : >"$(ha_state role)" && ha_score 100
}

agent_demote() {
    ha_process_runs "$(ha_state pid)" || ha_fail soft "it does not run"
    rm -f "$(ha_state role)" && ha_score 10
}

agent_notify() {
    : # OCF_RESKEY_CRM_meta_notify_type, _operation, _promote_uname and so on say what happens.
}
'''


def class_name(name: str) -> str:
    """Return the class name for an agent's name: `MyDb` for `my-db`."""
    return "".join(part[:1].upper() + part[1:] for part in name.replace("_", "-").split("-") if part)


def scaffold(name: str, language: str, library: Path, *, is_promotable: bool) -> str:
    """Return the text of a new agent; `library` is where it finds the library when it runs outside a cluster."""
    if language == PYTHON:
        of_roles = ", NotRunningError, Parameter, PromotedError"
        imports = f"ActionError{of_roles if is_promotable else ', Parameter'}"
        return _PYTHON.substitute(
            name=name, library=library, class_=class_name(name), imports=imports,
            timeouts=', "promote": "60s", "demote": "60s", "notify": "20s"' if is_promotable else "",
            flags="\n    is_promotable = True\n    has_notify = True" if is_promotable else "",
            promotable=_PYTHON_PROMOTABLE if is_promotable else "",
        )  # fmt: skip
    return _SHELL.substitute(
        name=name, library=library, timeouts=" promote=60s demote=60s notify=20s" if is_promotable else "",
        start='\n    [ -e "$(ha_state role)" ] || ha_score 10' if is_promotable else "",
        stop='\n    rm -f "$(ha_state role)"\n    ha_score none' if is_promotable else "",
        monitor='\n    [ ! -e "$(ha_state role)" ] || return "$HA_PROMOTED"' if is_promotable else "",
        promotable=_SHELL_PROMOTABLE if is_promotable else "",
    )  # fmt: skip
