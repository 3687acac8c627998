"""Who may see what over HTTP: the words between the server, which asks, and `app`, which asks the API server.

Comes in: the bearer token of a request and the path it is for. Goes out: a `Verdict`, which is the HTTP status of a
refusal with a text for whoever asked. `bearer` reads the token from the request's header.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

ALLOWED, UNAUTHENTICATED, FORBIDDEN, UNAVAILABLE = 200, 401, 403, 503


class Verdict(msgspec.Struct, frozen=True):
    """Whether to answer.

    Attributes:
        status: 200 to answer; 401 nobody knows the token; 403 its owner may not; 503 it could not be found out.
        text: What to tell whoever asked; empty when they are answered.
    """

    status: int
    text: str = ""


Guard = Callable[[str, str], Awaitable[Verdict]]
"""(token, path) → the verdict. Bounded in time; never raises for what a caller or the API server does."""


def bearer(header: str) -> str:
    """The token in an Authorization header; empty when it holds none that could be one."""
    scheme, _, token = header.strip().partition(" ")
    token = token.strip()
    # What is no token by its letters need not cost the API server a question.
    return token if scheme.lower() == "bearer" and token.isascii() and token.isprintable() and " " not in token else ""
