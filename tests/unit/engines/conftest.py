"""Model folders shared by the engine tests: written once a session."""

from __future__ import annotations

import pytest
from tests.models import tiny_model


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """Folder of a tiny model by shape; peaked distributions (scale 4), made on first use."""
    made = {}

    def folder(shape="qwen3", **settings):
        key = (shape, *sorted((k, str(v)) for k, v in settings.items()))
        if key not in made:
            target = tmp_path_factory.mktemp(shape) / "model"
            made[key] = tiny_model(target, shape, **{"scale": 4.0, **settings})
        return made[key]

    return folder


@pytest.fixture
def qwen(model_folder):
    return model_folder("qwen3")


@pytest.fixture
def anyio_backend():
    return "asyncio"
