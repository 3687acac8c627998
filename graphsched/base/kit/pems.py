"""Certificates and private keys in PEM format, given to OpenSSL without a file on a disk.

OpenSSL takes a certificate with its key only from a file. One in memory, where there are such, keeps the key where it
was: in this process.
"""

from __future__ import annotations

import os
import ssl
import tempfile


def load_pair(context: ssl.SSLContext, pem: bytes) -> None:
    """Make `context` show the certificate in `pem`, which holds its chain and its private key.

    Raises:
        ssl.SSLError: There is no certificate, no key, or they do not belong together.
        ValueError: It is no PEM.
    """
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("certificate"), "wb") as memory:  # noqa: PTH123  a descriptor, no path
            memory.write(pem)
            memory.flush()
            context.load_cert_chain(f"/proc/self/fd/{memory.fileno()}", password=_no_password)
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(pem)
            file.flush()
            context.load_cert_chain(file.name, password=_no_password)


def _no_password() -> str:
    """Answer OpenSSL, which would otherwise ask at the terminal."""
    return ""
