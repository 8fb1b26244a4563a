"""Randomness of a real node."""

import random
import secrets


class SystemEntropy:
    """Random choices from the kernel."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def token(self) -> str:
        """Return 16 random hexadecimal digits."""
        return secrets.token_hex(8)

    def fraction(self) -> float:
        """Return a number in [0, 1)."""
        return self._random.random()
