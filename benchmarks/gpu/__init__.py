"""Benchmarks of the GPU step: language-model programs on random token ids, ours beside the peers' engines.

`python -m benchmarks.gpu` runs them, `python -m benchmarks.gpu.ablation` takes our mechanisms away one by one.
Not here: the benchmark on a CPU with real text (`benchmarks/cpu.py`), checks (`benchmarks/gpu_check.py`).
"""
