"""The loop of the learner process: one request, its notes, one reply."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from windage.errors import LearnerError, WindageError, explain
from windage.learner.protocol import Demonstration
from windage.learner.rpc import Reply, Request, refuse
from windage.learner.service import Service
from windage.processes import Inbox
from windage.records import TrainBatch
from windage.records.codec import decode, encode

__all__ = ["serve"]


def serve(service: Service, inbox: Inbox) -> None:
    """Answer requests for ever; the process ends with the controller.

    Errors of our tree go back in their own class. Running out of memory or a broken kernel goes back as a
    ``LearnerError``: the state may be torn, so the process then ends.
    """

    def note(text: str) -> None:
        inbox.send(encode(Reply(status="note", text=text)))

    while True:
        request = decode(inbox.receive(), Request)
        try:
            body = encode(_answer(service, request, note))
        except WindageError as error:
            traceback.print_exc()
            inbox.send(encode(refuse(error)))
        except (RuntimeError, MemoryError, OSError, ValueError, ArithmeticError, LookupError, TypeError) as error:
            traceback.print_exc()
            reason = explain(f"learner failed in {request.method!r}", got=f"{type(error).__name__}: {error}")
            inbox.send(encode(refuse(LearnerError(reason))))
            return
        else:
            inbox.send(encode(Reply(status="ok", body=body)))


def _answer(service: Service, request: Request, note: Callable[[str], None]) -> Any:
    match request.method:
        case "train":
            return service.train(decode(request.body, TrainBatch))
        case "publish":
            return service.publish(request.number)
        case "warm_start":
            demonstrations = decode(request.body, list[Demonstration])
            return service.warm_start(demonstrations, steps=request.number, note=note)
        case "save":
            service.save(decode(request.body, str))
            return True
        case "load":
            return service.load(decode(request.body, str))
        case "status":
            return service.status()
        case unknown:
            raise LearnerError(explain("unknown call", got=unknown))
