"""The engine in this process: loading a model, its KV cache, scheduling, sampling. Its door is `engine.py`."""
