"""The programs: each picks its adapters and runs.

Here are the daemon, the pacer, `crm` and `haclusterd-api`; the commands of `crm` that work without a daemon, on files
of this machine; the processes that a daemon starts for itself; and whole clusters on one machine, for `make demo` and
tests.
"""
