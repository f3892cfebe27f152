"""Errors in the protocol's own form."""

from __future__ import annotations

from typing import Any

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    405: "invalid_request_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
}


class ProtocolError(Exception):
    """A request that is answered with an error.

    Args:
        status: of the HTTP response.
        message: what is wrong and what would be accepted.
        code: a word for programs, such as "model_not_found".
        param: the field that is wrong.
        retry_after: seconds after which it may be tried again; None where nobody said so.

    >>> ProtocolError(404, "no such model", code="model_not_found", param="model").form["error"]
    {'message': 'no such model', 'type': 'invalid_request_error', 'param': 'model',
     'code': 'model_not_found'}
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        kind: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after = retry_after
        self.kind = kind or _TYPES.get(status, "server_error" if status >= 500 else "api_error")

    @property
    def form(self) -> dict[str, Any]:
        """The body of the response."""
        return {
            "error": {
                "message": self.message,
                "type": self.kind,
                "param": self.param,
                "code": self.code,
            }
        }
