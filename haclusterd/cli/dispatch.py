"""From an invocation to whoever carries it out, the same at the prompt, in scripts and in the shell."""

from haclusterd.cli.grammar import Invocation
from haclusterd.cli.session import Session


def carry_out(session: Session, invocation: Invocation) -> int:
    """Carry out a command that asks a verb and show the answer; return the exit status."""
    if invocation.command.verb == "simulate":
        from haclusterd.cli.simulation import simulate

        return simulate(session, invocation.arguments)
    if invocation.level == "configure" and invocation.command.name == "edit":
        from haclusterd.cli.editing import edit

        return edit(session, invocation)
    if invocation.level == "configure" and invocation.command.name == "filter":
        from haclusterd.cli.editing import filter_

        return filter_(session, invocation)
    if invocation.command.verb == "configure.graph":
        from haclusterd.cli.graphing import graph

        return graph(session, invocation.arguments)
    if invocation.level == "api" and invocation.command.name == "token":
        from haclusterd.cli.tokens import token

        return token(session, invocation.arguments)
    if invocation.arguments.get("follow"):
        from haclusterd.cli.following import follow

        return follow(session, invocation.arguments)
    return session.run(invocation)
