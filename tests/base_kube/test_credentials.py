"""
Credentials that stay valid: tokens read again, expiry foreseen, failures survived, secrets kept.

Simulated: time, and the loading. Real: TLS with client certificates against a server in the same loop.
"""

import asyncio
import logging
import pathlib
import ssl

import msgspec
import pytest
from aiohttp import web

from graphsched.base.kit import clock as clocks
from graphsched.base.kube import client as clients, credentials
from graphsched.base.values import errors
from tests.controlplane import certificates
from tests.fakes import virtual


class Loader:
    """Loads what a test lays out; an exception is raised."""

    def __init__(self, *results: credentials.Credentials | Exception) -> None:
        self._results = list(results)
        self.loads = 0

    async def __call__(self) -> credentials.Credentials:
        """Take a second for the next result."""
        self.loads += 1
        result = self._results.pop(0) if len(self._results) > 1 else self._results[0]
        await asyncio.sleep(1)
        if isinstance(result, Exception):
            raise result
        return result


def made(token: str = "", **fields: str | float) -> credentials.Credentials:
    """Make credentials for plain http, apart from these fields."""
    plain = credentials.Credentials(
        origin="test", server="http://127.0.0.1:1", authorization=f"Bearer {token}" if token else ""
    )
    return msgspec.structs.replace(plain, **fields)


def token_of(access: credentials.Access) -> str:
    """Return the header that would be sent."""
    return access.headers.get("Authorization", "")


@virtual.timed
async def test_a_hundred_tasks_load_once() -> None:
    """The plugin behind it may open a browser."""
    loader = Loader(made("a"))
    keeper = credentials.Keeper(loader, clock=virtual.LoopClock())

    found = await asyncio.gather(*(keeper.current() for _ in range(100)))

    assert 1 == loader.loads
    assert 1 == len(set(map(id, found)))


@virtual.timed
async def test_a_token_file_is_read_again(tmp_path: pathlib.Path) -> None:
    """A projected token is replaced on disk; the connections stay."""
    file = tmp_path / "token"
    file.write_text("one\n")
    keeper = credentials.Keeper(Loader(made("one", token_file=str(file))), clock=virtual.LoopClock())
    first = await keeper.current()
    file.write_text("two\n")

    await asyncio.sleep(credentials.TOKEN_FILE_PERIOD_S - 1)
    before = await keeper.current()
    await asyncio.sleep(2)
    after = await keeper.current()

    assert ["Bearer one", "Bearer one", "Bearer two"] == [token_of(access) for access in (first, before, after)]
    assert before is first


@virtual.timed
async def test_a_token_file_that_is_gone_leaves_the_old_token(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The server has the last word on whether it is still good."""
    keeper = credentials.Keeper(Loader(made("one", token_file=str(tmp_path / "no"))), clock=virtual.LoopClock())
    await keeper.current()

    await asyncio.sleep(credentials.TOKEN_FILE_PERIOD_S + 1)

    assert "Bearer one" == token_of(await keeper.current())
    assert ["No such file" in record.message for record in caplog.records] == [True]


@virtual.timed
async def test_what_expires_is_loaded_again_before_it_does() -> None:
    """Nobody has to be turned away first."""
    expires = virtual.LoopClock().EPOCH_S + 3600
    loader = Loader(made("one", expires=expires), made("two", expires=expires + 3600))
    keeper = credentials.Keeper(loader, clock=virtual.LoopClock())
    await keeper.current()

    await asyncio.sleep(3600 - credentials.EXPIRY_MARGIN_S - 10)
    before = await keeper.current()
    await asyncio.sleep(20)
    after = await keeper.current()

    assert ("Bearer one", "Bearer two", 2) == (token_of(before), token_of(after), loader.loads)


@virtual.timed
async def test_credentials_that_are_always_about_to_expire_are_not_loaded_at_every_call() -> None:
    """A plugin that hands out tokens of a minute is asked every ten seconds."""
    loader = Loader(made("one", expires=virtual.LoopClock().EPOCH_S + 60))
    keeper = credentials.Keeper(loader, clock=virtual.LoopClock())

    for _ in range(200):
        await keeper.current()
        await asyncio.sleep(0.5)

    assert 9 <= loader.loads <= 11


@virtual.timed
async def test_a_load_that_fails_later_keeps_what_there_is(caplog: pytest.LogCaptureFixture) -> None:
    """The kubeconfig is being rewritten, or the identity provider is down: the scheduler works on."""
    loader = Loader(made("one"), errors.InputError("kubeconfig", problem="no such file"), made("two"))
    keeper = credentials.Keeper(loader, clock=virtual.LoopClock())
    first = await keeper.current()

    kept = await keeper.renew(first)
    await asyncio.sleep(credentials.RELOAD_PAUSE_S)
    renewed = await keeper.renew(kept)

    assert kept is first
    assert "Bearer two" == token_of(renewed)
    assert [logging.WARNING] == [record.levelno for record in caplog.records]


@virtual.timed
async def test_the_first_load_that_fails_is_told() -> None:
    """There is nothing to work with."""
    keeper = credentials.Keeper(Loader(errors.InputError("f", problem="is wrong")), clock=virtual.LoopClock())

    with pytest.raises(errors.InputError, match="f: is wrong"):
        await keeper.current()


def test_secrets_are_in_no_repr() -> None:
    """Whatever is logged or put into a traceback."""
    held = made("t0ken", certificate="cert", key="k3y")

    assert "Credentials(server='http://127.0.0.1:1', origin='test')" == repr(held)


@virtual.timed
async def test_no_secret_is_in_what_holds_them(caplog: pytest.LogCaptureFixture) -> None:
    """Nor in the access made of them, in the keeper, in a failure to reach the server, in the log of any of it."""
    caplog.set_level(logging.DEBUG)
    keeper = credentials.Keeper(Loader(made("t0ken", token_file="/nowhere")), clock=virtual.LoopClock())
    access = await keeper.current()
    async with clients.Client(keeper) as client:
        with pytest.raises(errors.UnreachableError) as caught:
            await client.get("/api/v1/nodes")
    await asyncio.sleep(credentials.TOKEN_FILE_PERIOD_S + 1)
    await keeper.current()

    assert "Access(server='http://127.0.0.1:1')" == repr(access)
    assert "t0ken" not in repr(keeper) + repr(vars(keeper)) + str(caught.value) + repr(caught.value) + caplog.text
    assert "the token could not be read again" in caplog.text


@virtual.timed
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"server": "https://one.example", "verify": False}, "https://one.example is not asked to prove who it is"),
        ({"server": "https://127.0.0.1:1", "verify": False}, "test says insecure-skip-tls-verify"),
        (
            {"server": "http://one.example"},
            "http://one.example is spoken to in the clear, token included: test says http",
        ),
        ({"server": "https://one.example"}, ""),
        ({"server": "http://127.0.0.1:1"}, ""),
        ({"server": "http://localhost:1"}, ""),
        ({"server": "http://one.example", "authorization": ""}, ""),
    ],
)
async def test_what_gives_secrets_away_is_said_once(
    fields: dict[str, str], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Verification is off only where the kubeconfig says so, and never silently; new tokens do not repeat it."""
    first = made("a", **fields)
    keeper = credentials.Keeper(
        Loader(first, msgspec.structs.replace(first, authorization="Bearer b")), clock=virtual.LoopClock()
    )
    await keeper.renew(await keeper.current())
    lines = [record.getMessage() for record in caplog.records]

    assert (1 if said else 0, True) == (len(lines), said in "".join(lines))


def test_a_token_alone_does_not_make_a_new_tls_context(tmp_path: pathlib.Path) -> None:
    """Another context would mean new connections, and a handshake each."""
    authority = certificates.Authority(tmp_path)
    held = made("one", server="https://127.0.0.1:1", authority=authority.certificate.read_text())
    keeper = credentials.Keeper(Loader(held), clock=clocks.VirtualClock())

    first = keeper._take(held)
    second = keeper._take(msgspec.structs.replace(held, authorization="Bearer two"))

    assert first is not second
    assert first.tls is second.tls


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"authority": "rubbish"}, "test: certificate-authority: it holds no certificate in PEM format"),
        ({"certificate": "rubbish", "key": "k3y"}, "test: client-certificate and client-key: they are no pair in PEM"),
    ],
)
def test_certificates_that_are_none_are_named(fields: dict[str, str], told: str) -> None:
    """One line, and no key in it."""
    with pytest.raises(errors.InputError) as caught:
        credentials.ssl_context(made(server="https://127.0.0.1:1", **fields))

    assert str(caught.value).startswith(told)
    assert "k3y" not in str(caught.value)


def test_a_key_of_another_certificate_is_named(tmp_path: pathlib.Path) -> None:
    """A common slip with files that were renewed one by one."""
    authority = certificates.Authority(tmp_path)
    one, two = authority.client("one"), authority.client("two")
    held = made(server="https://127.0.0.1:1", certificate=one.certificate.read_text(), key=two.key.read_text())

    with pytest.raises(errors.InputError, match="KEY_VALUES_MISMATCH"):
        credentials.ssl_context(held)


def test_an_encrypted_key_is_refused_without_asking_at_the_terminal(tmp_path: pathlib.Path) -> None:
    """A daemon has none."""
    encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIBvTBXBgkq\n-----END ENCRYPTED PRIVATE KEY-----\n"
    pair = certificates.Authority(tmp_path).client("one")
    held = made(server="https://127.0.0.1:1", certificate=pair.certificate.read_text(), key=encrypted)

    with pytest.raises(errors.InputError, match="no pair in PEM format"):
        credentials.ssl_context(held)


async def _greet(request: web.BaseRequest) -> web.StreamResponse:
    transport = request.transport
    assert transport is not None
    subject = transport.get_extra_info("peercert")["subject"]
    return web.json_response({"user": dict(pair for part in subject for pair in part)["commonName"]})


@virtual.timed
async def test_a_client_certificate_lets_us_in_and_the_server_is_checked(tmp_path: pathlib.Path) -> None:
    """Mutual TLS for real: our certificate is seen, and a server signed by somebody else is refused."""
    authority = certificates.Authority(tmp_path)
    serving, ours = authority.serving("server"), authority.client("graphsched")
    (tmp_path / "other").mkdir()
    other = certificates.Authority(tmp_path / "other")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(serving.certificate, serving.key)
    runner = web.ServerRunner(web.Server(_greet), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    held = made(
        server=f"https://127.0.0.1:{runner.addresses[0][1]}",
        authority=authority.certificate.read_text(),
        certificate=ours.certificate.read_text(),
        key=ours.key.read_text(),
    )
    distrusting = msgspec.structs.replace(held, authority=other.certificate.read_text())

    async with clients.Client(credentials.Keeper(Loader(held), clock=virtual.LoopClock())) as client:
        answer = await client.get("/")
    async with clients.Client(credentials.Keeper(Loader(distrusting), clock=virtual.LoopClock())) as client:
        with pytest.raises(errors.UnreachableError, match=r"the certificate of 127\.0\.0\.1:\d+ is not trusted"):
            await client.get("/")
    await runner.cleanup()

    assert b'{"user": "graphsched"}' == answer
