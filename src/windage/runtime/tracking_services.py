"""Weights & Biases, trackio and MLflow behind one small interface. Imported only when one of them is switched on."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

__all__ = ["SERVICES", "Mlflow", "ServiceKind", "Trackio", "WeightsAndBiases"]

_ALWAYS: tuple[type[Exception], ...] = (OSError, RuntimeError, ValueError)


class ServiceKind(Protocol):
    """What :data:`SERVICES` holds: a class that opens one run of a tracking service."""

    def __call__(self, *, project: str, run: str, folder: Path, config: Mapping[str, Any]) -> Any:
        """Start the service's run."""
        ...

    def failures_of(self) -> tuple[type[Exception], ...]:
        """Exceptions that mean that the service, not Windage, failed."""
        ...


class WeightsAndBiases:
    """One run in Weights & Biases; a resumed run folder goes on in the same one."""

    name = "wandb"

    def __init__(self, *, project: str, run: str, folder: Path, config: Mapping[str, Any]) -> None:
        self.failures = self.failures_of()
        wandb: Any = importlib.import_module("wandb")
        self._run = wandb.init(
            project=project, id=run, name=run, dir=str(folder), config=dict(config), resume="allow", reinit=True
        )

    @staticmethod
    def failures_of() -> tuple[type[Exception], ...]:
        """Its own errors, and those of the network."""
        wandb: Any = importlib.import_module("wandb")
        return (*_ALWAYS, wandb.Error)

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Log one step."""
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()


class Trackio:
    """One run in trackio (local by default)."""

    name = "trackio"

    def __init__(self, *, project: str, run: str, folder: Path, config: Mapping[str, Any]) -> None:
        del folder
        self.failures = self.failures_of()
        self._module: Any = importlib.import_module("trackio")
        self._module.init(project=project, name=run, config=dict(config), resume="allow", embed=False)

    @staticmethod
    def failures_of() -> tuple[type[Exception], ...]:
        """Those of the network (httpx is what trackio uses)."""
        httpx: Any = importlib.import_module("httpx")
        return (*_ALWAYS, httpx.HTTPError)

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Log one step."""
        self._module.log(dict(values), step=step)

    def close(self) -> None:
        """Finish the run."""
        self._module.finish()


class Mlflow:
    """One run in MLflow; where it goes is MLflow's own setting (``MLFLOW_TRACKING_URI``)."""

    name = "mlflow"

    def __init__(self, *, project: str, run: str, folder: Path, config: Mapping[str, Any]) -> None:
        del folder
        self.failures = self.failures_of()
        self._module: Any = importlib.import_module("mlflow")
        self._module.set_experiment(project)
        self._module.start_run(run_name=run)
        self._module.log_params({name: str(value)[:250] for name, value in _flat(config).items()})

    @staticmethod
    def failures_of() -> tuple[type[Exception], ...]:
        """Its own errors, and those of the network."""
        exceptions: Any = importlib.import_module("mlflow.exceptions")
        return (*_ALWAYS, exceptions.MlflowException)

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Log one step without waiting for the server."""
        self._module.log_metrics(dict(values), step=step, synchronous=False)

    def close(self) -> None:
        """Send what is left and end the run."""
        self._module.flush_async_logging()
        self._module.end_run()


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted names.

    >>> _flat({"learner": {"lr": 1e-3}})
    {'learner.lr': 0.001}
    """
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = value
    return flat


SERVICES: Mapping[str, ServiceKind] = {"wandb": WeightsAndBiases, "trackio": Trackio, "mlflow": Mlflow}
