"""Where the certificate comes from that metrics and health are served with: two files, or one made on the spot.

Comes in: the settings. Goes out: a function that `observe.tls` calls now and then, which returns chain and key in PEM
format. A certificate made here is signed by itself, as kube-scheduler's is without one of its own: it keeps listeners
out, and proves nothing about who answers. Its key never leaves this process's memory.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import pathlib
import platform
import stat
from collections.abc import Callable

from graphsched.base.kit import clock as clocks
from graphsched.base.values import errors

FILE_BYTES_MAX = 1 << 20
"""A chain with its key has some 10 KiB."""
VALID = dt.timedelta(days=365)
RENEWED_S = VALID.total_seconds() / 2
"""A process that lives so long makes itself another one."""
_EARLIER = dt.timedelta(hours=1)
"""Clocks of those who connect may be behind."""


def of_files(certificate: str, key: str) -> Callable[[], bytes]:
    """Reads the two files, again at each call; raises `InputError` when it can not."""

    def read() -> bytes:
        return b"\n".join(_content(path, field) for path, field in ((certificate, "certFile"), (key, "keyFile")))

    return read


def _content(path: str, field: str) -> bytes:
    try:
        # What waits for a writer, like a pipe, would hold up the event loop, and could not be read again anyway.
        if not stat.S_ISREG(pathlib.Path(path).stat().st_mode):
            raise errors.InputError(
                f"http.tls.{field}", problem=f"{path} is not a file", remedy="name one in PEM format"
            )
        with pathlib.Path(path).open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise errors.InputError(
            f"http.tls.{field}", problem=f"{path} can not be read: {error.strerror}", remedy="name a file in PEM format"
        ) from error
    if len(content) > FILE_BYTES_MAX:
        raise errors.InputError(f"http.tls.{field}", problem=f"{path} is larger than 1 MiB")
    return content


def of_its_own(host: str, *, clock: clocks.Clock) -> Callable[[], bytes]:
    """Makes a certificate that names `host` and this machine, and another one half a year later."""
    made, since = b"", float("-inf")

    def read() -> bytes:
        nonlocal made, since
        now = clock.monotonic()
        if now - since >= RENEWED_S:
            made, since = _self_signed(host, clock.wall()), now
        return made

    return read


def _self_signed(host: str, now: float) -> bytes:
    # It takes 0.15 s and 18 MB to import, which nobody else needs.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509 import oid

    key = ec.generate_private_key(ec.SECP256R1())
    moment = dt.datetime.fromtimestamp(now, dt.UTC)
    name = x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, f"graphsched@{int(now)}")])
    addresses: list[x509.GeneralName] = []
    hosts = {"localhost", "127.0.0.1", "::1", platform.node(), host}
    hosts -= {"", "0.0.0.0", "::"}  # noqa: S104  names of no host
    for each in sorted(filter(str.isascii, hosts)):
        try:
            addresses.append(x509.IPAddress(ipaddress.ip_address(each)))
        except ValueError:
            addresses.append(x509.DNSName(each))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - _EARLIER)
        .not_valid_after(moment + VALID)
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
