"""The command line `crm`: words to verbs, answers to text.

It decides nothing about the cluster: the daemon carries a verb out, or `commands/` does so on a file.
"""
