"""Entry pass: log-probs, values and what the critic needs, once per batch, before anything moves."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from windage.learner.attention import rows_of
from windage.learner.critic import SeparateCritic
from windage.learner.forward import autocast, hidden_states
from windage.learner.piece import Piece
from windage.learner.state import LearnerState
from windage.tokens import TokenBatch

__all__ = ["Entry", "enter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the policy and critic said when the batch came in; detached but for ``live``.

    ``logprobs``   f32 [N]
    ``values``     f32 [N], ``bootstrap`` f32 [R]: with a critic
    ``hidden``     [N, H] for a value head, so that its updates need no forward pass
    ``entropy``    f32 [N] when asked for
    ``measured``   False when nothing asked for log-probs: they are then the engine's, until the first update
    ``live``       the log-probs with their graph, when one micro-batch holds the whole batch: the first update then
                   needs no second forward pass
    """

    logprobs: Tensor
    values: Tensor | None = None
    bootstrap: Tensor | None = None
    hidden: Tensor | None = None
    entropy: Tensor | None = None
    live: Tensor | None = None
    measured: bool = True


def enter(state: LearnerState, whole: TokenBatch, pieces: Sequence[Piece], *, entropy: bool, keep_graph: bool) -> Entry:
    """Evaluate all ``pieces`` in order. ``keep_graph`` needs a single piece that holds every token."""
    filled = _Filled(state, whole, entropy=entropy)
    live: Tensor | None = None
    for piece in pieces:
        with rows_of(piece.packed):
            with nullcontext() if keep_graph else torch.no_grad():
                hidden = hidden_states(state.policy, piece.packed)
                here = hidden.index_select(0, piece.predict_at)
                found, spread = state.policy.logprobs(here, piece.tokens.token_ids, entropy=entropy)
            live = found if keep_graph else None
            with torch.no_grad():
                filled.put_policy(piece, found.detach(), spread)
                filled.put_critic(piece, hidden.detach(), here.detach())
    return Entry(
        logprobs=filled.logprobs,
        values=filled.values,
        bootstrap=filled.bootstrap,
        hidden=filled.hidden,
        entropy=filled.entropy,
        live=live,
    )


class _Filled:
    """The arrays of an :class:`Entry` while the pieces come in."""

    def __init__(self, state: LearnerState, whole: TokenBatch, *, entropy: bool) -> None:
        self._state = state
        empty = torch.full((whole.segments.tokens,), torch.nan, device=whole.token_ids.device)
        self.logprobs = empty
        self.entropy = empty.clone() if entropy else None
        self.values = None if state.critic is None else empty.clone()
        self.bootstrap = None if state.critic is None else empty.new_zeros(whole.segments.rows)
        self.hidden: Tensor | None = None

    def put_policy(self, piece: Piece, logprobs: Tensor, entropy: Tensor | None) -> None:
        self.logprobs[piece.index] = logprobs
        if self.entropy is not None and entropy is not None:
            self.entropy[piece.index] = entropy

    def put_critic(self, piece: Piece, hidden: Tensor, here: Tensor) -> None:
        """Values from the critic's own trunk, or from the policy's, which a value head also keeps for its updates."""
        critic = self._state.critic
        if critic is None:
            return
        if isinstance(critic, SeparateCritic):
            with autocast(self._state.policy):
                hidden = critic.hidden(piece.packed)
            here = hidden.index_select(0, piece.predict_at)
        else:
            if self.hidden is None:
                self.hidden = here.new_zeros((len(self.logprobs), here.shape[1]))
            self.hidden[piece.index] = here
        assert self.values is not None
        assert self.bootstrap is not None
        score = critic.head if isinstance(critic, SeparateCritic) else critic
        self.values[piece.index] = score(here)
        self.bootstrap[piece.rows] = score(hidden.index_select(0, piece.last_input))
