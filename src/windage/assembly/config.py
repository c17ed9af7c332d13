"""AssemblyConfig: how a batch is packed. No torch here."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["AssemblyConfig"]


class AssemblyConfig(BaseModel):
    """Packing of rows into micro-batches."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token_budget: int = Field(default=16384, ge=1, description="Tokens of one packed forward pass.")
    long_rows: Literal["alone", "error"] = Field(
        default="alone", description="A row longer than token_budget: its own forward pass, or an error."
    )
