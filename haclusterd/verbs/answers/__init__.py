"""What verbs answer: one frozen dataclass for each answer, whose fields and docstrings are its documented schema.

Who makes an answer fills it in, who shows it takes its type; JSON, the lenient reading of what another version sent and
the JSON Schema are derived from the fields (`answer.py`). A field that was released stays: nothing is renamed, none
becomes another thing; what is new is added at the end.
"""
