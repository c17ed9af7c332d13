"""The engine process: ``python -m windage.engines.embedded``, started by ``launch``; not for people."""

from __future__ import annotations

import os
import socket
import sys
import threading
import traceback
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import torch
import uvicorn
from starlette.applications import Starlette

from windage.engines.config import EngineConfig
from windage.engines.embedded.model import ServedModel
from windage.engines.embedded.scheduler import Scheduler
from windage.engines.embedded.server import make_app
from windage.engines.embedded.weights import read_marker
from windage.processes import Inbox

__all__ = ["main"]


def main() -> None:
    """Load the model, open the port, report ``{"url", "vocab_size", "context"}``, serve until the controller ends."""
    inbox = Inbox()
    threading.excepthook = _die
    config = EngineConfig.model_validate(inbox.config["engine"])
    torch.set_num_threads(config.threads or max(1, (os.cpu_count() or 2) // 2))
    model = ServedModel(config)
    scheduler = Scheduler(model)
    if folder := inbox.config.get("policy_folder"):
        scheduler.load(read_marker(Path(folder)), folder)
    listener = socket.create_server((config.host, config.port), backlog=2048)
    host, port = listener.getsockname()[:2]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        del app
        scheduler.start()
        inbox.ready({"url": f"http://{host}:{port}", "vocab_size": model.limit, "context": model.context})
        yield
        scheduler.stop()

    settings = uvicorn.Config(
        make_app(model, scheduler, lifespan=lifespan),
        log_level="warning",
        access_log=False,
        timeout_keep_alive=3600,  # far above the client's, so that a pooled connection is never closed under a request
        lifespan="on",
    )
    uvicorn.Server(settings).run(sockets=[listener])


def _die(arguments: threading.ExceptHookArgs) -> None:
    """A thread failed: an engine that only looks alive is worse than none."""
    traceback.print_exception(arguments.exc_type, arguments.exc_value, arguments.exc_traceback, file=sys.stderr)
    sys.stderr.flush()
    os._exit(70)


if __name__ == "__main__":
    main()
