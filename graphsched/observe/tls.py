"""The certificate that the HTTP server shows, renewed while it serves.

Comes in: a function that returns the certificate's chain and key as they are now, in PEM format. Goes out: an
`ssl.SSLContext` that stays the same object for as long as the server listens; whoever connects after a change is shown
what is new, and who is connected notices nothing. cert-manager and kubelets replace the files some time before the old
certificate runs out.

Invariant: what was shown stays in use until something that works has taken its place.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import typing
from collections.abc import Callable

from graphsched.base.kit import pems
from graphsched.base.values import errors

_log = logging.getLogger(__name__)

PERIOD_S = 60.0
"""How often it is looked at. A certificate is renewed days before it must be, and a mounted Secret takes as long."""


class Certificate:
    """What a server proves itself with.

    Attributes:
        context: For the server's connections: TLS 1.2 at least, no client certificates.
    """

    def __init__(self, read: Callable[[], bytes], *, place: str) -> None:
        """Take what `read` returns: chain and key. `place` names the source in messages.

        Raises:
            InputError: There is none, or it can not be used. `read` may raise it as well.
        """
        self._read = read
        self._place = place
        self._shown = b""
        self.context = _context()
        self.refresh()

    def refresh(self) -> bool:
        """Show what there is now; whether that is something new.

        Raises:
            InputError: It can not be used; nothing has changed.
        """
        pem = self._read()
        if pem == self._shown:
            return False
        try:
            # A context is left without a key by a pair that does not fit, so another one tries it first.
            pems.load_pair(_context(), pem)
            pems.load_pair(self.context, pem)
        except (ssl.SSLError, ValueError) as error:
            raise errors.InputError(
                self._place,
                problem=f"certificate and key are no pair in PEM format ({getattr(error, 'reason', '') or error})",
                remedy="the key belongs to the first certificate and has no password",
            ) from error
        self._shown = pem
        return True

    async def keep(self) -> typing.NoReturn:
        """Look again, every minute."""
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                if self.refresh():
                    _log.info("a new serving certificate is shown from now on: %s", self._place)
            except errors.InputError as error:
                # The files of a pair change one after the other; what lasts is repeated here.
                _log.warning("the serving certificate could not be renewed, keeping the old one: %s", error)


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A renegotiation costs the server more than whoever asks for it.
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    return context
