"""Asks a running scheduler at its HTTP endpoints, for the commands that look at one.

An address as the user gave it and a path come in, the body of the answer goes out. Invariants: whatever goes wrong is
one line that names the address: the scheduler's own words where it has any; a token goes to that address alone, and
over no wire in the clear.
"""

from __future__ import annotations

import http.client
import pathlib
import ssl
import typing
import urllib.error
import urllib.parse
import urllib.request

import msgspec

from graphsched.base.kit import hosts
from graphsched.base.values import errors

DEFAULT = "http://127.0.0.1:10260"
"""Where a scheduler on this host listens, or `kubectl port-forward` leads to one."""
TOKEN_BYTES_MAX = 8000
"""What fits a header of the scheduler's."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to ask, and what it takes; see the options of the commands.

    Attributes:
        url: The scheduler's address.
        token_file: Path of a file with a bearer token; empty for none.
        ca_file: Path of the certificates to trust; empty for those of the machine.
        insecure: Take any certificate.
    """

    url: str = DEFAULT
    token_file: str = ""
    ca_file: str = ""
    insecure: bool = False


class TooLongError(errors.ClusterError):
    """The answer is longer than whoever asked takes."""


def get(server: Server, path: str, *, timeout_s: float, bytes_max: int, instead: str) -> bytes:
    """The body of the answer to GET `path`.

    Args:
        server: Whom to ask.
        path: With its query, beginning with a slash.
        timeout_s: How long the scheduler may be silent.
        bytes_max: A longer body is an error.
        instead: What else the user might do when nobody answers there.

    Raises:
        InputError: The address is none, or one of the files is not what it should be.
        ClusterError: The scheduler refused, answered with too much (a TooLongError), or did not answer.
    """
    url = server.url.rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise errors.InputError("--server", problem=f'"{url}" is no URL', remedy=f"use e.g. {DEFAULT}")
    try:
        _ = urllib.parse.urlsplit(url).port
    except ValueError as error:
        raise errors.InputError(
            "--server", problem=f'"{url}" is no URL: {error}', remedy=f"use e.g. {DEFAULT}"
        ) from error
    headers = {"Authorization": f"Bearer {_token(url, server.token_file)}"} if server.token_file else {}
    # No proxy: the address is this machine's, or one the user named. Reading certificates takes longer than an answer.
    trusting = (
        [urllib.request.HTTPSHandler(context=_context(server))] if url.startswith("https") or server.ca_file else []
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), *trusting, _NoRedirect)
    try:
        request = urllib.request.Request(url + path, headers=headers)  # noqa: S310  the scheme was checked above
        with opener.open(request, timeout=timeout_s) as response:
            body: bytes = response.read(bytes_max + 1)
    except urllib.error.HTTPError as error:
        raise errors.ClusterError(f"{url}: {_reason(error)}{_hint(error, server)}", status=error.code) from error
    except http.client.InvalidURL as error:
        raise errors.InputError(
            "--server", problem=f'"{url}" is no URL: {error}', remedy=f"use e.g. {DEFAULT}"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise errors.InputError(
                url,
                problem=f"its certificate is not trusted: {reason.verify_message}",
                remedy="name one with --ca-file, or take any with --insecure-skip-tls-verify",
            ) from error
        if url.startswith("http://") and isinstance(reason, http.client.BadStatusLine | ConnectionResetError):
            instead = f"it may speak TLS: try --server {url.replace('http', 'https', 1)}"
        raise errors.UnreachableError(f"{url}: no running scheduler answers ({reason}); {instead}") from error
    except ValueError as error:
        raise errors.InputError("--server", problem=f'"{url}" is no URL: {error}') from error
    if len(body) > bytes_max:
        raise TooLongError(f"{url}: the answer is longer than {bytes_max >> 20} MiB")
    return body


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The library would take the token along to wherever it is sent."""

    def redirect_request(self, *_: typing.Any) -> None:
        """Take the redirection as an answer like any other."""


def _token(url: str, path: str) -> str:
    host = urllib.parse.urlsplit(url).hostname or ""
    if url.startswith("http://") and not hosts.is_loopback(host):
        raise errors.InputError(
            "--token-file", problem=f"the token would be sent in the clear to {url}", remedy="use https"
        )
    try:
        with pathlib.Path(path).open(encoding="ascii") as file:
            token = file.read(TOKEN_BYTES_MAX + 1).strip()
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror or str(error) if isinstance(error, OSError) else "it is not a text"
        raise errors.InputError("--token-file", path, problem=problem.lower()) from error
    if not token or len(token) > TOKEN_BYTES_MAX or not token.isprintable() or " " in token:
        raise errors.InputError(
            "--token-file", path, problem="holds no token", remedy="kubectl create token SERVICEACCOUNT makes one"
        )
    return token


def _context(server: Server) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=server.ca_file or None)
    except OSError as error:
        raise errors.InputError(
            "--ca-file", server.ca_file, problem="no certificates in PEM format can be read from it"
        ) from error
    if server.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _hint(error: urllib.error.HTTPError, server: Server) -> str:
    return " (and name its file with --token-file)" if error.code == 401 and not server.token_file else ""


def _reason(error: urllib.error.HTTPError) -> str:
    """What the server said, in its own words where it has any."""
    try:
        body = error.read(4096)
    except (OSError, http.client.HTTPException):
        # The status is known; that its explanation did not arrive whole changes nothing.
        body = b""
    try:
        return str(msgspec.json.decode(body, type=dict[str, str])["error"])
    except (msgspec.DecodeError, KeyError):
        return f"answered {error.code} {error.reason}"
