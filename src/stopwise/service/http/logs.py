"""One line of JSON for each event. Bodies, answers and keys are never among the fields."""

from __future__ import annotations

import json
import logging
import sys
import time

_OWN = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}


class JsonLines(logging.Formatter):
    """Time, level, message, and the fields given as `extra`.

    >>> record = logging.makeLogRecord({"msg": "hi", "levelname": "INFO", "created": 0.0, "n": 1})
    >>> JsonLines().format(record)
    '{"at": "1970-01-01T00:00:00.000Z", "level": "info", "message": "hi", "n": 1}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        form = {
            "at": f"{whole}.{int(record.created % 1 * 1000):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        form.update({name: value for name, value in vars(record).items() if name not in _OWN})
        if record.exc_info and record.exc_info[0] is not None:
            # Where it happened, not what was said: a message may hold what a client sent.
            trace = record.exc_info[2]
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            form["error"] = record.exc_info[0].__name__
            if trace is not None:
                form["where"] = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        return json.dumps(form, default=str)


def set_up_logging(level: str) -> None:
    """Send the service's events to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("stopwise.service")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
