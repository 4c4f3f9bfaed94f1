"""The certificates of the lab's API server."""

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID


def certificates(folder: Path, hosts: Sequence[str] = ()) -> None:
    """A certificate authority of our own, and the API server's certificate, for this machine and for ``hosts``."""
    now = datetime.datetime.now(datetime.UTC)
    authority_key, key = (rsa.generate_private_key(65537, 2048) for _ in range(2))

    def builder(name: str) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lab")]))
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=2))
        )

    authority = (
        builder("lab")
        .public_key(authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    names = [
        x509.IPAddress(ipaddress.ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
        for host in ("localhost", "127.0.0.1", *hosts)
    ]
    server = (
        builder("kube-apiserver")
        .public_key(key.public_key())
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    for name, certificate in (("ca.crt", authority), ("server.crt", server)):
        (folder / name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    (folder / "server.key").write_bytes(private)
