"""Process-wide number settings: threads, determinism, matrix precision."""

from __future__ import annotations

import os

import torch

from windage.learner.config import LearnerConfig

__all__ = ["fix_numbers"]


def fix_numbers(config: LearnerConfig) -> None:
    """Set threads and determinism once, before any model is loaded."""
    torch.set_num_threads(config.threads or max(1, (os.cpu_count() or 2) // 2))
    if config.deterministic:
        torch.use_deterministic_algorithms(mode=True, warn_only=torch.cuda.is_available())
        torch.utils.deterministic.fill_uninitialized_memory = False  # pyright: ignore[reportAttributeAccessIssue]
    torch.backends.cuda.matmul.allow_tf32 = False
