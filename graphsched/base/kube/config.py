"""Where the cluster is, and who we are to it.

Comes in: what the user named and the environment. Goes out: `Credentials`, through the program in `loading`, which
has the client library all to itself. `credentials.Keeper` calls `load` again when they run out.

Which place counts: a kubeconfig that was named, else $KUBECONFIG (several files, the first definition of a thing wins),
else the service account inside a pod, else ~/.kube/config.

Invariant: a plugin that hangs is ended with all it started; its silence is an `InputError` like any other.
"""

from __future__ import annotations

import asyncio
import os
import pathlib
import signal
import sys
from collections.abc import Mapping

import msgspec

from graphsched.base.kube import credentials, loading
from graphsched.base.values import errors

LOAD_S = 45.0
"""An exec plugin may ask an identity provider far away; a person would have given up by then."""

_DEFAULT_PATH = "~/.kube/config"


def find(
    *,
    kubeconfig: str,
    context: str,
    environ: Mapping[str, str],
    service_account: str = loading.Request().service_account,
) -> loading.Request:
    """What to load, from what the user named (empty where nothing) and the environment.

    Raises:
        InputError: The named kubeconfig does not exist; a context was named, but there are no contexts in a pod.
    """
    paths: tuple[str, ...]
    if kubeconfig:
        paths = (_expanded(kubeconfig),)
        if not pathlib.Path(paths[0]).exists():
            raise errors.InputError(kubeconfig, problem="no such file", remedy="--kubeconfig names a file")
    elif environ.get("KUBECONFIG"):
        paths = tuple(_expanded(path) for path in environ["KUBECONFIG"].split(os.pathsep) if path)
    elif environ.get("KUBERNETES_SERVICE_HOST") and (pathlib.Path(service_account) / "token").exists():
        paths = ()
    else:
        paths = (_expanded(_DEFAULT_PATH),)
    if context and not paths:
        raise errors.InputError(
            service_account, problem=f'it has no context "{context}"', remedy="name a kubeconfig as well"
        )
    return loading.Request(paths=paths, context=context, service_account=service_account)


async def load(request: loading.Request, *, deadline_s: float = LOAD_S) -> credentials.Credentials:
    """The credentials that `request` describes.

    Raises:
        InputError: They can not be had; the place names file, entry and field.
    """
    place = request.paths[:1] or (request.service_account,)
    try:
        # -P: the working directory is not searched for modules. The session of its own takes plugins along when it
        # ends.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            loading.__name__,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        problem = f"no process could be started to read it: {(error.strerror or str(error)).lower()}"
        raise errors.InputError(*place, problem=problem) from error
    try:
        async with asyncio.timeout(deadline_s):
            output, complaints = await process.communicate(msgspec.json.encode(request))
    except TimeoutError as error:
        raise errors.InputError(
            *place,
            problem=f"no credentials within {deadline_s:.0f} s",
            remedy="the exec plugin must answer without asking anybody at the terminal",
        ) from error
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    try:
        answer = msgspec.json.decode(output, type=loading.Answer)
    except msgspec.DecodeError as error:
        last = complaints.decode(errors="replace").strip().rpartition("\n")[2] or f"exit code {process.returncode}"
        raise errors.InputError(*place, problem=f"credentials could not be loaded: {last}") from error
    if answer.credentials is None:
        raise errors.InputError(*answer.place, problem=answer.problem, remedy=answer.remedy)
    return answer.credentials


def _expanded(path: str) -> str:
    return str(pathlib.Path(path).expanduser())
