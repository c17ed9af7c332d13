"""Where the metrics go, besides the run folder's own JSON lines."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["TrackingConfig"]


class TrackingConfig(BaseModel):
    """Sinks for metrics. JSON lines are always written; the optional services need their package installed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tensorboard: bool = Field(default=True, description="Write TensorBoard event files into the run folder.")
    wandb: bool = Field(default=False, description="Send to Weights & Biases (pip install 'windage[wandb]').")
    trackio: bool = Field(default=False, description="Send to trackio (pip install 'windage[trackio]').")
    mlflow: bool = Field(default=False, description="Send to MLflow (pip install 'windage[mlflow]').")
    project: str = Field(default="windage", min_length=1, description="Project (MLflow: experiment) name for services.")
