"""
A whole Kubernetes control plane on loopback, started in seconds and gone without a trace.

Comes in: `Options`. Goes out: a `Cluster` with its address, its kubeconfig files and the means to kill and restart
what a test wants to see fail. `api.py` is the client that tests speak to it with.

Invariants: the ports and the data of a cluster stay the same from `start()` to `stop()`, whatever is killed in
between; nothing listens but on 127.0.0.1; every wait has a deadline, and a process that died is named with the end of
its log.
"""

import dataclasses
import http.client
import json
import os
import pathlib
import shutil
import ssl
import tempfile
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from tests.controlplane import binaries, certificates, processes

ADMIN = "admin"
_ADMIN_GROUP = "system:masters"

START_S = 60.0
_REQUEST_S = 30.0

#: Without these a node stays tainted until a controller lifts the taint, and a pod waits for a service account.
_NEEDS_CONTROLLERS = ("ServiceAccount", "TaintNodesByCondition")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to run and how; the defaults suit most tests."""

    #: `AlwaysAllow` saves the cost of authorisation; `RBAC` is what clusters have.
    authorization: Literal["RBAC", "AlwaysAllow"] = "RBAC"
    #: Fair queueing costs time per request and slows a single busy client.
    priority_and_fairness: bool = False
    #: Fake kubelets for all nodes: nodes become Ready, bound pods Running, deleted pods vanish.
    kwok: bool = False
    scheduler: bool = False
    #: Changes to kube-scheduler's configuration, top level keys of KubeSchedulerConfiguration.
    scheduler_configuration: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    #: Brings the admission plugins that need controllers with it.
    controller_manager: bool = False
    apiserver_flags: tuple[str, ...] = ()


class RequestError(Exception):
    """The API server answered with an error; `status` is the HTTP status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:1000]}")
        self.status = status


class Cluster:
    """One control plane. A context manager: entering starts it, leaving stops it and removes its data."""

    def __init__(
        self,
        options: Options | None = None,
        *,
        programs: binaries.Binaries | None = None,
        logs: pathlib.Path | None = None,
    ) -> None:
        """
        Prepare, start nothing.

        Args:
            options: what to run.
            programs: the built programs; built first where not given, which may take minutes.
            logs: folder for the processes' logs, kept after `stop()`; by default they go with the data.
        """
        self.options = options or Options()
        self._programs = programs
        self._logs = logs
        self._folder: pathlib.Path | None = None
        self._processes: dict[str, processes.Process] = {}
        self._ports: dict[str, int] = {}
        self._authority: certificates.Authority | None = None
        self._ssl: ssl.SSLContext | None = None

    # ------------------------------------------------------------------ start and stop

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything that the options name and wait until it answers."""
        if self._folder is not None:
            raise RuntimeError("this cluster has been started before")
        self._programs = self._programs or binaries.ensure()
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="graphsched-cluster-", dir=_fast_folder()))
        try:
            if self._logs is None:
                self._logs = self._folder / "logs"
            self._logs.mkdir(parents=True, exist_ok=True)
            names = ("etcd", "etcd-peer", "apiserver", "scheduler", "controller-manager")
            self._ports = dict(zip(names, processes.free_ports(len(names)), strict=True))
            self._write_certificates()
            self.start_etcd()
            self.start_apiserver()
            if self.options.controller_manager:
                self._start_controller_manager()
            if self.options.kwok:
                self.start_kwok()
            if self.options.scheduler:
                self.start_scheduler()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all processes, the last started first, and remove the data; a second call does nothing."""
        while self._processes:
            _, process = self._processes.popitem()
            # Nothing is kept, so nothing needs an orderly end.
            process.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def process(self, name: str) -> processes.Process:
        """The running process `etcd`, `apiserver`, `kwok`, `scheduler` or `controller-manager`."""
        return self._processes[name]

    def adopt(self, process: processes.Process) -> None:
        """A further process of this cluster's, which ends with it."""
        self._processes[process.name] = process

    def require_alive(self) -> None:
        """Raise `processes.ProcessDiedError` if a process has ended that should be running."""
        for process in self._processes.values():
            process.require_alive()

    # -------------------------------------------------------------------- who and where

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self._ports['apiserver']}"

    @property
    def kubeconfig(self) -> pathlib.Path:
        """A kubeconfig file with all rights."""
        return self.folder / f"{ADMIN}.kubeconfig"

    @property
    def authority(self) -> pathlib.Path:
        """The PEM certificate that the API server's certificate is signed with."""
        return self._signer.certificate

    @property
    def ssl(self) -> ssl.SSLContext:
        """TLS with all rights, for clients that read no kubeconfig."""
        if self._ssl is None:
            raise RuntimeError("this cluster is not running")
        return self._ssl

    @property
    def folder(self) -> pathlib.Path:
        """Where certificates, kubeconfig files and data are."""
        if self._folder is None:
            raise RuntimeError("this cluster is not running")
        return self._folder

    @property
    def logs(self) -> pathlib.Path:
        """Where the processes' logs are, one file each; others may add theirs."""
        if self._logs is None:
            raise RuntimeError("this cluster is not running")
        return self._logs

    def kubeconfig_for(self, user: str, *, groups: tuple[str, ...] = ()) -> pathlib.Path:
        """A kubeconfig file with a client certificate for `user`, who has the rights that RBAC gives."""
        return self._kubeconfig(user, client=self._signer.client(user, groups=groups))

    def kubeconfig_with_token(self, name: str, token: str) -> pathlib.Path:
        """A kubeconfig file with a bearer token; `name` is only part of the file's name."""
        return self._kubeconfig(name, token=token)

    def service_account_token(self, namespace: str, name: str, *, expiration_s: int = 3600) -> str:
        """Make the service account where it is missing and return a signed token (at least 600 s)."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        try:
            self.call("POST", path, {"metadata": {"name": name}})
        except RequestError as error:
            if error.status != http.HTTPStatus.CONFLICT:
                raise
        body = {"spec": {"expirationSeconds": expiration_s}}
        answer = self.call("POST", f"{path}/{name}/token", body)
        return str(answer["status"]["token"])

    def call(self, method: str, path: str, body: object = None, *, timeout_s: float = _REQUEST_S) -> Any:
        """One request with all rights; the decoded answer. For set-up: many at once go through `api.Api`."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1",
            self._ports["apiserver"],
            timeout=timeout_s,
            context=self.ssl,
        )
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise RequestError(answer.status, text)
        return json.loads(text) if text.startswith("{") else text

    # ------------------------------------------------------------------------- processes

    def start_apiserver(self) -> None:
        """Start the API server, on the same port and data as before, and wait until it is ready."""
        process = self._start("apiserver", self._built.apiserver, *self._apiserver_flags())
        self._wait(lambda: self._answers("/readyz"), what="the API server is ready", of=process)
        self._wait(lambda: self._answers("/api/v1/namespaces/default"), what="its first objects exist", of=process)

    def kill_apiserver(self) -> None:
        """End the API server at once (SIGKILL); `start_apiserver` brings it back."""
        self._end("apiserver")

    def start_etcd(self) -> None:
        """Start etcd, on the same port and data as before, and wait until it is healthy."""
        client, peer = (f"http://127.0.0.1:{self._ports[name]}" for name in ("etcd", "etcd-peer"))
        process = self._start(
            "etcd",
            self._built.etcd,
            f"--data-dir={self._data}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            # The data need not survive a power cut.
            "--unsafe-no-fsync",
            f"--quota-backend-bytes={8 << 30}",
            "--log-level=warn",
        )
        self._wait(lambda: _healthy(self._ports["etcd"]), what="etcd is healthy", of=process)

    def kill_etcd(self) -> None:
        """End etcd at once (SIGKILL), under a running API server; `start_etcd` brings it back."""
        self._end("etcd")

    def save(self, name: str = "backup") -> pathlib.Path:
        """
        Copy the whole database as it is now, for `rollback`; nobody notices but for a pause of some milliseconds.

        etcd is paused and its files are copied, so that the copy is what a crash at this moment would have left.
        """
        copy = self.folder / f"etcd-{name}"
        etcd = self.process("etcd")
        etcd.pause()
        try:
            shutil.copytree(self._data, copy)
        finally:
            etcd.resume()
        return copy

    def rollback(self, saved: pathlib.Path) -> None:
        """
        Go on with an older database, as after a restored backup: resourceVersions go backwards, and what was written
        since has never happened. etcd and the API server are killed (SIGKILL) and started; others go on. A saved
        database may be gone back to more than once.
        """
        for name in ("apiserver", "etcd"):
            if name in self._processes:
                self._end(name)
        shutil.rmtree(self._data)
        shutil.copytree(saved, self._data)
        self.start_etcd()
        self.start_apiserver()

    def start_kwok(self) -> None:
        """Start the fake kubelets."""
        process = self._start(
            "kwok",
            self._built.kwok,
            f"--kubeconfig={self.kubeconfig}",
            f"--config={self._built.kwok_stages}",
            "--manage-all-nodes=true",
            # No leases: thousands of nodes renewing them would be most of the load, and nobody looks at them here.
            "--node-lease-duration-seconds=0",
        )
        process.require_alive()

    def stop_kwok(self) -> None:
        """End the fake kubelets: what is bound from now on stays Pending."""
        self._end("kwok")

    def start_scheduler(self) -> None:
        """Start kube-scheduler and wait until it has read the cluster."""
        port = self._ports["scheduler"]
        process = self._start("scheduler", *self.scheduler_command(port=port))
        self._wait(lambda: _ready_over_tls(port), what="kube-scheduler is ready", of=process)

    def scheduler_command(self, *, port: int, user: str = "system:kube-scheduler") -> list[str | os.PathLike[str]]:
        """The command line of a kube-scheduler on this cluster that serves health and metrics on `port`."""
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            # The default of 50 requests a second would be all that a benchmark sees.
            "clientConnection": {"kubeconfig": str(self.kubeconfig_for(user)), "qps": 5000, "burst": 5000},
            "leaderElection": {"leaderElect": False},
            **self.options.scheduler_configuration,
        }
        path = self.folder / f"scheduler-{port}.yaml"
        path.write_text(json.dumps(configuration))
        return [
            self._built.scheduler,
            f"--config={path}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.folder / 'scheduler-certificates'}",
            # Nobody but the test can reach it.
            "--authorization-always-allow-paths=*",
        ]

    def stop_scheduler(self) -> None:
        """End kube-scheduler."""
        self._end("scheduler")

    # --------------------------------------------------------------------------- details

    @property
    def _data(self) -> pathlib.Path:
        return self.folder / "etcd"

    @property
    def _built(self) -> binaries.Binaries:
        if self._programs is None:
            raise RuntimeError("this cluster is not running")
        return self._programs

    @property
    def _signer(self) -> certificates.Authority:
        if self._authority is None:
            raise RuntimeError("this cluster is not running")
        return self._authority

    def _kubeconfig(
        self,
        name: str,
        *,
        client: certificates.KeyPair | None = None,
        token: str | None = None,
    ) -> pathlib.Path:
        return certificates.write_kubeconfig(
            self.folder / f"{certificates.file_name(name)}.kubeconfig",
            server=self.server,
            authority=self.authority,
            client=client,
            token=token,
        )

    def _write_certificates(self) -> None:
        folder = self.folder / "certificates"
        folder.mkdir()
        self._authority = certificates.Authority(folder)
        self._authority.serving("apiserver")
        certificates.service_account_key(folder)
        admin = self._authority.client(ADMIN, groups=(_ADMIN_GROUP,))
        self._kubeconfig(ADMIN, client=admin)
        self._ssl = ssl.create_default_context(cafile=str(self.authority))
        self._ssl.load_cert_chain(admin.certificate, admin.key)

    def _apiserver_flags(self) -> list[str]:
        folder = self.folder / "certificates"
        flags = [
            f"--etcd-servers=http://127.0.0.1:{self._ports['etcd']}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            # A loopback address is refused as the endpoint of the service `kubernetes`; no test needs that service.
            "--endpoint-reconciler-type=none",
            f"--secure-port={self._ports['apiserver']}",
            f"--tls-cert-file={folder / 'apiserver.crt'}",
            f"--tls-private-key-file={folder / 'apiserver.key'}",
            f"--client-ca-file={self.authority}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder / 'service-account.key'}",
            f"--service-account-signing-key-file={folder / 'service-account.key'}",
            "--service-cluster-ip-range=10.0.0.0/16",
            f"--authorization-mode={self.options.authorization}",
            f"--enable-priority-and-fairness={str(self.options.priority_and_fairness).lower()}",
            # Far above what a benchmark has under way at once, so that none of it is turned away.
            "--max-requests-inflight=4000",
            "--max-mutating-requests-inflight=2000",
            "--allow-privileged=true",
            "--profiling=false",
        ]
        if not self.options.controller_manager:
            flags.append(f"--disable-admission-plugins={','.join(_NEEDS_CONTROLLERS)}")
        return [*flags, *self.options.apiserver_flags]

    def _start_controller_manager(self) -> None:
        port = self._ports["controller-manager"]
        folder = self.folder / "certificates"
        process = self._start(
            "controller-manager",
            self._built.controller_manager,
            f"--kubeconfig={self.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.folder / 'controller-manager-certificates'}",
            "--authorization-always-allow-paths=*",
            "--leader-elect=false",
            f"--service-account-private-key-file={folder / 'service-account.key'}",
            f"--root-ca-file={self.authority}",
            "--use-service-account-credentials=false",
            "--kube-api-qps=500",
            "--kube-api-burst=500",
            # The fake kubelets renew no leases; a node is dead when a test says so.
            "--node-monitor-grace-period=24h",
        )
        self._wait(lambda: _ready_over_tls(port, "/healthz"), what="kube-controller-manager is healthy", of=process)
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait(lambda: self._answers(path), what="the service account controller works", of=process)

    def _start(self, name: str, *command: str | os.PathLike[str]) -> processes.Process:
        if name in self._processes:
            raise RuntimeError(f"{name} is running already")
        process = processes.Process(name, command, log=self.logs / f"{name}.log")
        self._processes[name] = process
        return process

    def _end(self, name: str) -> None:
        self._processes.pop(name).kill()

    def _wait(self, happened: Callable[[], bool], *, what: str, of: processes.Process) -> None:
        processes.wait_until(happened, what=what, timeout_s=START_S, watched=(of,))

    def _answers(self, path: str) -> bool:
        try:
            self.call("GET", path, timeout_s=5)
        except (OSError, http.client.HTTPException, RequestError):
            return False
        return True


def _fast_folder() -> str | None:
    """Memory where there is some to spare, else the usual temporary folder."""
    memory = pathlib.Path("/dev/shm")
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 << 30:
        return str(memory)
    return None


def _healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    return _is_ok(connection, "/health")


def _ready_over_tls(port: int, path: str = "/readyz") -> bool:
    # The component signs its own certificate; what matters is only that it answers.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return _is_ok(http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context), path)


def _is_ok(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
