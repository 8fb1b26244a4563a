"""Messages between processes: pacer to pacer, daemon to pacer, `crm` to daemon, daemon to daemon.

Their bytes come from other machines or users: every reader is total, and a message that does not fit is an error value
or an exception that its docstring names.
"""
