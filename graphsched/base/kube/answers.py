"""What the API server answered, as an error of our tree.

HTTP status, headers and body come in, a `ClusterError` goes out. The one question that matters to who asked for a
change is whether it may have taken effect: `UnreachableError` says it may, everything else says it did not.
"""

from __future__ import annotations

import os
import re
import ssl

import aiohttp

from graphsched.base.kube import wire
from graphsched.base.values import errors

_RETRY_AFTER_S_MAX = 60.0
"""A server that asks for more is asked again earlier: it may be another one by then."""
_MESSAGE_LENGTH_MAX = 1000

_CLASSES: dict[int, type[errors.ClusterError]] = {
    401: errors.ForbiddenError,
    403: errors.ForbiddenError,
    404: errors.NotFoundError,
    409: errors.ConflictError,
    410: errors.ExpiredError,
    # The server gave up on its own work (its database did not answer, a handler panicked), perhaps half-way.
    500: errors.UnreachableError,
    502: errors.UnreachableError,
    504: errors.UnreachableError,
}

_ADMISSION = re.compile(r'(admission webhook|Internal error occurred: failed calling webhook) "')
"""How the API server begins when a webhook refused, with whatever status the webhook chose, or did not answer. It asks
them before it writes.
"""

_OWN_WORDS = frozenset({404, 409, 410, 503})
"""What follows from these is too much to take anybody's word but the API server's."""


def error(status: int, body: bytes, *, what: str, retry_after: str = "") -> errors.ClusterError:
    """The error behind an answer.

    Args:
        status: HTTP status.
        body: A Status object, or whatever a proxy sends.
        what: Method and path, for the message.
        retry_after: The header of that name.
    """
    try:
        told = wire.STATUS.decode(body)
    except errors.InputError:
        told = wire.Status()
    kind = _CLASSES.get(status, errors.ClusterError)
    if status in _OWN_WORDS and not told.code:
        # Not the API server's words, but of something between us: it may have passed the request on before it gave up,
        # and whether the object is there it can not know.
        kind = errors.UnreachableError
    elif _ADMISSION.match(told.message):
        # Neither gone nor somewhere else, as the status may have it, and nothing took effect.
        kind = errors.ClusterError
    return kind(
        f"{what}: {status} {_words(told.message or body.decode(errors='replace'))}",
        status=status,
        reason=told.reason,
        retry_after_s=_seconds(retry_after),
    )


def ended(status: wire.Status, *, what: str) -> errors.ClusterError:
    """The error that an ERROR event of a watch carries."""
    kind = (
        errors.ExpiredError if status.reason in {"Expired", "Gone"} else _CLASSES.get(status.code, errors.ClusterError)
    )
    return kind(f"{what}: {status.code} {_words(status.message)}", status=status.code, reason=status.reason)


def _words(message: str) -> str:
    """The first line of what the server says, as far as it goes.

    Below it, the API server prints the differing specs of two pods, environment included; and what is said here is
    repeated in logs, events and conditions.
    """
    return message.strip().partition("\n")[0][:_MESSAGE_LENGTH_MAX] or "no explanation"


def garbled(body: bytes, *, what: str) -> errors.UnreachableError:
    """The error for an answer that calls itself a success and holds no object."""
    text = body[:_MESSAGE_LENGTH_MAX].decode(errors="replace").strip().partition("\n")[0] or "nothing"
    return errors.UnreachableError(f"{what}: the answer is no object but {text!r}", reason="Garbled")


def unreachable(cause: BaseException, *, what: str, reason: str = "") -> errors.UnreachableError:
    """The error for no answer at all."""
    return errors.UnreachableError(f"{what}: no answer: {_told(cause)}", reason=reason or "Unreachable")


def _told(cause: BaseException) -> str:
    """Who does not answer and what the system says of it, without the addresses of the library's objects."""
    if not isinstance(cause, aiohttp.ClientConnectorError):
        return str(cause).strip() or type(cause).__name__
    whom, system = f"{cause.host}:{cause.port}", cause.os_error
    if isinstance(system, ssl.SSLCertVerificationError):
        return f"the certificate of {whom} is not trusted: {system.verify_message or system}"
    # The event loop puts a sentence of its own round the system's words, where there is one number for them.
    plain = not isinstance(system, ssl.SSLError) and system.errno is not None and system.errno > 0
    told = os.strerror(system.errno) if plain and system.errno else system.strerror or str(system)
    return f"can not connect to {whom}: {told}"


def _seconds(header: str) -> float:
    """The header may hold a date as well; no API server sends one, and no wait is a safe reading."""
    return min(float(header), _RETRY_AFTER_S_MAX) if header.isascii() and header.isdigit() else 0.0
