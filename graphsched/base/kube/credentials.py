"""Who we are to the API server, kept valid.

`config` loads `Credentials`; a `Keeper` holds them, reads a token file again before its token runs out, loads anew
before a known expiry and once when the server turned a request away with 401. `client` asks it before every request.

Invariants: private keys and tokens reach no disk, no log and no `repr`; credentials that are known to be bad are not
loaded again and again, whatever the number of requests that fail.
"""

from __future__ import annotations

import asyncio
import logging
import pathlib
import ssl
import urllib.parse
from collections.abc import Awaitable, Callable

import msgspec

from graphsched.base.kit import clock as clocks, hosts, pems
from graphsched.base.values import errors

_log = logging.getLogger(__name__)

TOKEN_FILE_PERIOD_S = 60.0
"""A projected service account token lives an hour at least and is replaced at 80 % of its life."""
EXPIRY_MARGIN_S = 120.0
"""Loading may run a program that asks somebody else; it takes seconds, so begin early."""
RELOAD_PAUSE_S = 10.0
"""After a load that failed or brought nothing new."""


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """An address and what it takes to be let in.

    Attributes:
        origin: Where they come from, e.g. `/root/.kube/config: context "kind"`; the place in error messages.
        server: URL without a slash at the end; it may have a path.
        authority: PEM of the certificates to trust; empty for those of the machine.
        certificate: PEM of the client certificate, empty without one.
        key: PEM of its private key.
        authorization: Value of the Authorization header, empty without one.
        token_file: Path to read the bearer token from, again and again; empty without one.
        expires: When `authorization` runs out, seconds since the epoch; None when that is not known.
        verify: Whether to check the server's certificate.
        server_name: The name to expect in that certificate; empty for the host of `server`.
        proxy: URL of the proxy to go through, empty without one.
    """

    origin: str
    server: str
    authority: str = ""
    certificate: str = ""
    key: str = ""
    authorization: str = ""
    token_file: str = ""
    expires: float | None = None
    verify: bool = True
    server_name: str = ""
    proxy: str = ""

    def __repr__(self) -> str:
        """The address and the origin; never a secret."""
        return f"Credentials(server={self.server!r}, origin={self.origin!r})"


class Access(msgspec.Struct, frozen=True, eq=False):
    """What a request needs, made once per set of credentials. Compared by identity.

    Attributes:
        server: See `Credentials`.
        headers: To send with every request.
        tls: For https; True where the server is spoken to in plain http.
        server_name: See `Credentials`; None for the host of `server`.
        proxy: See `Credentials`; None without one.
    """

    server: str
    headers: dict[str, str]
    tls: ssl.SSLContext | bool
    server_name: str | None
    proxy: str | None

    def __repr__(self) -> str:
        """The address; never a secret."""
        return f"Access(server={self.server!r})"


class Keeper:
    """Holds the credentials of one cluster. Any number of tasks may ask it at once."""

    def __init__(self, load: Callable[[], Awaitable[Credentials]], *, clock: clocks.Clock) -> None:
        """Keep what `load` returns; it is called at the first use, and raises `InputError` when it can not."""
        self._load = load
        self._clock = clock
        self._lock = asyncio.Lock()
        self._credentials: Credentials | None = None
        self._access: Access | None = None
        self._fresh_until = 0.0
        self._no_reload_until = 0.0

    async def current(self) -> Access:
        """Valid access as far as is known without asking the server.

        Raises:
            InputError: The first load failed. Later failures are logged, and what there is stays in use.
        """
        access = self._access
        if access is not None and self._clock.monotonic() < self._fresh_until:
            return access
        async with self._lock:
            if self._access is None:
                return self._take(await self._load())
            if self._clock.monotonic() >= self._fresh_until:
                await self._freshen()
            return self._access

    async def renew(self, rejected: Access) -> Access:
        """Access other than the rejected one, or the rejected one itself when there is none to be had."""
        async with self._lock:
            if self._access is not None and self._access is not rejected:
                return self._access
            if self._clock.monotonic() >= self._no_reload_until:
                await self._reload()
            return self._access or rejected

    async def _freshen(self) -> None:
        held = self._credentials
        if held is not None and held.expires is not None and self._clock.wall() >= held.expires - EXPIRY_MARGIN_S:
            await self._reload()
        elif held is not None and held.token_file:
            self._reread(held)

    async def _reload(self) -> None:
        self._no_reload_until = self._clock.monotonic() + RELOAD_PAUSE_S
        try:
            self._take(await self._load())
        except errors.GraphschedError as error:
            # The API server has the last word: what is held may still be good, and a file may be there again soon.
            _log.warning("credentials could not be loaded again, keeping the old ones: %s", error)
            self._fresh_until = self._no_reload_until

    def _reread(self, held: Credentials) -> None:
        try:
            authorization = read_token(held.token_file)
        except errors.InputError as error:
            _log.warning("the token could not be read again, keeping the old one: %s", error)
            authorization = held.authorization
        self._take(msgspec.structs.replace(held, authorization=authorization))

    def _take(self, loaded: Credentials) -> Access:
        access = self._access
        if access is None or loaded != self._credentials:
            _warn(loaded, self._credentials)
            access = _access(loaded, self._credentials, access)
        self._credentials, self._access = loaded, access
        self._fresh_until = self._horizon(loaded)
        return access

    def _horizon(self, loaded: Credentials) -> float:
        """The monotonic time up to which nothing needs a look."""
        now = self._clock.monotonic()
        horizon = now + TOKEN_FILE_PERIOD_S if loaded.token_file else float("inf")
        if loaded.expires is not None:
            # Something that is about to expire already is looked at again after a pause, not at every request.
            left_s = loaded.expires - EXPIRY_MARGIN_S - self._clock.wall()
            horizon = min(horizon, now + max(left_s, RELOAD_PAUSE_S))
        return horizon


def read_token(path: str) -> str:
    """The Authorization header of the bearer token in a file.

    Raises:
        InputError: It can not be read, or holds nothing.
    """
    try:
        token = pathlib.Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror or str(error) if isinstance(error, OSError) else "it is not a text"
        raise errors.InputError(path, problem=f"the token can not be read: {reason}") from error
    if not token:
        raise errors.InputError(path, problem="the token file is empty", remedy="let it be written anew")
    return f"Bearer {token}"


def _access(loaded: Credentials, before: Credentials | None, access: Access | None) -> Access:
    context: ssl.SSLContext | bool
    if before is not None and access is not None and _tls(before) == _tls(loaded):
        # The same context means the same connections: a new token alone closes none.
        context = access.tls
    else:
        context = ssl_context(loaded)
    return Access(
        server=loaded.server,
        headers={"Authorization": loaded.authorization} if loaded.authorization else {},
        tls=context,
        server_name=loaded.server_name or None,
        proxy=loaded.proxy or None,
    )


def _warn(loaded: Credentials, before: Credentials | None) -> None:
    """Say, once for each server, what leaves a secret to whoever stands between."""
    if before is not None and _tls(before) == _tls(loaded):
        return
    secure = loaded.server.startswith("https:")
    if secure and not loaded.verify:
        _log.warning(
            "%s is not asked to prove who it is, and whoever stands between reads and changes everything: %s says "
            "insecure-skip-tls-verify",
            loaded.server,
            loaded.origin,
        )
    elif not secure and loaded.authorization and not is_loopback(loaded.server):
        _log.warning("%s is spoken to in the clear, token included: %s says http", loaded.server, loaded.origin)


def is_loopback(server: str) -> bool:
    """Whether the host of this URL is this one, by its address or as `localhost`."""
    try:
        return hosts.is_loopback(urllib.parse.urlsplit(server).hostname or "")
    except ValueError:
        return False


def _tls(held: Credentials) -> tuple[str, str, str, str, bool]:
    return held.server, held.authority, held.certificate, held.key, held.verify


def ssl_context(held: Credentials) -> ssl.SSLContext | bool:
    """How to speak TLS with these credentials; True for a server that is spoken to in plain http.

    Raises:
        InputError: The trusted certificates, the client certificate or its key are none.
    """
    if not held.server.startswith("https:"):
        return True
    try:
        context = ssl.create_default_context(cadata=held.authority or None)
    except (ssl.SSLError, ValueError) as error:
        raise errors.InputError(
            held.origin,
            "certificate-authority",
            problem="it holds no certificate in PEM format",
            remedy="it begins with -----BEGIN CERTIFICATE-----",
        ) from error
    # Newer Pythons set this by default, and then refuse the certificates of many running clusters.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not held.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if held.certificate:
        _load_pair(context, held)
    return context


def _load_pair(context: ssl.SSLContext, held: Credentials) -> None:
    try:
        pems.load_pair(context, f"{held.certificate.rstrip()}\n{held.key}".encode())
    except (ssl.SSLError, ValueError) as error:
        raise errors.InputError(
            held.origin,
            "client-certificate and client-key",
            problem=f"they are no pair in PEM format ({getattr(error, 'reason', '') or error})",
            remedy="both begin with -----BEGIN, the key has no password and belongs to the certificate",
        ) from error
