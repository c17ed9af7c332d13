"""Sinks: the run folder's JSON lines always, TensorBoard by default, tracking services on request.

A service that is down never stops a run: the first failure is reported once and the service is left alone from then
on. A full disk always stops it.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Protocol

from windage.errors import ConfigError, DataError, explain
from windage.runtime.run_folder import RunFolder
from windage.runtime.tracking_config import TrackingConfig

__all__ = ["JsonLinesSink", "Sink", "Sinks", "TrackingService", "open_sinks", "require_package"]


class Sink(Protocol):
    """Takes the plain metrics of one step: floats, and ``{"edges", "counts"}`` for histograms."""

    name: str

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Write one step's metrics."""
        ...

    def close(self) -> None:
        """Flush and release. Safe to call twice."""
        ...


class JsonLinesSink:
    """The run folder's ``metrics.jsonl``."""

    name = "jsonl"

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Append one line."""
        self._folder.append_metrics(step, values)

    def close(self) -> None:
        """Nothing is held open."""


class Sinks:
    """Writes to every sink. ``note`` is told once when a service fails; the run goes on without it."""

    def __init__(
        self, local: Sequence[Sink], services: Sequence[TrackingService], *, note: Callable[[str], None]
    ) -> None:
        self._local = tuple(local)
        self._services = list(services)
        self._note = note

    def open_service(self, name: str, *, project: str, folder: RunFolder, config: Mapping[str, Any]) -> None:
        """Start a tracking service; one that cannot be reached is noted and left out."""
        from windage.runtime.tracking_services import SERVICES

        kind = SERVICES[name]
        try:
            self._services.append(kind(project=project, run=folder.path.name, folder=folder.path, config=config))
        except kind.failures_of() as error:
            self._note(f"{name} could not start and is left out: {error}")

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Write one step everywhere.

        Raises:
            DataError: no space left on the disk.
        """
        for sink in self._local:
            sink.write(step, values)
        scalars = {name: value for name, value in values.items() if isinstance(value, int | float)}
        for service in tuple(self._services):
            self._guard(service, lambda service=service: service.write(step, scalars))

    def close(self) -> None:
        """Close every sink, services too."""
        for sink in self._local:
            sink.close()
        while self._services:
            service = self._services.pop()
            self._guard(service, service.close)

    def _guard(self, service: TrackingService, action: Callable[[], None]) -> None:
        try:
            action()
        except service.failures as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise DataError(explain(f"disk full while writing to {service.name}")) from error
            if service in self._services:
                self._services.remove(service)
            self._note(f"{service.name} failed and is switched off for the rest of the run: {error}")


class TrackingService(Protocol):
    """A sink that may fail for reasons outside this machine; ``failures`` are the exceptions that then count."""

    name: str
    failures: tuple[type[Exception], ...]

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Send one step's numbers."""
        ...

    def close(self) -> None:
        """Finish the service's run."""
        ...


def open_sinks(
    tracking: TrackingConfig,
    folder: RunFolder,
    *,
    config: Mapping[str, Any],
    first_step: int = 0,
    note: Callable[[str], None] = print,
) -> Sinks:
    """Open what ``tracking`` asks for; ``first_step`` is the batch a resumed run goes on with.

    Raises:
        ConfigError: a service is asked for whose package is not installed.
    """
    local: list[Sink] = [JsonLinesSink(folder)]
    if tracking.tensorboard:
        from windage.runtime.tensorboard_sink import TensorBoardSink

        local.append(TensorBoardSink(folder.tensorboard, first_step=first_step))
    wanted = [name for name in ("wandb", "trackio", "mlflow") if getattr(tracking, name)]
    for name in wanted:
        require_package(name)
    sinks = Sinks(local, [], note=note)
    for name in wanted:
        sinks.open_service(name, project=tracking.project, folder=folder, config=config)
    return sinks


def require_package(name: str) -> None:
    """Refuse early when a tracking service's package is missing.

    Raises:
        ConfigError: it is not installed.
    """
    if find_spec(name) is None:
        raise ConfigError(
            explain(
                f"tracking.{name} is on, but the package {name!r} is not installed",
                do=f"pip install 'windage[{name}]', or set tracking.{name}=false",
            )
        )
