"""
Finding and loading credentials: every way in, and every mistake in one line with file, entry and field.

Real: kubeconfig files, exec plugins as programs, and (where said) the loading process. Most tests ask `loading` in this
process, which is the same code without half a second of start-up.
"""

import asyncio
import base64
import errno
import json
import os
import pathlib
import select
import stat
import subprocess
import sys
from collections.abc import Mapping

import pytest
import yaml

from graphsched.base.kube import config, loading
from graphsched.base.values import errors
from tests.controlplane import certificates


def kubeconfig(
    folder: pathlib.Path,
    *,
    user: Mapping[str, object] | None = None,
    cluster: Mapping[str, object] | None = None,
    name: str = "one",
    file: str = "config",
) -> pathlib.Path:
    """Write a kubeconfig with one cluster, user and context of the same name."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example:6443", **(cluster or {})}}],
        "users": [{"name": name, "user": dict(user or {})}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path = folder / file
    path.write_text(yaml.safe_dump(content))
    return path


def plugin(folder: pathlib.Path, body: str, name: str = "plugin") -> dict[str, object]:
    """Write an exec plugin; return the user that has it run."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), "args": ["token"]}}


def credential(**status: object) -> str:
    """Write a plugin's program that answers with this status."""
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"print({json.dumps(json.dumps(answer))})"


def ask(*paths: pathlib.Path, context: str = "") -> loading.Answer:
    """Load from these files, in this process."""
    return asyncio.run(loading.answer(loading.Request(paths=tuple(map(str, paths)), context=context)))


def line(answer: loading.Answer) -> str:
    """The mistake as a user reads it, without folders."""
    assert answer.credentials is None
    place = (part if os.sep not in part else pathlib.Path(part).name for part in answer.place)
    return str(errors.InputError(*place, problem=answer.problem, remedy=answer.remedy))


# ------------------------------------------------------------------------------------------ where


def test_a_named_kubeconfig_comes_first(tmp_path: pathlib.Path) -> None:
    """Whatever the environment says."""
    path = kubeconfig(tmp_path)
    environment = {"KUBECONFIG": "/elsewhere", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}

    found = config.find(kubeconfig=str(path), context="two", environ=environment)

    assert loading.Request(paths=(str(path),), context="two") == found


def test_the_environment_may_name_several_files() -> None:
    """As for kubectl."""
    found = config.find(kubeconfig="", context="", environ={"KUBECONFIG": f"/a{os.pathsep}{os.pathsep}/b"})

    assert ("/a", "/b") == found.paths


def test_inside_a_pod_the_service_account_counts(tmp_path: pathlib.Path) -> None:
    """Only there are both the address and the token."""
    (tmp_path / "token").write_text("t")
    inside = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}

    found = config.find(kubeconfig="", context="", environ=inside, service_account=str(tmp_path))
    without = config.find(kubeconfig="", context="", environ=inside, service_account=str(tmp_path / "no"))

    assert () == found.paths
    assert (str(pathlib.Path("~/.kube/config").expanduser()),) == without.paths


def test_a_named_file_must_exist(tmp_path: pathlib.Path) -> None:
    """Nobody wants another cluster instead."""
    with pytest.raises(errors.InputError, match="no such file"):
        config.find(kubeconfig=str(tmp_path / "no"), context="", environ={})


def test_a_pod_has_no_contexts(tmp_path: pathlib.Path) -> None:
    """Ignoring the wish would be wrong."""
    (tmp_path / "token").write_text("t")

    with pytest.raises(errors.InputError, match='no context "two"'):
        config.find(
            kubeconfig="",
            context="two",
            environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            service_account=str(tmp_path),
        )


# --------------------------------------------------------------------------------------- ways in


def test_a_token_in_the_file_becomes_the_header(tmp_path: pathlib.Path) -> None:
    """The simplest way."""
    found = ask(kubeconfig(tmp_path, user={"token": "t0ken"})).credentials

    assert found is not None
    assert ("https://one.example:6443", "Bearer t0ken", "") == (found.server, found.authorization, found.token_file)
    assert f'{tmp_path / "config"}: context "one"' == found.origin


def test_certificates_come_as_data_or_as_files_beside_the_kubeconfig(tmp_path: pathlib.Path) -> None:
    """Relative paths are relative to the file that names them."""
    authority = certificates.Authority(tmp_path)
    pair = authority.client("me")
    files = {"client-certificate": pair.certificate.name, "client-key": pair.key.name}
    data = {f"{field}-data": base64.b64encode((tmp_path / name).read_bytes()).decode() for field, name in files.items()}

    by_file = ask(kubeconfig(tmp_path, user=files, cluster={"certificate-authority": "ca.crt"})).credentials
    by_data = ask(kubeconfig(tmp_path, user=data, cluster={"certificate-authority": "ca.crt"})).credentials

    assert by_file == by_data
    assert by_file is not None
    assert (pair.certificate.read_text(), pair.key.read_text()) == (by_file.certificate, by_file.key)
    assert authority.certificate.read_text() == by_file.authority


def test_a_token_file_is_read_and_remembered(tmp_path: pathlib.Path) -> None:
    """Without the newline that editors put at its end, and rather than a token beside it."""
    (tmp_path / "token").write_text("fresh\n")

    found = ask(kubeconfig(tmp_path, user={"tokenFile": "token", "token": "stale"})).credentials

    assert found is not None
    assert ("Bearer fresh", str(tmp_path / "token")) == (found.authorization, found.token_file)


def test_name_and_password_become_the_header(tmp_path: pathlib.Path) -> None:
    """Basic authentication, as some proxies want it."""
    found = ask(kubeconfig(tmp_path, user={"username": "a", "password": "b"})).credentials

    assert found is not None
    assert "Basic YTpi" == found.authorization


def test_settings_of_the_cluster_come_along(tmp_path: pathlib.Path) -> None:
    """Server name, proxy, and whether to look at certificates at all."""
    settings = {"tls-server-name": "api", "proxy-url": "http://proxy:3128", "insecure-skip-tls-verify": True}

    found = ask(kubeconfig(tmp_path, cluster=settings)).credentials

    assert found is not None
    assert ("api", "http://proxy:3128", False) == (found.server_name, found.proxy, found.verify)


def test_a_context_without_a_user_is_nobody(tmp_path: pathlib.Path) -> None:
    """A server may ask for nothing."""
    path = kubeconfig(tmp_path)
    content = yaml.safe_load(path.read_text())
    del content["contexts"][0]["context"]["user"]
    path.write_text(yaml.safe_dump(content))

    found = ask(path).credentials

    assert found is not None
    assert "" == found.authorization


def test_of_several_files_the_first_definition_wins(tmp_path: pathlib.Path) -> None:
    """Contexts of all files are there; the first that names a current one decides."""
    first = kubeconfig(tmp_path, user={"token": "first"}, file="first")
    second = kubeconfig(tmp_path, user={"token": "second"}, name="two", file="second")
    again = kubeconfig(tmp_path, user={"token": "again"}, file="again")

    current = ask(tmp_path / "missing", first, second, again).credentials
    named = ask(first, second, again, context="two").credentials

    assert current is not None
    assert named is not None
    assert ("Bearer first", "Bearer second") == (current.authorization, named.authorization)


def test_an_exec_plugin_hands_out_a_token_with_its_expiry(tmp_path: pathlib.Path) -> None:
    """And its environment says which version is spoken."""
    body = credential(token="from-plugin", expirationTimestamp="2027-01-15T08:00:00Z")

    found = ask(kubeconfig(tmp_path, user=plugin(tmp_path, body))).credentials

    assert found is not None
    assert ("Bearer from-plugin", 1_800_000_000.0) == (found.authorization, found.expires)


def test_an_exec_plugin_may_stand_beside_the_file_that_names_it(tmp_path: pathlib.Path) -> None:
    """A path with a slash is relative to the kubeconfig."""
    user = plugin(tmp_path, credential(token="beside"))
    user["exec"]["command"] = "./plugin"  # type: ignore[index]

    found = ask(kubeconfig(tmp_path, user=user)).credentials

    assert found is not None
    assert "Bearer beside" == found.authorization


def test_an_exec_plugin_may_hand_out_a_certificate(tmp_path: pathlib.Path) -> None:
    """Instead of a token."""
    body = credential(clientCertificateData="CERT", clientKeyData="KEY")

    found = ask(kubeconfig(tmp_path, user=plugin(tmp_path, body))).credentials

    assert found is not None
    assert ("CERT", "KEY") == (found.certificate, found.key)


def test_a_service_account_is_address_token_and_authority(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every pod has it."""
    (tmp_path / "token").write_text("t0ken\n")
    (tmp_path / "ca.crt").write_text("CA")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")

    found = asyncio.run(loading.answer(loading.Request(service_account=str(tmp_path)))).credentials

    assert found is not None
    assert ("https://[fd00::1]:443", "Bearer t0ken", "CA") == (found.server, found.authorization, found.authority)
    assert str(tmp_path / "token") == found.token_file


# -------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "config: not a kubeconfig (it has clusters, users and contexts)"),
        ("- 1", "config: not a kubeconfig (it has clusters, users and contexts)"),
        ("a: [1\nb: 2", "config: line 2: not valid YAML: expected ',' or ']', but got ':'"),
        ("a: *hunter2", "config: line 1: not valid YAML: found undefined alias"),
        ("a: !hunter2 b", "config: line 1: not valid YAML: could not determine a constructor for the tag"),
        ("\x00", "config: not valid YAML: unacceptable character #x0000: special characters are not allowed"),
        ("clusters: 3", "config: clusters: not a list of entries with names"),
        ("contexts: []", "config: no context is chosen (name one with --context; there are: none)"),
        ("current-context: x", 'config: there is no context "x" (there are: none)'),
    ],
)
def test_a_file_that_is_none_is_told_in_one_line(tmp_path: pathlib.Path, text: str, told: str) -> None:
    """With the line number where there is one."""
    path = tmp_path / "config"
    path.write_text(text)

    assert told == line(ask(path))


@pytest.mark.parametrize(
    ("user", "cluster", "told"),
    [
        ({}, {"server": ""}, 'config: cluster "one": server: is missing'),
        (
            {},
            {"server": "https://me:hunter2@one:6443"},
            (
                'config: cluster "one": server: it holds a user\'s name or password '
                "(leave them out of the URL; they belong to a user of the kubeconfig)"
            ),
        ),
        ({}, {"server": "one:6443"}, 'config: cluster "one": server: "one:6443" is no http or https URL'),
        (
            {},
            {"certificate-authority": "gone.crt"},
            'config: cluster "one": certificate-authority: no such file: gone.crt',
        ),
        (
            {"client-key-data": "%%%"},
            {},
            'config: user "one": client-key-data: not valid base64 (or use client-key with a file\'s path)',
        ),
        ({"client-certificate": "no.crt"}, {}, 'config: user "one": client-certificate: no such file: no.crt'),
        ({"tokenFile": "no"}, {}, 'config: user "one": no: the token can not be read: No such file or directory'),
        (
            {"as": "admin"},
            {},
            'config: user "one": as: impersonation is not supported (use credentials of that user)',
        ),
        (
            {"auth-provider": {"name": "azure"}},
            {},
            'config: user "one": auth-provider: "azure" is not supported (use an exec plugin)',
        ),
        (
            {"exec": {"apiVersion": "v1", "command": "no-such-plugin", "installHint": "get it\nthere"}},
            {},
            'config: user "one": exec: no such program: no-such-plugin (get it)',
        ),
        (
            {"exec": {"command": "x"}},
            {},
            "config: user \"one\": exec: malformed request. missing key 'apiVersion'",
        ),
    ],
)
def test_a_mistake_names_file_entry_and_field(
    tmp_path: pathlib.Path, user: dict[str, object], cluster: dict[str, object], told: str
) -> None:
    """So that nobody has to search."""
    assert told == line(ask(kubeconfig(tmp_path, user=user, cluster=cluster)))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("import sys; sys.exit('expired: log in again')", "process returned 1. expired: log in again"),
        ("print('hello')", "failed to decode process output: Expecting value: line 1 column 1 (char 0)"),
        ("import sys; sys.exit('x' * 900)", f"process returned 1. {'x' * 480}"),
        ("print('{}')", "malformed response. missing key 'apiVersion'"),
    ],
)
def test_a_plugin_that_fails_is_quoted(tmp_path: pathlib.Path, body: str, told: str) -> None:
    """What it said is what helps."""
    answer = ask(kubeconfig(tmp_path, user=plugin(tmp_path, body)))

    assert f'config: user "one": exec: {told}' == line(answer)


def test_a_plugin_that_hands_out_nothing_does_not_make_us_nobody(tmp_path: pathlib.Path) -> None:
    """The server would take us for an anonymous user, and say that rights are missing."""
    answer = ask(kubeconfig(tmp_path, user=plugin(tmp_path, credential())))

    assert 'config: user "one": exec: handed out neither a token nor a certificate (log in with it)' == line(answer)


def test_an_unknown_context_lists_those_there_are(tmp_path: pathlib.Path) -> None:
    """Most often it is a typing slip."""
    first, second = kubeconfig(tmp_path, file="a"), kubeconfig(tmp_path, name="two", file="b")

    assert 'a: there is no context "tow" (there are: one, two)' == line(ask(first, second, context="tow"))


def test_a_context_that_names_what_is_not_there_is_told(tmp_path: pathlib.Path) -> None:
    """Cluster and user are looked up by name."""
    path = kubeconfig(tmp_path)
    content = yaml.safe_load(path.read_text())
    content["contexts"][0]["context"]["cluster"] = "gone"
    path.write_text(yaml.safe_dump(content))

    assert 'config: context "one": there is no cluster "gone" (there are: one)' == line(ask(path))


def test_a_service_account_that_is_not_there_is_told(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a pod, or one without a token."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")

    answer = asyncio.run(loading.answer(loading.Request(service_account=str(tmp_path))))

    assert "Service token file does not exist" == answer.problem


# ----------------------------------------------------------------------------------- the process


def test_loading_runs_in_a_process_of_its_own(tmp_path: pathlib.Path) -> None:
    """And its answer comes back whole."""
    request = loading.Request(paths=(str(kubeconfig(tmp_path, user={"token": "t0ken"})),))

    found = asyncio.run(config.load(request))

    assert "Bearer t0ken" == found.authorization


def test_a_mistake_comes_back_from_the_process_as_an_error(tmp_path: pathlib.Path) -> None:
    """Place and problem survive the border."""
    request = loading.Request(paths=(str(tmp_path / "gone"),))

    with pytest.raises(errors.InputError, match=r"gone: no such file \(name a kubeconfig"):
        asyncio.run(config.load(request))


def ends(pid: int) -> bool:
    """Whether the process has ended, or does so within ten seconds."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 10)[0])
    finally:
        os.close(descriptor)


def test_a_plugin_that_hangs_is_ended_with_its_children(tmp_path: pathlib.Path) -> None:
    """Its deadline passes, and nothing of it is left."""
    pid_file = tmp_path / "pid"
    body = f"import os, signal; open({str(pid_file)!r}, 'w').write(str(os.getpid())); signal.pause()"
    request = loading.Request(paths=(str(kubeconfig(tmp_path, user=plugin(tmp_path, body))),))

    with pytest.raises(errors.InputError, match="no credentials within 3 s"):
        asyncio.run(config.load(request, deadline_s=3))

    assert ends(int(pid_file.read_text()))


def test_a_machine_that_starts_no_process_is_told_of_in_one_line(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of memory for a moment: what there is stays in use, as after any other mistake."""

    async def refused(*_arguments: object, **_options: object) -> object:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)
    path = str(kubeconfig(tmp_path))

    with pytest.raises(errors.InputError) as caught:
        asyncio.run(config.load(loading.Request(paths=(path,))))

    assert f"{path}: no process could be started to read it: resource temporarily unavailable" == str(caught.value)


def test_the_client_library_stays_out_of_the_scheduler() -> None:
    """It would keep 40 MB for good."""
    program = (
        "import sys\n"
        "from graphsched.base.kube import client, config, credentials, lists, loading\n"
        "from graphsched.sources import resources\n"
        "sys.exit('kubernetes_asyncio' in sys.modules)"
    )

    assert 0 == subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode
