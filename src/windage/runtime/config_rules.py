"""Rules that span sections of a run's settings. Each one says why the combination cannot work, and what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from windage.errors import ConfigError, explain
from windage.learner.config import WarmStartConfig
from windage.runtime.config_sections import WarmStart

if TYPE_CHECKING:
    from windage.runtime.config import RunConfig

__all__ = ["RULES", "check_rules"]


def check_rules(config: RunConfig) -> None:
    """Apply every rule in order.

    Raises:
        ConfigError: the first rule that is broken.
    """
    for rule in RULES:
        rule(config)


def _group_can_be_filled(config: RunConfig) -> None:
    if config.queue.min_group > config.rollout.group_size:
        raise ConfigError(
            explain(
                "queue.min_group can never be reached",
                got=f"{config.queue.min_group} of {config.rollout.group_size} members",
                expected="min_group <= rollout.group_size",
            )
        )


def _evaluation_has_tasks(config: RunConfig) -> None:
    if config.evaluation.every and not config.evaluation.tasks:
        raise ConfigError(
            explain(
                "evaluation.every is unused: there are no held-out tasks",
                got="evaluation.tasks=0",
                do="set evaluation.tasks, or evaluation.every=0",
            )
        )


def _warm_start_is_used(config: RunConfig) -> None:
    if config.warm_start.steps:
        return
    unused = [
        name
        for name, given in (
            ("warm_start.demonstrations", config.warm_start != WarmStart()),
            ("learner.warm_start", config.learner.warm_start != WarmStartConfig()),
        )
        if given
    ]
    if unused:
        raise ConfigError(
            explain("settings of a warm start that takes no steps", got=", ".join(unused), do="set warm_start.steps")
        )


def _deterministic_means_all(config: RunConfig) -> None:
    if config.mode.deterministic and not config.learner.deterministic:
        raise ConfigError(
            explain(
                "mode.deterministic=true needs a deterministic learner",
                got="learner.deterministic=false",
                do="drop one of the two",
            )
        )


RULES: tuple[Callable[[RunConfig], None], ...] = (
    _group_can_be_filled,
    _evaluation_has_tasks,
    _warm_start_is_used,
    _deterministic_means_all,
)
"""In the order in which they are checked."""
