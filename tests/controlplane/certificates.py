"""Certificates and kubeconfig files for a control plane that lives for minutes.

The API server wants a certificate of its own, and whoever talks to it wants to
be somebody. In comes a folder; out go PEM files and kubeconfig files in it.
``cluster.py`` hands them to the processes. Invariant: everything is signed by one
authority made for this one cluster, so nothing here opens any other.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import ipaddress
import json
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: Longer than any run, shorter than anything worth stealing.
_VALID = dt.timedelta(days=2)


@dataclasses.dataclass(frozen=True, slots=True)
class KeyPair:
    """Paths of a PEM certificate and of its private key."""

    certificate: pathlib.Path
    key: pathlib.Path


class Authority:
    """A certificate authority whose files live in one folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Make the authority and write ``ca.crt`` into ``folder``, which must exist."""
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "graphsched-tests")])
        self._certificate = (
            _builder(subject=self._name, issuer=self._name, public_key=self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(_pem(self._certificate))

    def serving(self, name: str) -> KeyPair:
        """A server certificate for loopback."""
        names: list[x509.GeneralName] = [
            x509.DNSName("localhost"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        ]
        return self._issue(
            name,
            subject=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]),
            usage=ExtendedKeyUsageOID.SERVER_AUTH,
            alternatives=names,
        )

    def client(self, user: str, *, groups: tuple[str, ...] = ()) -> KeyPair:
        """A client certificate: the API server reads the user from CN and the groups from O."""
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        return self._issue(
            f"client-{file_name(user)}",
            subject=x509.Name(attributes),
            usage=ExtendedKeyUsageOID.CLIENT_AUTH,
            alternatives=[],
        )

    def _issue(
        self,
        name: str,
        *,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        alternatives: list[x509.GeneralName],
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject=subject, issuer=self._name, public_key=key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        pair = KeyPair(
            certificate=self._folder / f"{name}.crt",
            key=self._folder / f"{name}.key",
        )
        pair.certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        pair.key.write_bytes(_pem_of_key(key))
        pair.key.chmod(0o600)
        return pair


def service_account_key(folder: pathlib.Path) -> pathlib.Path:
    """Write the RSA key with which the API server signs and checks service account tokens."""
    path = folder / "service-account.key"
    path.write_bytes(_pem_of_key(rsa.generate_private_key(public_exponent=65537, key_size=2048)))
    path.chmod(0o600)
    return path


def write_kubeconfig(
    path: pathlib.Path,
    *,
    server: str,
    authority: pathlib.Path,
    client: KeyPair | None = None,
    token: str | None = None,
) -> pathlib.Path:
    """Write a kubeconfig (JSON, which is YAML) with everything embedded; return ``path``.

    Exactly one of ``client`` and ``token`` says who the reader will be.
    """
    if (client is None) == (token is None):
        raise ValueError("a kubeconfig needs either a client certificate or a token")
    user = {"token": token} if client is None else _embedded(client)
    cluster = {"server": server, "certificate-authority-data": _base64(authority)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": cluster}],
        "users": [{"name": "tests", "user": user}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
        "current-context": "tests",
    }
    path.write_text(json.dumps(document, indent=1))
    path.chmod(0o600)
    return path


def _embedded(client: KeyPair) -> dict[str, str]:
    return {
        "client-certificate-data": _base64(client.certificate),
        "client-key-data": _base64(client.key),
    }


def _base64(path: pathlib.Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def file_name(user: str) -> str:
    """``user`` as part of a file name: a service account's has colons, others may have slashes."""
    return "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in user)


def _builder(
    *, subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        # Clocks of a machine and its guests may differ by a little.
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + _VALID)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _pem_of_key(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
