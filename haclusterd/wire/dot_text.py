"""Text as it is written in DOT, the language of Graphviz (dot(1), "ID": a double-quoted string)."""


def quoted(text: str) -> str:
    """Return a text as one quoted word; line ends become the escape that Graphviz breaks a label at."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
