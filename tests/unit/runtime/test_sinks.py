from __future__ import annotations

import errno

import pytest

from windage.errors import ConfigError, DataError
from windage.runtime import sinks as sinks_module
from windage.runtime import tracking_services
from windage.runtime.run_folder import RunFolder
from windage.runtime.sinks import JsonLinesSink, Sinks, open_sinks
from windage.runtime.tracking_config import TrackingConfig

LINE = {"batch/reward": 0.5, "staleness/histogram": {"edges": [0.0, 1.0, 2.0], "counts": [3.0, 1.0]}}


class Service:
    """A tracking service that fails on purpose."""

    name = "wandb"
    failures = (OSError, RuntimeError)

    def __init__(self, *, error=None, **settings):
        self.error = error
        self.lines = []
        self.closed = 0

    @staticmethod
    def failures_of():
        return (OSError, RuntimeError)

    def write(self, step, values):
        if self.error:
            raise self.error
        self.lines.append((step, values))

    def close(self):
        self.closed += 1


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "run", config="")


def test_local_sinks_get_everything_and_services_get_numbers(folder):
    service = Service()
    sinks = Sinks([JsonLinesSink(folder)], [service], note=pytest.fail)
    sinks.write(3, LINE)
    sinks.close()
    sinks.close()
    assert folder.read_metrics() == [{"step": 3, **LINE}]
    assert service.lines == [(3, {"batch/reward": 0.5})]
    assert service.closed == 1


def test_a_service_that_fails_is_noted_once_and_left_alone(folder):
    notes = []
    good, bad = Service(), Service(error=RuntimeError("quota"))
    sinks = Sinks([JsonLinesSink(folder)], [bad, good], note=notes.append)
    for step in range(3):
        sinks.write(step, LINE)
    sinks.close()
    assert len(notes) == 1
    assert "quota" in notes[0]
    assert [step for step, _ in good.lines] == [0, 1, 2]
    assert len(folder.read_metrics()) == 3
    assert bad.closed == 0


def test_a_full_disk_stops_the_run_even_inside_a_service(folder):
    sinks = Sinks([], [Service(error=OSError(errno.ENOSPC, "full"))], note=pytest.fail)
    with pytest.raises(DataError, match="disk full"):
        sinks.write(0, LINE)


def test_errors_of_our_own_are_not_swallowed(folder):
    sinks = Sinks([], [Service(error=KeyError("bug"))], note=pytest.fail)
    with pytest.raises(KeyError):
        sinks.write(0, LINE)


@pytest.mark.parametrize("name", ["wandb", "trackio", "mlflow"])
def test_a_missing_package_is_an_error_with_the_extra_to_install(folder, monkeypatch, name):
    monkeypatch.setattr(sinks_module, "find_spec", lambda package: None)
    with pytest.raises(ConfigError, match=rf"pip install 'windage\[{name}\]'"):
        open_sinks(TrackingConfig(tensorboard=False, **{name: True}), folder, config={})


def test_a_service_that_cannot_start_is_left_out(folder, monkeypatch):
    class Dead(Service):
        def __init__(self, **settings):
            raise RuntimeError("no network")

    notes = []
    monkeypatch.setattr(sinks_module, "find_spec", lambda package: object())
    monkeypatch.setattr(tracking_services, "SERVICES", {"wandb": Dead})
    sinks = open_sinks(TrackingConfig(tensorboard=False, wandb=True), folder, config={}, note=notes.append)
    sinks.write(0, LINE)
    assert len(notes) == 1
    assert "no network" in notes[0]
    assert len(folder.read_metrics()) == 1


def test_tensorboard_reads_scalars_and_histograms_and_hides_steps_made_again(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tracking = TrackingConfig()
    first = open_sinks(tracking, folder, config={})
    for step in range(4):
        first.write(step, {**LINE, "batch/reward": float(step), "learner/kl": None, "learner/ess": float("nan")})
    first.close()
    again = open_sinks(tracking, folder, config={}, first_step=2)
    again.write(2, {"batch/reward": 20.0})
    again.close()
    events = EventAccumulator(str(folder.tensorboard), size_guidance={"histograms": 0})
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("batch/reward")] == [(0, 0.0), (1, 1.0), (2, 20.0)]
    histogram = events.Histograms("staleness/histogram")[1].histogram_value
    assert [event.step for event in events.Histograms("staleness/histogram")] == [0, 1]
    assert (histogram.num, list(histogram.bucket), list(histogram.bucket_limit)) == (4.0, [3.0, 1.0], [1.0, 2.0])
    assert "learner/kl" not in events.Tags()["scalars"]


def test_tensorboard_can_be_switched_off(folder):
    sinks = open_sinks(TrackingConfig(tensorboard=False), folder, config={})
    sinks.write(0, LINE)
    sinks.close()
    assert not folder.tensorboard.exists()
