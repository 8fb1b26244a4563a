"""What each verb does: pure functions of a context and arguments, the same on a live cluster and on a file.

`verbs/` describes them; `registry` joins the two.
"""
