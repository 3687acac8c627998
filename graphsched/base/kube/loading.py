"""Reads a kubeconfig or a service account, in a process of its own.

The client library knows every way to be let in (exec plugins, OpenID, files and data), but importing it costs 40 MB
that stay and a quarter of a second of processor time (measured; 74 MB and 0.4 s in an empty process). So `config`
starts this module as a program: a `Request` comes in on its standard input, an `Answer` goes out on its standard
output, and the memory goes with the process.

What the library reports badly, or as a bare TypeError, is checked here first, so that each mistake is told in one line
with file, entry and field.

Invariant: whatever is wrong with the files, the answer is an `Answer`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import pathlib
import re
import sys
import tempfile
import typing
from collections.abc import Iterator

import msgspec
import yaml

from graphsched.base.kube import credentials
from graphsched.base.values import errors

Mapping = dict[str, typing.Any]

_LISTS = ("clusters", "users", "contexts")
_FIELDS_WITH_DATA = {"clusters": ("certificate-authority",), "users": ("client-certificate", "client-key")}
_KNOWN_PROVIDERS = ("gcp", "oidc")
_ANONYMOUS = "graphsched:anonymous"
_QUOTED = re.compile(r"\b(alias|anchor|tag|handle) '.*'")
"""A token or password that begins with one of YAML's special letters is taken for one of these, and quoted."""
_COMPLAINT_LENGTH_MAX = 500
"""Of a plugin's own words: enough for what is wrong, not for all that it has written."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to load.

    Attributes:
        paths: kubeconfig files, the first of which wins where several define the same; empty for the service account.
        context: Name of the context; empty for the current one.
        service_account: Folder with `token` and `ca.crt`.
    """

    paths: tuple[str, ...] = ()
    context: str = ""
    service_account: str = "/var/run/secrets/kubernetes.io/serviceaccount"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Either credentials, or an `InputError` in its parts."""

    credentials: credentials.Credentials | None = None
    place: tuple[str, ...] = ()
    problem: str = ""
    remedy: str = ""


class _Files:
    """The kubeconfig files, checked as far as the library does not."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._read = {path: _read(path) for path in paths if pathlib.Path(path).exists()}
        if not self._read:
            raise errors.InputError(
                paths[0], problem="no such file", remedy="name a kubeconfig with --kubeconfig or $KUBECONFIG"
            )

    @property
    def paths(self) -> str:
        """As the library wants them."""
        return os.pathsep.join(self._read)

    def _entries(self, kind: str) -> Iterator[tuple[str, Mapping]]:
        for path, content in self._read.items():
            for entry in content.get(kind) or ():
                yield path, entry

    def names(self, kind: str) -> list[str]:
        """Names of all clusters, users or contexts."""
        return sorted({entry["name"] for _, entry in self._entries(kind)})

    def entry(self, kind: str, name: str, *, asker: tuple[str, ...]) -> tuple[str, Mapping]:
        """The file that defines the entry, and the entry's content."""
        singular = kind[:-1]
        for path, entry in self._entries(kind):
            if entry["name"] == name:
                content = entry.get(singular) or {}
                if not isinstance(content, dict):
                    raise errors.InputError(path, f'{singular} "{name}"', problem=f"{singular} is not a mapping")
                return path, content
        known = ", ".join(self.names(kind)) or "none"
        raise errors.InputError(*asker, problem=f'there is no {singular} "{name}"', remedy=f"there are: {known}")

    def current_context(self) -> str:
        """The first file that names one decides."""
        for content in self._read.values():
            if content.get("current-context"):
                return str(content["current-context"])
        known = ", ".join(self.names("contexts")) or "none"
        raise errors.InputError(
            next(iter(self._read)),
            problem="no context is chosen",
            remedy=f"name one with --context; there are: {known}",
        )


def _read(path: str) -> Mapping:
    try:
        content = yaml.safe_load(pathlib.Path(path).read_bytes())
    except OSError as error:
        raise errors.InputError(path, problem=f"can not be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = (path, f"line {mark.line + 1}") if mark is not None else (path,)
        reason = _QUOTED.sub(r"\1", getattr(error, "problem", None) or str(error).partition("\n")[0])
        raise errors.InputError(*place, problem=f"not valid YAML: {reason}") from error
    if not isinstance(content, dict):
        raise errors.InputError(path, problem="not a kubeconfig", remedy="it has clusters, users and contexts")
    for kind in _LISTS:
        entries = content.get(kind) or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) and entry.get("name") for entry in entries):
            raise errors.InputError(path, kind, problem="not a list of entries with names")
    return content


def _check_data(path: str, kind: str, name: str, content: Mapping) -> None:
    """Certificates and keys are there, and their data is base64."""
    place = (path, f'{kind[:-1]} "{name}"')
    for field in _FIELDS_WITH_DATA[kind]:
        data, file = content.get(f"{field}-data"), content.get(field)
        if data:
            try:
                base64.b64decode(str(data), validate=True)
            except (binascii.Error, ValueError) as error:
                raise errors.InputError(
                    *place, f"{field}-data", problem="not valid base64", remedy=f"or use {field} with a file's path"
                ) from error
        elif file and not pathlib.Path(_beside(path, file)).is_file():
            raise errors.InputError(*place, field, problem=f"no such file: {file}")


def _check_user(path: str, name: str, user: Mapping) -> None:
    _check_data(path, "users", name, user)
    place = (path, f'user "{name}"')
    if user.get("as") or user.get("as-groups") or user.get("as-uid"):
        raise errors.InputError(
            *place, "as", problem="impersonation is not supported", remedy="use credentials of that user"
        )
    provider = (user.get("auth-provider") or {}).get("name")
    if provider and provider not in _KNOWN_PROVIDERS:
        raise errors.InputError(
            *place, "auth-provider", problem=f'"{provider}" is not supported', remedy="use an exec plugin"
        )
    if user.get("tokenFile"):
        try:
            credentials.read_token(_beside(path, user["tokenFile"]))
        except errors.InputError as error:
            raise error.within(*place) from error
    plugin = user.get("exec")
    if isinstance(plugin, dict):
        command = str(plugin.get("command") or "")
        if os.sep in command and not pathlib.Path(command).is_absolute():
            # As kubectl does: a path is relative to the file, a bare name is looked up.
            plugin["command"] = _beside(path, command)


def _beside(path: str, name: object) -> str:
    """The path that a kubeconfig means: relative to its own folder."""
    return str(pathlib.Path(path).parent / str(name))


async def _from_kubeconfig(request: Request, scratch: str) -> credentials.Credentials:
    files = _Files(request.paths)
    context_name = request.context or files.current_context()
    path, context = files.entry("contexts", context_name, asker=(files.paths.partition(os.pathsep)[0],))
    place = (path, f'context "{context_name}"')
    cluster_name, user_name = str(context.get("cluster") or ""), str(context.get("user") or "")
    if not cluster_name:
        raise errors.InputError(*place, "cluster", problem="is missing")
    cluster_path, cluster = files.entry("clusters", cluster_name, asker=place)
    server = str(cluster.get("server") or "")
    if not server.startswith(("https://", "http://")):
        problem = f'"{server}" is no http or https URL' if server else "is missing"
        raise errors.InputError(cluster_path, f'cluster "{cluster_name}"', "server", problem=problem)
    if "@" in server.partition("//")[2].partition("/")[0]:
        # The address is written to logs.
        raise errors.InputError(
            cluster_path,
            f'cluster "{cluster_name}"',
            "server",
            problem="it holds a user's name or password",
            remedy="leave them out of the URL; they belong to a user of the kubeconfig",
        )
    _check_data(cluster_path, "clusters", cluster_name, cluster)
    user_path, user = files.entry("users", user_name, asker=place) if user_name else (path, {})
    _check_user(user_path, user_name, user)
    return await _through_library(
        files.paths,
        context_name,
        user=user,
        user_place=(user_path, f'user "{user_name}"'),
        origin=": ".join(place),
        scratch=scratch,
    )


async def _through_library(
    paths: str,
    context_name: str,
    *,
    user: Mapping,
    user_place: tuple[str, str],
    origin: str,
    scratch: str,
) -> credentials.Credentials:
    from kubernetes_asyncio import client, config
    from kubernetes_asyncio.config import kube_config

    settings = client.Configuration()
    try:
        merger = kube_config.KubeConfigMerger(paths)
        content: Mapping = merger.config.value if merger.config is not None else {}
        chosen = next(entry.value["context"] for entry in content["contexts"] if entry["name"] == context_name)
        if not chosen.get("user"):
            # The library fails on a context without a user, although a server may ask for none.
            chosen["user"] = _ANONYMOUS
            nobody = {"name": _ANONYMOUS, "user": {}}
            content["users"].append(kube_config.ConfigNode(_ANONYMOUS, nobody, user_place[0]))
        if "exec" in user:
            entries = (entry.value for entry in content["users"])
            next(entry for entry in entries if entry["name"] == chosen["user"])["user"]["exec"] = user["exec"]
        loader = kube_config.KubeConfigLoader(
            config_dict=merger.config,
            config_base_path=None,
            active_context=context_name,
            # The library calls it with an argument that its own method does not take.
            config_persister=lambda _: merger.save_changes(),
            temp_file_path=scratch,
        )
        await loader.load_and_set(settings)
    except FileNotFoundError as error:
        remedy = str((user.get("exec") or {}).get("installHint") or "install it, or put it on the PATH").strip()
        raise errors.InputError(
            *user_place, "exec", problem=f"no such program: {error.filename}", remedy=remedy.partition("\n")[0]
        ) from error
    except (config.ConfigException, OSError, ValueError, TypeError, AssertionError, KeyError) as error:
        text = " ".join(str(error).removeprefix("exec: ").split()) or type(error).__name__
        where = "exec" if "exec" in user else ""
        raise errors.InputError(*user_place, where, problem=text[:_COMPLAINT_LENGTH_MAX]) from error
    if "exec" in user and not settings.api_key.get("BearerToken") and not settings.cert_file:
        # The library goes on as nobody, whom the server then refuses everything, or worse, something.
        problem = "handed out neither a token nor a certificate"
        raise errors.InputError(*user_place, "exec", problem=problem, remedy="log in with it")
    token_file = _beside(user_place[0], user["tokenFile"]) if user.get("tokenFile") else ""
    expiry = getattr(loader, "exec_plugin_expiry", None)
    return _credentials(
        settings, origin=origin, token_file=token_file, expires=expiry.timestamp() if expiry is not None else None
    )


def _from_service_account(request: Request) -> credentials.Credentials:
    from kubernetes_asyncio import client, config
    from kubernetes_asyncio.config import incluster_config

    folder = pathlib.Path(request.service_account)
    settings = client.Configuration()
    try:
        incluster_config.InClusterConfigLoader(
            token_filename=str(folder / "token"), cert_filename=str(folder / "ca.crt"), try_refresh_token=False
        ).load_and_set(settings)
    except (config.ConfigException, OSError) as error:
        raise errors.InputError(
            str(folder),
            problem=str(error).removesuffix("."),
            remedy="run in a pod with a service account token, or name a kubeconfig",
        ) from error
    return _credentials(settings, origin=str(folder), token_file=str(folder / "token"), expires=None)


def _credentials(
    settings: typing.Any, *, origin: str, token_file: str, expires: float | None
) -> credentials.Credentials:
    def content(path: str | None) -> str:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace") if path else ""

    authorization = str(settings.api_key.get("BearerToken") or "").strip()
    return credentials.Credentials(
        origin=origin,
        server=settings.host.rstrip("/"),
        authority=content(settings.ssl_ca_cert),
        certificate=content(settings.cert_file),
        key=content(settings.key_file),
        authorization=credentials.read_token(token_file) if token_file else authorization,
        token_file=token_file,
        expires=expires,
        verify=bool(settings.verify_ssl),
        server_name=settings.tls_server_name or "",
        proxy=settings.proxy or "",
    )


async def answer(request: Request) -> Answer:
    """What the request asks for; every mistake becomes part of the answer."""
    try:
        # The library writes what it decoded to files. They go to memory where there is such a place.
        memory = "/dev/shm"  # noqa: S108  the folder in it gets a random name and is ours alone
        with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as scratch:
            loaded = await _from_kubeconfig(request, scratch) if request.paths else _from_service_account(request)
            return Answer(credentials=loaded)
    except errors.InputError as error:
        return Answer(place=error.place, problem=error.problem, remedy=error.remedy)


def main() -> None:
    """Serve one request."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(answer(request))))


if __name__ == "__main__":
    main()
