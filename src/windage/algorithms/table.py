"""The literal table of algorithms. No torch here."""

from __future__ import annotations

import difflib

from windage.algorithms.areal import AREAL
from windage.algorithms.copc import COPC
from windage.algorithms.copc_no_mask import COPC_NO_MASK
from windage.algorithms.copc_no_recompute import COPC_NO_RECOMPUTE
from windage.algorithms.dapo import DAPO
from windage.algorithms.entry import Entry
from windage.algorithms.grpo import GRPO
from windage.algorithms.ppo import PPO
from windage.algorithms.sao import SAO
from windage.algorithms.vtrace import VTRACE
from windage.errors import ConfigError, explain

__all__ = ["ALGORITHMS", "lookup", "names"]

ALGORITHMS: dict[str, Entry] = {
    "copc": COPC,
    "copc_no_recompute": COPC_NO_RECOMPUTE,
    "copc_no_mask": COPC_NO_MASK,
    "ppo": PPO,
    "vtrace": VTRACE,
    "sao": SAO,
    "areal": AREAL,
    "grpo": GRPO,
    "dapo": DAPO,
}


def names() -> tuple[str, ...]:
    """Every known name, in the table's order."""
    return tuple(ALGORITHMS)


def lookup(name: str) -> Entry:
    """The table's line for ``name``.

    Raises:
        ConfigError: unknown; the message lists the known ones and the nearest.
    """
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    near = difflib.get_close_matches(name.lower().replace("-", "_"), ALGORITHMS, n=1, cutoff=0.5)
    raise ConfigError(
        explain(
            f"unknown algorithm {name!r}",
            expected=", ".join(ALGORITHMS),
            do=f"did you mean {near[0]!r}?" if near else None,
        )
    )
