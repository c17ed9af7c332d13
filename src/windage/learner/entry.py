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
    ``live``       the log-probs with their graph, when one micro-batch holds the whole batch: the first update then
                   needs no second forward pass
    """

    logprobs: Tensor
    values: Tensor | None = None
    bootstrap: Tensor | None = None
    hidden: Tensor | None = None
    entropy: Tensor | None = None
    live: Tensor | None = None


def enter(state: LearnerState, whole: TokenBatch, pieces: Sequence[Piece], *, entropy: bool, keep_graph: bool) -> Entry:
    """Evaluate all ``pieces`` in order. ``keep_graph`` needs a single piece that holds every token."""
    tokens = len(whole.token_ids)
    logprobs = torch.full((tokens,), torch.nan, device=whole.token_ids.device)
    measured = torch.full_like(logprobs, torch.nan) if entropy else None
    head = state.critic if state.critic is not None and not isinstance(state.critic, SeparateCritic) else None
    values = torch.zeros_like(logprobs) if state.critic is not None else None
    bootstrap = logprobs.new_zeros(whole.segments.rows) if values is not None else None
    kept: Tensor | None = None
    live: Tensor | None = None
    for piece in pieces:
        with rows_of(piece.packed):
            with nullcontext() if keep_graph else torch.no_grad():
                hidden = hidden_states(state.policy, piece.packed)
                here = hidden.index_select(0, piece.predict_at)
                found, spread = state.policy.logprobs(here, piece.tokens.token_ids, entropy=entropy)
            live = found if keep_graph else None
            logprobs[piece.index] = found.detach()
            if measured is not None and spread is not None:
                measured[piece.index] = spread.detach()
            with torch.no_grad():
                if head is not None:
                    kept = hidden.new_zeros((tokens, hidden.shape[1])) if kept is None else kept
                    kept[piece.index] = here.detach()
                if isinstance(state.critic, SeparateCritic):
                    with autocast(state.policy):
                        hidden = state.critic.hidden(piece.packed)
                score = state.critic.head if isinstance(state.critic, SeparateCritic) else head
                if score is not None and values is not None and bootstrap is not None:
                    values[piece.index] = score(hidden.index_select(0, piece.predict_at))
                    bootstrap[piece.rows] = score(hidden.index_select(0, piece.last_input))
    return Entry(logprobs=logprobs, values=values, bootstrap=bootstrap, hidden=kept, entropy=measured, live=live)
