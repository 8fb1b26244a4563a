"""The nouns: frozen values, no behaviour beyond validity."""
