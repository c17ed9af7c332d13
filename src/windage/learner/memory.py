"""Memory of this process: resident now, and at its peak."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import torch

__all__ = ["peak_bytes", "resident_bytes"]


def resident_bytes(device: torch.device) -> int:
    """Bytes in use on the device: allocated on CUDA, resident in main memory else."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * resource.getpagesize() if statm.exists() else peak_bytes(device)


def peak_bytes(device: torch.device) -> int:
    """Largest of that since the process started."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
