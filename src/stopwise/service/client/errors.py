"""What a client raises."""

from __future__ import annotations

from stopwise.checks import StopwiseError


class ServiceError(StopwiseError):
    """The service refused, or could not be reached.

    Attributes:
        status: of the response; 0 where there was none.
        code: a word for programs, such as "no_such_round".

    >>> ServiceError(404, "there is no round 'x'", "no_such_round").code
    'no_such_round'
    """

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
