"""Addresses at which a process listens: HOST:PORT as people and files write it, and as a value.

The host is a name or a numeric address. Nothing is resolved here.
"""

Address = tuple[str, int]
"""Host, without brackets, and port."""


def address_text(address: Address) -> str:
    """Return HOST:PORT; an IPv6 address is in brackets."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def read_address(text: str, default_port: int | None = None) -> Address:
    """Read HOST:PORT; raises ValueError. With a default, the port may be left out."""
    host, separator, port = text.rpartition(":")
    is_bare = not separator or port.endswith("]") or (":" in host and not host.endswith("]"))
    if is_bare and default_port is not None:
        host, port = text, str(default_port)
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdecimal() and 0 < int(port) < 65536
    if not host or not is_port or any(character.isspace() or character == "," for character in host):
        raise ValueError(f"{text!r} is no HOST:PORT")
    return host, int(port)
