"""ServedModel: a Hugging Face causal LM prepared for packed forward passes, and proved to compute the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from windage.engines.config import EngineConfig
from windage.engines.embedded.attention import ATTENTION_NAME, RaggedKernel, hugging_face_attention, planned
from windage.engines.embedded.kv import KVShape, KVStore
from windage.engines.embedded.lean import LeanForward
from windage.engines.embedded.packed_linear import PackedLinear
from windage.engines.embedded.plan import Piece, Plan, pieces_alone
from windage.engines.embedded.router_capture import RouterCapture
from windage.errors import ConfigError, DataError, explain

__all__ = ["ServedModel"]

_TOLERANCE = {torch.float32: 2e-3, torch.bfloat16: 0.15, torch.float16: 0.03}


class ServedModel:
    """Model, tokenizer and limits. ``hidden`` runs the trunk over a plan, ``logits`` the head over chosen rows."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.folder = Path(config.model)
        self.device = _device(config.device)
        self.dtype = _dtype(config.dtype, self.device)
        self.hf = _load(self.folder, self.dtype, trust=config.trust_remote_code).to(self.device).eval()
        self.hf.requires_grad_(requires_grad=False)
        self.tokenizer = _tokenizer(self.folder, trust=config.trust_remote_code)
        self._texts: dict[int, str] = {}
        self.text_config = self.hf.config.get_text_config()
        self.head = self.hf.get_output_embeddings()
        if not isinstance(self.head, nn.Linear):
            raise ConfigError(
                explain("the model has no linear head", got=type(self.head).__name__, do=f"{self.folder}")
            )
        self.limit = self._vocabulary()
        self.context = self._context()
        self.capture = RouterCapture(self.hf) if config.routes else None
        if self.capture is not None and not self.capture.layers:
            raise ConfigError(explain("routes=true, but the model has no routers", got=type(self.hf).__name__))
        self.kernel = self._kernel()
        self.lean = self._lean()
        self._projection = self._project()
        _register_attention()
        self.kv_shape = self._check_against_modules()

    def hidden(self, plan: Plan) -> Tensor:
        """Hidden states of every packed token, [tokens, hidden], before the head."""
        if self.lean is not None:
            return self.lean(plan, self.kernel)
        base = getattr(self.hf, self.hf.base_model_prefix)
        with planned(plan, self.kernel):
            out = base(input_ids=plan.token_ids[None], position_ids=plan.positions[None], use_cache=False)
        return out.last_hidden_state[0]

    def logits(self, hidden: Tensor) -> Tensor:
        """float32 logits over the ids that may be sampled, [rows, limit]: padded vocabulary is never computed."""
        logits = self._projection(hidden).float()
        soft_cap = getattr(self.text_config, "final_logit_softcapping", None)
        if soft_cap is not None:
            logits = torch.tanh(logits / soft_cap) * soft_cap
        return logits

    def refresh(self) -> None:
        """Call after the weights changed in place."""
        if self.lean is not None:
            self.lean.refresh()
        self._projection = self._project()

    def _project(self) -> PackedLinear:
        bias = None if self.head.bias is None else self.head.bias[: self.limit]
        return PackedLinear(self.head.weight[: self.limit], bias, pack=self.config.pack)

    def decode(self, ids: list[int]) -> str:
        """Text of ``ids``, special tokens included; empty without a tokenizer."""
        return "" if self.tokenizer is None else self.tokenizer.decode(ids, skip_special_tokens=False)

    def text_of(self, token: int) -> str:
        """Text of one id alone (remembered)."""
        text = self._texts.get(token)
        if text is None:
            text = self._texts[token] = self.decode([token])
        return text

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Ids that end a chat or completion by default: the tokenizer's and the generation config's."""
        ids: set[int] = set()
        file = self.folder / "generation_config.json"
        listed: Any = json.loads(file.read_text()).get("eos_token_id") if file.exists() else None
        for eos in (listed, self.text_config.eos_token_id, getattr(self.tokenizer, "eos_token_id", None)):
            ids.update(eos if isinstance(eos, list) else [eos] if eos is not None else [])
        return tuple(sorted(ids))

    def _vocabulary(self) -> int:
        rows = int(self.head.weight.shape[0])
        known = self.config.vocab_size or (len(self.tokenizer) if self.tokenizer is not None else rows)
        if self.config.vocab_size > rows:
            raise ConfigError(explain("vocab_size is larger than the model's", got=known, expected=f"<= {rows}"))
        return min(known, rows)

    def _context(self) -> int:
        own = getattr(self.text_config, "max_position_embeddings", None)
        wanted = self.config.max_context or own or 4096
        if own and wanted > own:
            raise ConfigError(explain("max_context is beyond the model's positions", got=wanted, expected=f"<= {own}"))
        return int(wanted)

    def _kernel(self) -> RaggedKernel | None:
        possible = self.device.type == "cpu" and self.dtype == torch.float32
        if self.config.attention == "sdpa" or not possible:
            if self.config.attention == "ragged":
                raise ConfigError(explain("attention=ragged needs float32 on the CPU", got=f"{self.dtype}"))
            return None
        from windage.engines.embedded.ragged_kernel import make_kernel

        return make_kernel(torch.get_num_threads())

    def _lean(self) -> LeanForward | None:
        applies = LeanForward.applies(self.hf)
        if self.config.forward == "lean" and not applies:
            raise ConfigError(explain("forward=lean does not know this model", got=type(self.hf).__name__))
        return LeanForward(self.hf, pack=self.config.pack) if applies and self.config.forward != "hf" else None

    def _check_against_modules(self) -> KVShape:
        """Compare prefill, decode and scoring with the modules' own attention on a short random text.

        Raises:
            ConfigError: they disagree, so this engine must not serve the model.
        """
        length = min(12, self.context - 1)
        ids = [(7 * place * place + 3 * place + 1) % self.limit for place in range(length)]
        expected, shape = _plain_forward(self.hf, ids, self.limit)
        store = KVStore(shape)
        store.resize(2, 64)
        alone = Plan(pieces=pieces_alone([ids, ids[:3]]), store=None, device=self.device)
        first = Plan(pieces=[Piece(slot=1, start=0, tokens=ids[:5])], store=store, device=self.device)
        more = Plan(pieces=[Piece(slot=1, start=5, tokens=ids[5:-1])], store=store, device=self.device)
        single = Plan(pieces=[Piece(slot=1, start=length - 1, tokens=ids[-1:])], store=store, device=self.device)
        with torch.inference_mode():
            scored = self.logits(self.hidden(alone))
            # Groups are packed by length: the short text stands where its last index says.
            begin = alone.last[0] - length + 1
            cached = torch.cat([self.logits(self.hidden(plan)) for plan in (first, more, single)])
        for what, got in (("scoring", scored[begin : begin + length]), ("decoding", cached)):
            gap = float((got - expected).abs().max() / (1 + expected.abs().max()))
            if not gap <= _TOLERANCE[self.dtype]:
                raise ConfigError(
                    explain(
                        f"the embedded engine cannot serve {type(self.hf).__name__}: {what} differs from the model",
                        got=f"relative difference {gap:.2g}",
                        expected=f"<= {_TOLERANCE[self.dtype]}",
                        do="use forward=hf, or another engine for this architecture",
                    )
                )
        return shape


def _register_attention() -> None:
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION_NAME, hugging_face_attention)


def _plain_forward(model: Any, ids: list[int], limit: int) -> tuple[Tensor, KVShape]:
    """The modules' own logits [len(ids), limit] float32, and the shape of what they cache for a token.

    Leaves the model set to packed attention.
    """
    tokens = torch.tensor([ids], device=model.device)
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        out = model(input_ids=tokens, use_cache=True)
    model.set_attn_implementation(ATTENTION_NAME)
    cache = out.get("cache")  # the name in newer transformers
    layers = (out.past_key_values if cache is None else cache).layers
    keys, values = layers[0].keys, layers[0].values
    shape = KVShape(
        layers=len(layers),
        heads=keys.shape[1],
        key_dim=keys.shape[3],
        value_dim=values.shape[3],
        dtype=keys.dtype,
        device=keys.device,
    )
    return out.logits[0, :, :limit].float(), shape


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(explain("unknown device", got=name)) from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(explain("no CUDA device on this machine", got=name, do="use device=auto"))
    return device


def _dtype(name: str, device: torch.device) -> torch.dtype:
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[name]


def _load(folder: Path, dtype: torch.dtype, *, trust: bool) -> Any:
    from transformers import AutoModelForCausalLM

    if not (folder / "config.json").exists():
        raise DataError(explain("no model", got=str(folder), expected="a folder with config.json and weights"))
    try:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, trust_remote_code=trust)
    except (OSError, ValueError, RuntimeError) as error:
        raise DataError(explain(f"cannot load the model in {folder}", got=str(error))) from error


def _tokenizer(folder: Path, *, trust: bool) -> Any | None:
    """The folder's tokenizer, or None when there is none: then only ids go in and out."""
    from transformers import AutoTokenizer

    if not any((folder / name).exists() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        return None
    return AutoTokenizer.from_pretrained(folder, trust_remote_code=trust)
