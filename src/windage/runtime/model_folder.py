"""The model folder of a run: config and tokenizer, and for a pretrained model its weights. No torch here."""

from __future__ import annotations

from pathlib import Path

from windage.errors import ConfigError, DataError, explain
from windage.runtime.disk import disk_errors

__all__ = ["local_model", "resolve_model"]


def resolve_model(model: str, *, revision: str | None = None) -> Path:
    """The local folder of ``model``: a path, or a hub id (``owner/name``) that is cached or can be downloaded.

    Raises:
        DataError: no such folder, no config.json in it, or the hub cannot be asked.
    """
    path = Path(model).expanduser()
    if path.exists():
        return local_model(path)
    if model.count("/") != 1 or model.startswith((".", "/", "~")):
        raise DataError(explain("no such model folder", got=model, expected="a folder, or a hub id like owner/name"))
    return _from_hub(model, revision)


def local_model(path: Path) -> Path:
    """Check that ``path`` is a Hugging Face model folder.

    Raises:
        DataError: it is not.
    """
    if not (path / "config.json").is_file():
        raise DataError(
            explain(
                f"{path} is not a model folder",
                got="no config.json",
                expected="config.json, *.safetensors, tokenizer.json",
            )
        )
    if not (path / "tokenizer.json").is_file():
        raise DataError(
            explain(
                f"{path} has no tokenizer.json",
                expected="a fast tokenizer",
                do="save one with transformers: AutoTokenizer.from_pretrained(...).save_pretrained(folder)",
            )
        )
    return path


def _from_hub(model: str, revision: str | None) -> Path:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled
    except ImportError as error:
        raise ConfigError(
            explain(f"{model} is a hub id, and huggingface_hub is missing", do="pip install 'windage[hub]'")
        ) from error
    try:
        with disk_errors(Path(model)):
            return local_model(Path(snapshot_download(model, revision=revision, ignore_patterns=["*.bin", "*.gguf"])))
    except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, ValueError, OSError) as error:
        raise DataError(
            explain(
                f"cannot get {model} from the hub",
                got=str(error).splitlines()[0],
                do="check the name and the network, or give the path of a local folder",
            )
        ) from error
