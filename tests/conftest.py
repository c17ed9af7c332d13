"""Settings for every test: repeatable hypothesis runs, quiet threads, no network."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

settings.register_profile("windage", deadline=None, derandomize=True)
settings.load_profile("windage")
