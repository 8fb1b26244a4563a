"""How values become bytes: streams cut into frames, and values read and written by their types.

What a message means, and which rules its bytes follow, stands with the messages (`cib/`, `protocol/`).
"""
