"""Rules that span sections of a run's settings. Each one says why the combination cannot work, and what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from windage.algorithms import ALGORITHMS, check
from windage.errors import ConfigError, explain
from windage.learner.config import WarmStartConfig
from windage.learner.critic_config import CriticConfig
from windage.learner.model_config import Qwen3RandomModel
from windage.runtime.config_sections import WarmStart

if TYPE_CHECKING:
    from windage.runtime.config import RunConfig

__all__ = ["RULES", "algorithm_notes", "check_rules"]


def check_rules(config: RunConfig) -> None:
    """Apply every rule in order.

    Raises:
        ConfigError: the first rule that is broken.
    """
    for rule in RULES:
        rule(config)


def algorithm_notes(config: RunConfig) -> tuple[str, ...]:
    """What the algorithm does, or does not do, under these settings, in words.

    Raises:
        ConfigError: it cannot work in this run, or would be a no-op under staleness (traps 8, 23).
    """
    return check(
        config.algorithm.name,
        config.algorithm.settings,
        updates_per_batch=config.learner.updates_per_batch,
        asynchronous=config.pacing.bound.bound > 0,
        group_size=config.rollout.group_size,
        truncated_sampling=config.rollout.top_p < 1 or config.rollout.top_k > 0,
    )


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


def _algorithm_fits_the_run(config: RunConfig) -> None:
    algorithm_notes(config)


def _critic_is_used(config: RunConfig) -> None:
    if not config.algorithm.entry.critic and config.learner.critic != CriticConfig():
        with_critic = (name for name, entry in ALGORITHMS.items() if entry.critic)
        raise ConfigError(
            explain(
                f"learner.critic is unused: algorithm {config.algorithm.name} has no critic",
                do=f"remove those settings, or choose one of {', '.join(with_critic)}",
            )
        )


def _policy_trains_at_all(config: RunConfig) -> None:
    if config.algorithm.entry.critic and config.learner.critic.warmup >= config.steps:
        raise ConfigError(
            explain(
                "the critic's warm-up is as long as the run: the policy would never train",
                got=f"learner.critic.warmup={config.learner.critic.warmup}, steps={config.steps}",
                expected="learner.critic.warmup < steps",
            )
        )


def _an_episode_fits_the_model(config: RunConfig) -> None:
    context = config.rollout.max_context
    limits = [("engine.max_context", config.engine.max_context)]
    if isinstance(config.model, Qwen3RandomModel):
        limits.append(("model.max_positions", config.model.max_positions))
    for name, limit in limits:
        if limit and context > limit:
            raise ConfigError(
                explain(
                    "an episode may grow longer than the model or engine allows",
                    got=f"rollout.max_context={context}, {name}={limit}",
                    do=f"lower rollout.max_context, or raise {name}",
                )
            )


def _the_tokenizer_knows_the_format(config: RunConfig) -> None:
    if isinstance(config.model, Qwen3RandomModel) and config.environment.format != "plain":
        raise ConfigError(
            explain(
                "model qwen3_random reads characters: digits, operators and marks only",
                got=f"environment.format={config.environment.format}",
                expected="environment.format=plain",
                do="or choose a pretrained model: model=FOLDER",
            )
        )


RULES: tuple[Callable[[RunConfig], None], ...] = (
    _group_can_be_filled,
    _evaluation_has_tasks,
    _warm_start_is_used,
    _deterministic_means_all,
    _algorithm_fits_the_run,
    _critic_is_used,
    _policy_trains_at_all,
    _an_episode_fits_the_model,
    _the_tokenizer_knows_the_format,
)
"""In the order in which they are checked."""
