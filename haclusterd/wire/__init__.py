"""How values become bytes: streams cut into frames, values by their types, text quoted for XML and DOT.

What a message means, and which rules its bytes follow, is with the messages (`cib/`, `protocol/`).
"""
