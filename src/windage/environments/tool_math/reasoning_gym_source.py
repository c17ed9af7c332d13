"""ReasoningGym: one family of reasoning-gym, entry by entry."""

from __future__ import annotations

import zlib
from random import Random
from typing import Any

from windage.environments.tool_math.config import ReasoningGymSource
from windage.environments.tool_math.drawn import drawn
from windage.environments.tool_math.problem import Problem, Split
from windage.errors import ConfigError, explain

__all__ = ["ReasoningGym", "open_family"]

_ENTRIES = 2**20  # some families prepare a list of this length


def open_family(family: str, settings: dict[str, Any], *, seed: int) -> Any:
    """The family as an indexable dataset; entry ``i`` is a pure function of settings, seed and ``i``.

    Raises:
        ConfigError: the family refuses the settings.
    """
    import reasoning_gym

    try:
        return reasoning_gym.create_dataset(family, seed=seed, size=_ENTRIES, **settings)
    except (TypeError, ValueError, AssertionError) as error:
        raise ConfigError(
            explain(f"reasoning-gym family {family} refuses its settings", got=settings, do=f"it says: {error}")
        ) from error


class ReasoningGym:
    """Entries are drawn by index; a score is asked of the family itself, which regenerates the entry."""

    size: int | None = None

    def __init__(self, config: ReasoningGymSource, *, label: str = "") -> None:
        self.label = label or f"reasoning_gym.{config.family}"
        self._config = config
        self._opened: tuple[int, Any] | None = None

    def problem(self, split: Split, index: int, *, seed: int) -> Problem:
        """See :class:`~windage.environments.tool_math.problem.ProblemSource`."""
        dataset_seed = zlib.crc32(f"{split}/{seed}".encode()) >> 2
        if self._opened is None or self._opened[0] != dataset_seed:
            self._opened = dataset_seed, open_family(self._config.family, self._config.settings, seed=dataset_seed)
        family = self._opened[1]

        def draw(random: Random) -> Problem:
            at = random.randrange(_ENTRIES)
            entry = family[at]
            scorer = {
                "family": self._config.family,
                "settings": self._config.settings,
                "seed": dataset_seed,
                "index": at,
            }
            program = entry["metadata"]["expression"] if self._config.has_programs else ""
            return Problem(
                key=str(index),
                question=entry["question"],
                answer=str(entry["answer"]),
                program=program,
                scorer=scorer,
            )

        return drawn(draw, label=self.label, split=split, index=index, seed=seed)
