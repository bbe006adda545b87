"""Constrained decoding: from a regex, choices, a JSON Schema or a grammar to masks of allowed tokens."""
