"""How values become bytes for everybody: streams cut into frames, and shapes of values by their types.

What a message means, and which rules its bytes follow, stands with the messages (`cib/`, `protocol/`).
"""
