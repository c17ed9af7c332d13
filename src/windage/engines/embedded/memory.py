"""Free memory of the device the cache will live on."""

from __future__ import annotations

from pathlib import Path

import torch

__all__ = ["free_bytes"]

_UNKNOWN = 4 << 30


def free_bytes(device: torch.device) -> int:
    """Bytes that can still be allocated on ``device``; 4 GiB where the system does not say."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        return _UNKNOWN
    fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
    free = int(fields["MemAvailable"].split()[0]) * 1024
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and used.exists() and (allowed := limit.read_text().strip()).isdigit():
        free = min(free, max(0, int(allowed) - int(used.read_text())))
    return free
