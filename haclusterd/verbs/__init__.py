"""What each verb of an administrator is, described once: name, arguments, permission, cost, help, how `crm` says it.

From here the command line, completion, help, the reference page and the REST interface are derived. What a verb does is
in `commands/`; nothing here decides or reads anything, so that `crm` has all of it without loading what carries it out.
"""
