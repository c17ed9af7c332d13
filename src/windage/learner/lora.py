"""LoRA through peft: adapt in place, and merge into plain weights for publishing (arXiv 2106.09685)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from windage.errors import ConfigError, explain
from windage.learner.config import LoraConfig

__all__ = ["adapt", "merged"]


def adapt(hf: Any, config: LoraConfig) -> None:
    """Freeze ``hf`` and add adapters to the configured linear layers.

    Raises:
        ConfigError: peft is not installed, or no layer has such a name.
    """
    try:
        import peft
    except ImportError as error:
        raise ConfigError(explain("learner.lora needs peft", do="pip install 'windage[lora]'")) from error
    targets = config.targets if isinstance(config.targets, str) else list(config.targets)
    settings = peft.LoraConfig(
        r=config.rank, lora_alpha=config.alpha, lora_dropout=config.dropout, target_modules=targets
    )
    try:
        peft.inject_adapter_in_model(settings, hf)
    except ValueError as error:
        raise ConfigError(explain("learner.lora.targets match nothing", got=targets, do=str(error))) from error


def merged(hf: Any) -> Iterator[tuple[str, Tensor]]:
    """The state dict under its original names, with ``W + (alpha / rank) B A`` where a layer is adapted."""
    layers = {name: module for name, module in hf.named_modules() if hasattr(module, "lora_A")}
    for name, tensor in hf.state_dict().items():
        if ".lora_" in name:
            continue
        owner, _, leaf = name.rpartition(".base_layer.")
        if not owner:
            yield name, tensor
        elif leaf == "weight":
            with torch.no_grad():
                yield f"{owner}.{leaf}", tensor + layers[owner].get_delta_weight("default").to(tensor.dtype)
        else:
            yield f"{owner}.{leaf}", tensor
