"""Asks a running scheduler at its HTTP endpoints, for the commands that look at one.

An address as the user gave it and a path come in, the body of the answer goes out. Invariant: whatever goes wrong is
one line that names the address: the scheduler's own words where it has any.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request

import msgspec

from graphsched.base.values import errors

DEFAULT = "http://127.0.0.1:10260"
"""Where a scheduler on this host listens, or `kubectl port-forward` leads to one."""


def get(server: str, path: str, *, timeout_s: float, bytes_max: int, instead: str) -> bytes:
    """The body of the answer to GET `path`.

    Args:
        server: The scheduler's address.
        path: With its query, beginning with a slash.
        timeout_s: How long the scheduler may be silent.
        bytes_max: A longer body is an error.
        instead: What else the user might do when nobody answers there.

    Raises:
        InputError: The address is none.
        ClusterError: The scheduler refused, answered with too much, or did not answer.
    """
    server = server.rstrip("/")
    if not server.startswith(("http://", "https://")):
        raise errors.InputError("--server", problem=f'"{server}" is no URL', remedy=f"use e.g. {DEFAULT}")
    try:
        # The scheme was checked above. No proxy: the address is this machine's, or one the user named.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(server + path, timeout=timeout_s) as response:
            body: bytes = response.read(bytes_max + 1)
    except urllib.error.HTTPError as error:
        raise errors.ClusterError(f"{server}: {_reason(error)}", status=error.code) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise errors.UnreachableError(f"{server}: no running scheduler answers ({reason}); {instead}") from error
    except ValueError as error:
        raise errors.InputError("--server", problem=f'"{server}" is no URL: {error}') from error
    if len(body) > bytes_max:
        raise errors.ClusterError(f"{server}: the answer is longer than {bytes_max >> 20} MiB")
    return body


def _reason(error: urllib.error.HTTPError) -> str:
    """What the server said, in its own words where it has any."""
    body = error.read(4096)
    try:
        return str(msgspec.json.decode(body, type=dict[str, str])["error"])
    except (msgspec.DecodeError, KeyError):
        return f"answered {error.code} {error.reason}"
