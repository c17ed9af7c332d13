"""What the report knows: the files of one run folder, read once. Unfinished runs have fewer of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windage.errors import WindageError
from windage.report.curves import Curves
from windage.runtime.measure import wilson
from windage.runtime.recipe_yaml import read_yaml
from windage.runtime.run_folder import RunFolder
from windage.runtime.summary import read_summary

__all__ = ["RunData", "read_run"]

_PLAIN = {"step", "version"}
_LEDGER = ("admitted", "trained", "waiting", "in_flight", "failed", "expired", "rejected")


@dataclass(frozen=True, slots=True)
class RunData:
    """Everything the report draws from."""

    name: str
    config: Mapping[str, Any]
    config_text: str
    curves: Curves
    evaluations: list[dict[str, Any]]
    samples: list[dict[str, Any]]
    summary: Mapping[str, Any] | None

    @property
    def ledger(self) -> dict[str, float]:
        """The ledger of the summary; of an unfinished run, that of its last step."""
        if self.summary is not None:
            return {name: float(self.summary["ledger"][name]) for name in _LEDGER}
        return {name: value for name in _LEDGER if (value := self.curves.last(f"queue/{name}")) is not None}

    def setting(self, *keys: str) -> Any:
        """One setting of the resolved recipe, or None."""
        block: Any = self.config
        for key in keys:
            block = block.get(key) if isinstance(block, Mapping) else None
        return block


def read_run(path: str | Path) -> RunData:
    """Read a run folder.

    Raises:
        DataError: there is no run.
    """
    folder = RunFolder.open(path)
    text = folder.config.read_text(encoding="utf-8")
    try:
        config = read_yaml(folder.config)
    except WindageError:  # an edited config must not hide the run's results
        config = {}
    return RunData(
        name=folder.path.resolve().name,
        config=config,
        config_text=text,
        curves=Curves(folder.read_metrics()),
        evaluations=[_evaluation(line) for line in folder.read_evaluations()],
        samples=folder.read_samples(),
        summary=read_summary(folder.summary),
    )


def _evaluation(line: Mapping[str, Any]) -> dict[str, Any]:
    """One line of ``evaluations.jsonl`` with full metric names, and with its interval where it counts its episodes."""
    full = {name if name in _PLAIN or "/" in name else f"eval/{name}": value for name, value in line.items()}
    success, episodes = full.get("eval/success"), full.get("eval/episodes")
    if success is not None and episodes and "eval/success_low" not in full:
        full["eval/success_low"], full["eval/success_high"] = wilson(success * episodes, episodes)
    return full
