"""A certificate authority of our own and the certificate that webhooks are served with; made and renewed without anybody's help."""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS, SERVING_DAYS = 3650, 90
RENEWED_AFTER = 2 / 3
"""Of its time a certificate is used before the next one is made."""
SKEW = datetime.timedelta(hours=1)
"""So much may the clocks of API server and webhook differ."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """In PEM: the authority with its key, and what it signed for the names of the webhook's server with its key."""

    authority: bytes
    authority_key: bytes
    serving: bytes
    serving_key: bytes

    def is_fresh(self, now: datetime.datetime, names: Sequence[str]) -> bool:
        """Whether the serving certificate is good for ``names`` and for long enough."""
        try:
            found = x509.load_pem_x509_certificate(self.serving)
            san = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (ValueError, x509.ExtensionNotFound):
            return False
        known = {*san.get_values_for_type(x509.DNSName), *map(str, san.get_values_for_type(x509.IPAddress))}
        begin, end = found.not_valid_before_utc, found.not_valid_after_utc
        return known >= set(names) and now < begin + (end - begin) * RENEWED_AFTER


def make(names: Sequence[str], now: datetime.datetime, known: Certificates | None = None) -> Certificates:
    """Certificates for a server that is reached by ``names`` (DNS names or addresses).

    The authority of ``known`` goes on: those who trust it need not be told of the new serving certificate.
    """
    if known is None:
        authority_key = ec.generate_private_key(ec.SECP256R1())
        authority = _authority(authority_key, now)
    else:
        loaded = serialization.load_pem_private_key(known.authority_key, password=None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            raise ValueError("the key of the certificate authority is not one that Tidegate makes")
        authority_key, authority = loaded, x509.load_pem_x509_certificate(known.authority)
    key = ec.generate_private_key(ec.SECP256R1())
    serving = (
        _builder("tidegate-admission", authority.subject, now, SERVING_DAYS)
        .public_key(key.public_key())
        .add_extension(x509.SubjectAlternativeName([_name(name) for name in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return Certificates(_pem(authority), _key_pem(authority_key), _pem(serving), _key_pem(key))


def _authority(key: ec.EllipticCurvePrivateKey, now: datetime.datetime) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tidegate-admission-ca")])
    return (
        _builder("tidegate-admission-ca", name, now, AUTHORITY_DAYS)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )


def _builder(name: str, issuer: x509.Name, now: datetime.datetime, days: int) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, plain)
