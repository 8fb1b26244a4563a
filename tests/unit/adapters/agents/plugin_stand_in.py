"""An external fence plugin as cluster-glue's README.external describes it, which writes down what it is given."""

from collections.abc import Mapping
from pathlib import Path

PARAMETERS = """<parameters>
<parameter name="hostlist" unique="1" required="1"><content type="string"/>
<shortdesc lang="en">Hosts</shortdesc><longdesc lang="en">The hosts, separated by spaces.</longdesc></parameter>
<parameter name="passwd" required="0"><content type="string" default=""/><shortdesc>Password</shortdesc></parameter>
<parameter name="status_rc"><content type="integer" default="0"/></parameter>
</parameters>"""

STAND_IN = f"""#!/bin/sh
printf '%s|%s|%s|%s|%s\\n' "$*" "$hostlist" "$nodename" "$port" "$undeclared" >>@LOG@
case $1 in
getinfo-xml) cat <<'END'
{PARAMETERS}
END
;;
getconfignames) echo hostlist passwd; echo reset_rc ;;
getinfo-devid) echo 'Stand-in & device' ;;
getinfo-devdescr) echo 'It switches'; echo 'nothing.' ;;
getinfo-devname|getinfo-devurl) echo x ;;
gethosts) echo $hostlist ;;
status) exit ${{status_rc:-0}} ;;
reset|on|off) echo "$1 failed for $2" >&2; exit ${{reset_rc:-0}} ;;
*) exit 9 ;;
esac
"""


def stand_in(log: Path) -> str:
    """Return the plugin's text; it appends a line to `log` for each call."""
    return STAND_IN.replace("@LOG@", str(log))


ACTIONS = ("gethosts", "status", "reset", "on", "off")


def calls(log: Path, *, about: tuple[str, ...] = ACTIONS) -> list[Mapping[str, str]]:
    """Return the calls of these actions: their arguments, and the variables that the plugin found."""
    names = ("arguments", "hostlist", "nodename", "port", "undeclared")
    lines = log.read_text().splitlines() if log.exists() else []
    found = [dict(zip(names, line.split("|"), strict=True)) for line in lines]
    return [each for each in found if each["arguments"].split()[0] in about]
