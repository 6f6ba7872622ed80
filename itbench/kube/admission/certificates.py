"""Whether a server's certificate is to be trusted, in the words of Go's x509; called where webhooks are reached."""

from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature

UNKNOWN = "x509: certificate signed by unknown authority"


def distrust(chain: bytes, authority: bytes, host: str, now: datetime | None = None) -> str:
    """What is wrong with a certificate for a host; empty when nothing is.

    Args:
        chain: PEM of what the server shows, its own certificate first; empty where the world models no certificate: then only
            the absence of an authority is held against it.
        authority: PEM of the authorities that are trusted.
        now: wall time (certificates live in it).
    """
    if not authority:
        return UNKNOWN
    if not chain:
        return ""
    leaf, *middle = x509.load_pem_x509_certificates(chain)
    moment = now or datetime.now(UTC)
    if moment > leaf.not_valid_after_utc or moment < leaf.not_valid_before_utc:
        late = moment > leaf.not_valid_after_utc
        bound = leaf.not_valid_after_utc if late else leaf.not_valid_before_utc
        stamp = "%Y-%m-%dT%H:%M:%SZ"
        said = f"current time {moment.strftime(stamp)} is {'after' if late else 'before'} {bound.strftime(stamp)}"
        return f"x509: certificate has expired or is not yet valid: {said}"
    names = _names(leaf)
    if host not in names:
        if not names:
            return "x509: certificate relies on legacy Common Name field, use SANs instead"
        return f"x509: certificate is valid for {', '.join(names)}, not {host}"
    roots = x509.load_pem_x509_certificates(authority)
    return "" if _anchored(leaf, [*middle, *roots], roots) else UNKNOWN


def _names(leaf: x509.Certificate) -> list[str]:
    try:
        found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return found.get_values_for_type(x509.DNSName)


def _anchored(leaf: x509.Certificate, pool: list[x509.Certificate], roots: list[x509.Certificate]) -> bool:
    """Whether a chain of issuers leads to a root."""
    seen: list[x509.Certificate] = []
    current = leaf
    while current not in seen:
        if current in roots:
            return True
        seen.append(current)
        parent = next((row for row in pool if _issued(current, row)), None)
        if parent is None:
            return False
        current = parent
    return False


def _issued(child: x509.Certificate, parent: x509.Certificate) -> bool:
    try:
        child.verify_directly_issued_by(parent)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True
