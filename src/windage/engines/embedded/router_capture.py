"""RouterCapture: which experts every layer chose for every token of a forward pass (mixture-of-experts models)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["RouterCapture"]


class RouterCapture:
    """Hooks on the router modules (``…TopKRouter``), whose last output is the chosen experts [tokens, k]."""

    def __init__(self, model: Any) -> None:
        routers = [module for module in model.modules() if type(module).__name__.endswith("TopKRouter")]
        self.layers = len(routers)
        self._chosen: list[torch.Tensor | None] = [None] * len(routers)
        for index, router in enumerate(routers):
            router.register_forward_hook(self._hook(index))

    def _hook(self, index: int) -> Any:
        def keep(module: Any, inputs: Any, output: Any) -> None:
            self._chosen[index] = output[-1].detach()

        return keep

    def take(self) -> NDArray[np.integer[Any]]:
        """Experts of the last forward pass, [layers, tokens, k]: uint8 where the ids fit, else int32."""
        chosen = [each for each in self._chosen if each is not None]
        stacked = torch.stack(chosen).cpu().numpy()
        return stacked.astype(np.uint8 if stacked.max(initial=0) < 256 else np.int32)
