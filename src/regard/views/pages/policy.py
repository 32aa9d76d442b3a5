"""Content-Security-Policy of self-contained pages: only their own script and style may run."""

import base64
import hashlib

POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; "
    "media-src data:; base-uri 'none'; form-action 'none'"
)


def policy(script: str, style: str) -> str:
    """Return the policy of a page with this text in its script and style element."""
    return POLICY.format(script=_hash(script), style=_hash(style))


def _hash(text: str) -> str:
    """Return the SHA-256 hash of an inline element, as the policy expects it."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
