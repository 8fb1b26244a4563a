"""`crm status` in the forms of crm_mon, by the words that crmsh has for them, and as XML for programs; and what crmsh
prints of resources, for scripts that read it.

They are what the tool of that name prints (docs/howto/use-pacemakers-tools.md); only `simple` is a form of our own.
"""

from collections.abc import Sequence

from haclusterd.cli.grammar import Invocation
from haclusterd.cli.render.fields import fields, text
from haclusterd.cli.session import Session
from haclusterd.model.records import replace
from haclusterd.verbs.root import STATUS_FORMS

SIMPLE, XML = "simple", "xml"


def status(session: Session, invocation: Invocation) -> int:
    """Show the state of the cluster in other forms than the usual one."""
    given = invocation.arguments.get("forms")
    words = [str(each) for each in given] if isinstance(given, Sequence) else []
    if SIMPLE in words:
        if len(words) > 1:
            return session.fail("USAGE", "status simple is one line; nothing is added to it", "crm status simple", 64)
        return session.run(replace(invocation, arguments={"form": SIMPLE}))
    if session.is_xml and XML not in words:
        words.append(XML)
    usual = ["-1", "-r"] if session.is_as_crmsh else ["-1"]
    return _printed(session, "crm_mon", [*usual, *(option for word in words for option in STATUS_FORMS[word])])


def resources(session: Session, invocation: Invocation) -> int:
    """Say where resources run in the sentences of crm_resource; of all of them, list them."""
    given = invocation.arguments.get("resources")
    names = [str(each) for each in given] if isinstance(given, Sequence) else []
    statuses = [_printed(session, "crm_resource", ["-W", "-r", name]) for name in names]
    return max(statuses) if statuses else _printed(session, "crm_resource", ["-L"])


def _printed(session: Session, tool: str, words: list[str]) -> int:
    """Print what a tool of Pacemaker prints, and return its exit status."""
    answer = session.ask("tool.run", {"tool": tool, "words": words})
    if (answer.exit and answer.data is None) or session.is_json:
        return session.show(answer)
    output = fields(answer.data)
    lines = text(output, "out").splitlines()
    if lines and lines[0].startswith("<"):
        session.write(lines)
    else:
        session.write_fitting(lines)
    session.streams.stderr.write(text(output, "err"))
    session.tell(answer.reports)
    return answer.exit
