"""The start of kernels that do not wait for the one ahead of them in the stream to end, which hides how long it takes.

Such a kernel is launched with `launch_pdl`. It may start once every program of the kernel ahead has let it or has
ended. What the kernel ahead writes is there only after the wait, which lasts until that kernel has ended as a whole.

Why waiting for one kernel is enough, though others before it may still run when this one starts: every early kernel
waits, in all of its programs, before it writes anything and before it reads what others in the stream write. Say A, B
and C follow each other. C goes on when B has ended; B ended after its programs had gone on; they went on when A had
ended. So after its wait C may rely on A too, and in the same way on all before it: their writes are there, and memory
that they read may be written again, as the allocator of a stream hands it on. A kernel that is launched as usual starts
when the one ahead has ended, and so may stand anywhere among early ones, as torch's do. FlashInfer's are early on such
devices by default, and wait before they read rows; one that did not wait would break this for all after it.

Before the wait, only what was written ahead of the last usual kernel may be read, for the first early one after that
started no sooner than it, and it no sooner than the end of all before. Such are the weights: the first kernels of a
step, those of its embeddings, are usual ones. So are plans of attention, which are copied to the device before the
step's first attention: what follows a copy starts when that has ended.

Not here: the kernels (`skinny_triton.py`, `rope_triton.py`).
"""

from __future__ import annotations

from functools import cache

import torch
import triton
import triton.language as tl


@triton.jit
def begin(early: tl.constexpr):
    """Let the next kernel start, and wait for the one ahead; each program calls it once, before it reads rows."""
    if early:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()


@cache
def can_be_early(device: torch.device) -> bool:
    """Whether kernels can start early on a CUDA device; elsewhere they must not be launched so."""
    return torch.cuda.get_device_capability(device)[0] >= 9
