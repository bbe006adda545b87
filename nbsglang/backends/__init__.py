"""Backends that need no engine: each speaks the contract of `nbsglang/calls.py` in one file.

Not here: the in-process engine (`nbsglang/engine/`).
"""
