"""Benchmarks: what the engine's sharing and batching buy, beside what a notebook user would write instead.

`python -m benchmarks.cpu` runs them. Not here: tests (`tests/`), which assert no times.
"""
