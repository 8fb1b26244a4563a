"""What may be said in JSON: the form of everything that leaves for a person, a program or a socket.

No floats: a number is an integer in a named unit.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | str | Sequence[Json] | Mapping[str, Json] | None"
