"""Demonstrations of an environment as token rows for the supervised warm start, token-exact as a rollout would be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windage.environments.protocol import EnvironmentFactory, Message
from windage.errors import ConfigError, explain
from windage.learner.protocol import Demonstration
from windage.rollout.tokenizer import ChatTokenizer

__all__ = ["tokenised"]


def tokenised(
    environment: EnvironmentFactory, tokenizer: ChatTokenizer, *, count: int, seed: int
) -> list[Demonstration]:
    """``count`` solved conversations; the assistant's tokens, and the token that ends its turn, are to be imitated.

    Raises:
        ConfigError: the environment has no demonstrations.
    """
    conversations = environment.demonstrations(count, seed=seed)
    if not conversations:
        raise ConfigError(explain(f"environment {environment.name} has no demonstrations", do="set warm_start.steps=0"))
    return [_tokenise(conversation, environment, tokenizer) for conversation in conversations]


def _tokenise(
    conversation: Sequence[Message], environment: EnvironmentFactory, tokenizer: ChatTokenizer
) -> Demonstration:
    ids: list[int] = []
    mask: list[bool] = []
    for tokens, sampled in tokenizer.spans(conversation, tools=environment.tools()):
        ids.extend(tokens)
        mask.extend([sampled] * len(tokens))
    return Demonstration(token_ids=np.asarray(ids, np.int32), mask=np.asarray(mask, bool))
