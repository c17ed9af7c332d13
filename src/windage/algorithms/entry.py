"""Entry: one line of the table of algorithms. No torch here."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from windage.algorithms.settings import Settings
from windage.errors import ConfigError, explain

if TYPE_CHECKING:
    from windage.algorithms.algorithm import Algorithm

__all__ = ["Entry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is known of an algorithm before anything heavy is imported.

    ``settings``  its settings with defaults and descriptions
    ``build``     settings -> Algorithm; imports torch
    ``needs``     what the run must have: ``critic`` (a trained value function), ``entry`` (log-probs of the learner at
                  batch entry), ``groups`` (several trajectories a task)
    """

    name: str
    summary: str
    settings: type[Settings]
    build: Callable[[Any], Algorithm]
    needs: frozenset[str] = frozenset()

    @property
    def critic(self) -> bool:
        """True where a critic is trained."""
        return "critic" in self.needs

    @property
    def defaults(self) -> dict[str, Any]:
        """Every setting with its default."""
        return self.settings().model_dump()

    def parse(self, given: Mapping[str, Any]) -> Settings:
        """Validate settings.

        Raises:
            ConfigError: an unknown setting (with the nearest valid name) or a value that makes no sense.
        """
        known = sorted(self.settings.model_fields)
        for unknown in (key for key in given if key not in known):
            near = difflib.get_close_matches(unknown, known, n=1, cutoff=0.5)
            raise ConfigError(
                explain(
                    f"algorithm {self.name} has no setting {unknown!r}",
                    expected=", ".join(known) or "no settings",
                    do=f"did you mean {near[0]!r}?" if near else None,
                )
            )
        try:
            return self.settings.model_validate(dict(given))
        except ValidationError as error:
            raise ConfigError(_message(self.name, error, dict(given))) from error


def _message(name: str, error: ValidationError, given: dict[str, Any]) -> str:
    """The first setting that is wrong, its value, and everything that would have been right."""
    found = error.errors()
    place = str(found[0]["loc"][0]) if found[0]["loc"] else ""
    wanted = [one["msg"].removeprefix("Value error, ") for one in found if not place or one["loc"][0] == place]
    where = f"algorithm {name}: {place} is not valid" if place else f"algorithm {name}: settings do not fit together"
    return explain(where, got=given.get(place, given), expected=" or ".join(dict.fromkeys(wanted)))
