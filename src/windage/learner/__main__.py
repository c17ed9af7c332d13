"""The learner process: ``python -m windage.learner``, started by :func:`windage.learner.launch.launch`."""

from __future__ import annotations

import sys
import traceback

from pydantic import ValidationError

from windage.errors import WindageError
from windage.learner.setup import LearnerSetup
from windage.processes import Inbox


def main() -> int:
    """Serve until the controller closes the pipe."""
    inbox = Inbox()
    try:
        setup = LearnerSetup.model_validate(inbox.config)
        from windage.learner.numbers import fix_numbers
        from windage.learner.serve import serve
        from windage.learner.service import Service

        fix_numbers(setup.learner)
        service = Service(setup)
    except (WindageError, ValidationError) as error:
        traceback.print_exc()
        inbox.ready({"error": str(error), "kind": type(error).__name__})
        return 1
    inbox.ready({"model_folder": str(service.model_folder), "vocab_size": service.vocab_size})
    serve(service, inbox)
    return 0


if __name__ == "__main__":
    sys.exit(main())
