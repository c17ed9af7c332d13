"""Policy: a Hugging Face causal LM split into trunk and head, ready for packed rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from windage.errors import ConfigError, DataError, explain
from windage.learner.attention import ATTENTION_NAME, register
from windage.learner.config import LearnerConfig
from windage.learner.head import token_logprobs
from windage.learner.lora import adapt
from windage.learner.model_config import ModelConfig, PathModel, Qwen3RandomModel
from windage.learner.tokenizer_files import copy_tokenizer, tokenizer_size

__all__ = ["Policy", "load_policy", "materialise", "open_model", "pick_device"]


class Policy:
    """``trunk`` gives hidden states, ``logprobs`` the head's answer over the ``limit`` ids that exist.

    Weights are fp32; ``compute`` is the type of the matrix products.
    """

    def __init__(self, hf: Any, *, config: LearnerConfig, device: torch.device, limit: int, temperature: float) -> None:
        self.hf = hf
        self.device = device
        self.compute = _compute(config, device)
        self.limit = limit
        self.temperature = temperature
        self.chunk = config.head_chunk
        self.adapted = config.lora is not None
        self.trunk: nn.Module = getattr(hf, hf.base_model_prefix)
        self.head: nn.Linear = hf.get_output_embeddings()
        text = hf.config.get_text_config()
        self.width = int(text.hidden_size)
        self.soft_cap: float | None = getattr(text, "final_logit_softcapping", None)

    def logprobs(
        self, hidden: Tensor, token_ids: Tensor, *, entropy: bool = False, temperature: float | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Log-prob of each token from the hidden state before it, f32 [N]; see :mod:`windage.learner.head`.

        ``temperature`` None is that of the rollouts.
        """
        weight: Tensor = self.head.weight
        bias: Tensor | None = getattr(self.head, "bias", None)
        return token_logprobs(
            hidden=hidden.to(self.compute),
            weight=weight[: self.limit] if self.limit < len(weight) else weight,
            bias=None if bias is None else bias[: self.limit],
            token_ids=token_ids,
            temperature=self.temperature if temperature is None else temperature,
            soft_cap=self.soft_cap,
            chunk=self.chunk,
            entropy=entropy,
        )

    @property
    def trainable(self) -> list[tuple[str, nn.Parameter]]:
        """Named parameters that learn; a tied weight is listed once."""
        return [(name, parameter) for name, parameter in self.hf.named_parameters() if parameter.requires_grad]


def materialise(model: ModelConfig, *, tokenizer: str | None, folder: Path) -> Path:
    """The model as a local folder that engine and learner both start from.

    A ``path`` model stays where it is (a hub id is downloaded to the cache); a random one is written to ``folder``.

    Raises:
        DataError: there is no such model, or it cannot be read.
        ConfigError: a random model without a tokenizer.
    """
    if isinstance(model, PathModel):
        return _local(model)
    if tokenizer is None:
        raise ConfigError(explain("model qwen3_random needs a tokenizer", do="set the tokenizer's folder"))
    source = Path(tokenizer)
    size = tokenizer_size(source)
    if 0 < model.vocab < size:
        raise ConfigError(
            explain("model.vocab is smaller than the tokenizer", got=model.vocab, expected=f">= {size}", do="set 0")
        )
    folder.mkdir(parents=True, exist_ok=True)
    _random(model, size).save_pretrained(folder)
    copy_tokenizer(source, folder)
    return folder


def load_policy(folder: Path, *, config: LearnerConfig, limit: int, temperature: float, trust: bool) -> Policy:
    """Load, adapt (LoRA, frozen layers), and move to the device.

    Raises:
        DataError: unreadable model.
        ConfigError: the model cannot be trained this way.
    """
    hf = open_model(folder, trust=trust)
    head = hf.get_output_embeddings()
    if not isinstance(head, nn.Linear):
        raise ConfigError(explain("the model has no linear head", got=type(hf).__name__))
    if config.lora is not None:
        adapt(hf, config.lora)
    elif config.freeze_layers:
        _freeze(hf, config.freeze_layers)
    device = pick_device(config.device)
    hf.to(device)
    if config.gradient_checkpointing:
        _recompute_activations(hf)
    return Policy(hf, config=config, device=device, limit=min(limit, len(head.weight)), temperature=temperature)


def open_model(folder: Path, *, trust: bool) -> Any:
    """A causal LM in fp32 with packed attention and without dropout.

    Raises:
        DataError: missing or unreadable.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    _refuse_foreign(folder)
    try:
        hf = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, trust_remote_code=trust)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise DataError(explain(f"cannot load the model in {folder}", got=str(error))) from error
    for module in hf.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    register()
    hf.set_attn_implementation(ATTENTION_NAME)
    return hf.eval()


def pick_device(name: str) -> torch.device:
    """``auto`` or a torch device.

    Raises:
        ConfigError: unknown, or CUDA on a machine without.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(explain("unknown learner.device", got=name, expected="auto, cpu, cuda or cuda:0")) from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(explain("no CUDA device on this machine", got=name, do="use learner.device=auto"))
    return device


def _compute(config: LearnerConfig, device: torch.device) -> torch.dtype:
    if config.dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return torch.bfloat16 if config.dtype == "bf16" else torch.float32


def _local(model: PathModel) -> Path:
    folder = Path(model.path).expanduser()
    if folder.exists():
        return _refuse_foreign(folder)
    if model.path.count("/") != 1 or model.path.startswith((".", "~", "/")):
        raise DataError(
            explain("no model", got=model.path, expected="a folder with config.json, or owner/name on the hub")
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model.path, revision=model.revision))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise DataError(
            explain(f"cannot fetch model {model.path!r}", got=str(error).splitlines()[0], do="give a local folder")
        ) from error


def _refuse_foreign(folder: Path) -> Path:
    if not (folder / "config.json").exists():
        raise DataError(explain("no model", got=str(folder), expected="a folder with config.json and weights"))
    return folder


def _random(model: Qwen3RandomModel, vocab: int) -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=model.vocab or vocab,
        hidden_size=model.hidden,
        intermediate_size=model.intermediate,
        num_hidden_layers=model.layers,
        num_attention_heads=model.heads,
        num_key_value_heads=model.kv_heads,
        head_dim=model.head_dim or model.hidden // model.heads,
        max_position_embeddings=model.max_positions,
        rope_parameters={"rope_type": "default", "rope_theta": model.rope_theta},
        tie_word_embeddings=model.tie,
        initializer_range=model.init_scale,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(model.seed)
        return Qwen3ForCausalLM(config)


def _recompute_activations(hf: Any) -> None:
    """Keep layer inputs only; recompute the rest in the backward pass."""
    settings = {"use_reentrant": False}
    if hasattr(hf, "activation_checkpointing_enable"):
        hf.activation_checkpointing_enable(settings)
    else:  # transformers < 5.2
        hf.gradient_checkpointing_enable(settings)
    hf.train()


def _freeze(hf: Any, count: int) -> None:
    trunk = getattr(hf, hf.base_model_prefix)
    layers = next((m for m in trunk.children() if isinstance(m, nn.ModuleList)), None)
    if layers is None or count >= len(layers):
        raise ConfigError(
            explain(
                "learner.freeze_layers leaves nothing to train",
                got=count,
                expected="no layers found" if layers is None else f"< {len(layers)} layers",
            )
        )
    hf.get_input_embeddings().requires_grad_(requires_grad=False)
    for layer in layers[:count]:
        layer.requires_grad_(requires_grad=False)
