"""
The serving certificate: taken whole or not at all, replaced while connections are open, kept when the new one is bad.

Real TLS on loopback, real files; the certificates are made by an authority of the tests' own.
"""

import asyncio
import contextlib
import logging
import os
import pathlib
import ssl
from collections.abc import AsyncIterator

import pytest
from cryptography import x509

from graphsched.app import certificates
from graphsched.base.kit import clock as clocks
from graphsched.base.values import errors
from graphsched.observe import server, tls
from tests.controlplane import certificates as authorities
from tests.fakes import virtual
from tests.observe import test_server_door

Pairs = tuple[authorities.Authority, pathlib.Path, pathlib.Path]


def issue(folder: pathlib.Path, name: str = "first") -> Pairs:
    """A pair of files, and who signed them."""
    (folder / name).mkdir()
    authority = authorities.Authority(folder / name)
    pair = authority.serving("server")
    return authority, pair.certificate, pair.key


def of_files(certificate: pathlib.Path, key: pathlib.Path) -> tls.Certificate:
    """As `wiring` makes it."""
    return tls.Certificate(certificates.of_files(str(certificate), str(key)), place=str(certificate))


@contextlib.asynccontextmanager
async def serving(held: tls.Certificate) -> AsyncIterator[int]:
    """A server that shows it, and looks after it; yields the port."""
    keeping = asyncio.create_task(held.keep())
    serves = server.Server(test_server_door.shown(), server.Door(None, held))
    await serves.start(host="127.0.0.1", port=0)
    try:
        yield serves.port
    finally:
        keeping.cancel()
        await serves.stop()


async def trusts(port: int, authority: authorities.Authority) -> bool:
    """Whether somebody who trusts this authority is let down by what the server shows."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    except ssl.SSLCertVerificationError:
        return False
    writer.close()
    return True


@virtual.timed
async def test_a_new_certificate_is_shown_without_a_restart(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Within a minute, to those who connect from then on; connections that are open go on."""
    caplog.set_level(logging.INFO)
    first, certificate, key = issue(tmp_path)
    second, *files = issue(tmp_path, "second")
    async with serving(of_files(certificate, key)) as port:
        await asyncio.sleep(tls.PERIOD_S - 10.0)
        context = ssl.create_default_context(cafile=str(first.certificate))
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        for new, old in zip(files, (certificate, key), strict=True):
            old.write_bytes(new.read_bytes())
        assert (True, False) == (await trusts(port, first), await trusts(port, second))

        await asyncio.sleep(11.0)
        assert (False, True) == (await trusts(port, first), await trusts(port, second))
        writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert f"a new serving certificate is shown from now on: {certificate}" in caplog.text
        writer.transport.abort()


@virtual.timed
@pytest.mark.parametrize("now", [b"of another", b"", b"-----BEGIN CERTIFICATE-----\n", None])
async def test_half_a_renewal_changes_nothing(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture, now: bytes | None
) -> None:
    """The certificate is there, its key not yet; or the file is away: what was shown stays in use, and it is logged."""
    first, certificate, key = issue(tmp_path)
    second, other, _ = issue(tmp_path, "second")
    good = certificate.read_bytes()
    async with serving(of_files(certificate, key)) as port:
        if now is None:
            certificate.unlink()
        else:
            certificate.write_bytes(other.read_bytes() if now == b"of another" else now)
        await asyncio.sleep(tls.PERIOD_S + 1.0)
        assert "could not be renewed, keeping the old one" in caplog.text
        assert (True, False) == (await trusts(port, first), await trusts(port, second))
        certificate.write_bytes(good)
        caplog.clear()
        await asyncio.sleep(tls.PERIOD_S)
        assert ("", True) == (caplog.text, await trusts(port, first))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("no certificate", "certFile: "),
        ("no key", "keyFile: "),
        ("other key", "no pair in PEM format"),
        ("large", "is larger than 1 MiB"),
    ],
)
def test_a_bad_pair_is_told_at_the_start(tmp_path: pathlib.Path, spoil: str, said: str) -> None:
    """Place, problem, remedy; and nothing of the key."""
    _, certificate, key = issue(tmp_path)
    secret = key.read_text().splitlines()[1]
    match spoil:
        case "no certificate":
            certificate.unlink()
        case "no key":
            key.unlink()
        case "other key":
            key = issue(tmp_path, "other")[2]
        case _:
            certificate.write_bytes(b"#" * (certificates.FILE_BYTES_MAX + 1))
    with pytest.raises(errors.InputError) as caught:
        of_files(certificate, key)

    assert (True, False) == (said in str(caught.value), secret in str(caught.value))


def test_a_certificate_of_its_own_names_the_machine_and_is_renewed() -> None:
    """It is valid for a year; after half of one there is another."""
    clock = clocks.VirtualClock(wall=1_800_000_000.0)
    read = certificates.of_its_own("10.0.0.7", clock=clock)
    first = read()
    clock.advance(certificates.RENEWED_S - 1.0)
    assert first == read()
    clock.advance(2.0)
    second = read()

    assert first != second == read()
    made = x509.load_pem_x509_certificate(first)
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"10.0.0.7", "127.0.0.1", "::1"} == {str(each) for each in names.get_values_for_type(x509.IPAddress)}
    assert "localhost" in names.get_values_for_type(x509.DNSName)
    assert (1_800_000_000 - 3600, 1_800_000_000 + 365 * 86_400) == (
        made.not_valid_before_utc.timestamp(),
        made.not_valid_after_utc.timestamp(),
    )
    assert b"PRIVATE KEY" in first


def test_a_pipe_is_no_certificate(tmp_path: pathlib.Path) -> None:
    """Opening one waits for a writer, with everything else on the loop."""
    _, _, key = issue(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with pytest.raises(errors.InputError) as caught:
        of_files(pipe, key)
    assert f"http.tls.certFile: {pipe} is not a file (name one in PEM format)" == str(caught.value)
