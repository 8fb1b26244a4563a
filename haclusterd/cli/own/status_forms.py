"""`crm status` in the forms of crm_mon, by the words that crmsh has for them, and as XML for programs.

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
    options = ["-1", *(option for word in words for option in STATUS_FORMS[word])]
    answer = session.ask("tool.run", {"tool": "crm_mon", "words": options})
    if (answer.exit and answer.data is None) or session.is_json:
        return session.show(answer)
    output = fields(answer.data)
    session.write(text(output, "out").splitlines())
    session.streams.stderr.write(text(output, "err"))
    session.tell(answer.reports)
    return answer.exit
