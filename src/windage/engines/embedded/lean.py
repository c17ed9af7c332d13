"""LeanForward: the decoder of Llama, Mistral, Qwen2 and Qwen3 over a plan, with few and large operations.

Query, key and value projections are one matrix, gate and up another. The Hugging Face parameters become views of
those matrices, so that loading weights into the model (in place) loads them here too, without a second copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from windage.engines.embedded.attention import RaggedKernel, attend
from windage.engines.embedded.packed_linear import PackedLinear
from windage.engines.embedded.plan import Plan

__all__ = ["LeanForward"]

_FAMILIES = {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}


@dataclass(slots=True)
class _Layer:
    input_norm: Tensor
    qkv: PackedLinear
    head_norm: Tensor | None
    output: PackedLinear
    mlp_norm: Tensor
    gate_up: PackedLinear
    down: PackedLinear
    window: int


class LeanForward:
    """Call with a plan to get the hidden states [tokens, hidden] before the head."""

    def __init__(self, model: Any, *, pack: bool) -> None:
        config = model.config
        self._pack = pack
        first = model.model.layers[0].self_attn
        self._base = model.model
        self._config = config
        self.heads: int = config.num_attention_heads
        self.kv_heads: int = config.num_key_value_heads
        self.dim: int = first.head_dim
        self.scale: float = first.scaling
        self.eps: float = config.rms_norm_eps
        for layer in model.model.layers:
            attention, mlp = layer.self_attn, layer.mlp
            _fuse([attention.q_proj, attention.k_proj, attention.v_proj])
            _fuse([mlp.gate_proj, mlp.up_proj])
        self.layers = [self._layer(layer) for layer in self._base.layers]

    @staticmethod
    def applies(model: Any) -> bool:
        """Whether this file knows the model's architecture."""
        return type(model).__name__ in _FAMILIES and getattr(model.config, "hidden_act", "") == "silu"

    def refresh(self) -> None:
        """Rebuild what is derived from the weights; call after they changed."""
        self.layers = [self._layer(layer) for layer in self._base.layers]

    def _layer(self, layer: Any) -> _Layer:
        attention, mlp = layer.self_attn, layer.mlp
        norm = None
        if hasattr(attention, "q_norm"):
            parts = (
                attention.q_norm.weight.detach().expand(self.heads, -1),
                attention.k_norm.weight.detach().expand(self.kv_heads, -1),
            )
            norm = torch.cat(parts)
        window = getattr(attention, "sliding_window", None)
        if type(attention).__name__ == "MistralAttention":
            window = getattr(self._config, "sliding_window", None)
        pack = self._pack
        return _Layer(
            input_norm=layer.input_layernorm.weight.detach(),
            qkv=PackedLinear(_whole(attention.q_proj.weight), _whole_bias(attention.q_proj.bias), pack=pack),
            head_norm=norm,
            output=PackedLinear(attention.o_proj.weight.detach(), _plain(attention.o_proj.bias), pack=pack),
            mlp_norm=layer.post_attention_layernorm.weight.detach(),
            gate_up=PackedLinear(_whole(mlp.gate_proj.weight), _whole_bias(mlp.gate_proj.bias), pack=pack),
            down=PackedLinear(mlp.down_proj.weight.detach(), _plain(mlp.down_proj.bias), pack=pack),
            window=window or 0,
        )

    def __call__(self, plan: Plan, kernel: RaggedKernel | None) -> Tensor:
        """Hidden states after the final norm, [tokens, hidden]."""
        hidden = F.embedding(plan.token_ids, self._base.embed_tokens.weight)
        cos, sin = self._base.rotary_emb(hidden[None], plan.positions[None])
        cos, sin = cos[0][:, None], sin[0][:, None]
        half = self.dim // 2
        turn = torch.cat((-sin[..., :half], sin[..., half:]), dim=-1)  # rotate_half without a negation per layer
        for index, layer in enumerate(self.layers):
            mixed = self._attention(plan, kernel, index, layer, self._norm(hidden, layer.input_norm), cos, turn)
            hidden = hidden + layer.output(mixed)
            hidden = hidden + self._mlp(layer, self._norm(hidden, layer.mlp_norm))
        return self._norm(hidden, self._base.norm.weight)

    def _attention(
        self,
        plan: Plan,
        kernel: RaggedKernel | None,
        index: int,
        layer: _Layer,
        hidden: Tensor,
        cos: Tensor,
        turn: Tensor,
    ) -> Tensor:
        both = self.heads + self.kv_heads
        qkv = layer.qkv(hidden).view(len(hidden), both + self.kv_heads, self.dim)
        qk = qkv[:, :both]
        if layer.head_norm is not None:
            qk = self._norm(qk, layer.head_norm)
        half = self.dim // 2
        swapped = torch.cat((qk[..., half:], qk[..., :half]), dim=-1)
        qk = torch.addcmul(qk * cos, swapped, turn)
        mixed = attend(
            plan=plan,
            layer=index,
            query=qk[:, : self.heads],
            key=qk[:, self.heads :],
            value=qkv[:, both:],
            scale=self.scale,
            window=layer.window,
            kernel=kernel,
        )
        return mixed.reshape(len(hidden), -1)

    @staticmethod
    def _mlp(layer: _Layer, hidden: Tensor) -> Tensor:
        gate, up = layer.gate_up(hidden).chunk(2, dim=-1)
        return layer.down(F.silu(gate) * up)

    def _norm(self, hidden: Tensor, weight: Tensor) -> Tensor:
        if hidden.dtype == torch.float32:
            return hidden * torch.rsqrt(hidden.square().mean(-1, keepdim=True) + self.eps) * weight
        wide = hidden.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return weight * wide.to(hidden.dtype)


def _fuse(linears: list[nn.Linear]) -> None:
    """Lay the matrices (and biases) of several projections end to end; each keeps a view of its part."""
    for name in ("weight", "bias"):
        parts = [getattr(linear, name) for linear in linears]
        if parts[0] is None:
            continue
        whole = torch.cat([part.detach() for part in parts])
        begin = 0
        for part in parts:
            part.data = whole[begin : begin + len(part)]
            begin += len(part)


def _whole(view: Tensor) -> Tensor:
    """The fused matrix (or bias) a projection is a view of."""
    width = view.shape[1] if view.ndim == 2 else 1
    rows = view.untyped_storage().nbytes() // view.element_size() // width
    shape = (rows, width) if view.ndim == 2 else (rows,)
    return view.detach().as_strided(shape, view.stride(), 0)


def _whole_bias(view: Tensor | None) -> Tensor | None:
    return None if view is None else _whole(view)


def _plain(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach()
