"""What may be seen: policies, and access by them before anything is searched; redactors, placeholders, masks.

from research.governance import Placeholders, SafeRedactor, SecretMasker, known_secrets, open_redactor

redactor = SafeRedactor(lambda: open_redactor("pii"), seconds=5)
safe = redactor.redact_all(texts, Placeholders())   # None for each text that could not be made safe
index.acting_as(Principal("anna", "lab")).ask(...)   # of what anna may see, and nothing else is read
masker = SecretMasker(known_secrets(["STRIPE_KEY"]))
masker.mask(text)                                    # §§secret(STRIPE_KEY)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from research.errors import PolicyError, RedactionError
    from research.governance.access import MemoryAccessDecision, Principal, Resource, Ruling
    from research.governance.audit import Audit
    from research.governance.audit_chain import MemoryAccessAudit, Verification
    from research.governance.enforce import PolicyAccess
    from research.governance.findings import Finding, Placeholders
    from research.governance.labels import Labels
    from research.governance.masking import KnownSecrets, MaskingRedactor, MaskingStream, SecretMasker, known_secrets
    from research.governance.policy import MemoryAccessPolicy
    from research.governance.presidio import PresidioRedactor
    from research.governance.redaction import (
        BaseRedactor,
        NoopRedactor,
        Redacted,
        RedactorProtocol,
        SafeRedactor,
        open_redactor,
        redactor_of,
    )

_HOMES = {
    "Audit": "research.governance.audit",
    "BaseRedactor": "research.governance.redaction",
    "Finding": "research.governance.findings",
    "KnownSecrets": "research.governance.masking",
    "Labels": "research.governance.labels",
    "MaskingRedactor": "research.governance.masking",
    "MaskingStream": "research.governance.masking",
    "MemoryAccessAudit": "research.governance.audit_chain",
    "MemoryAccessDecision": "research.governance.access",
    "MemoryAccessPolicy": "research.governance.policy",
    "NoopRedactor": "research.governance.redaction",
    "Placeholders": "research.governance.findings",
    "PolicyAccess": "research.governance.enforce",
    "PolicyError": "research.errors",
    "PresidioRedactor": "research.governance.presidio",
    "Principal": "research.governance.access",
    "Redacted": "research.governance.redaction",
    "RedactionError": "research.errors",
    "RedactorProtocol": "research.governance.redaction",
    "Resource": "research.governance.access",
    "Ruling": "research.governance.access",
    "SafeRedactor": "research.governance.redaction",
    "SecretMasker": "research.governance.masking",
    "Verification": "research.governance.audit_chain",
    "known_secrets": "research.governance.masking",
    "open_redactor": "research.governance.redaction",
    "redactor_of": "research.governance.redaction",
}

__all__ = [
    "Audit",
    "BaseRedactor",
    "Finding",
    "KnownSecrets",
    "Labels",
    "MaskingRedactor",
    "MaskingStream",
    "MemoryAccessAudit",
    "MemoryAccessDecision",
    "MemoryAccessPolicy",
    "NoopRedactor",
    "Placeholders",
    "PolicyAccess",
    "PolicyError",
    "PresidioRedactor",
    "Principal",
    "Redacted",
    "RedactionError",
    "RedactorProtocol",
    "Resource",
    "Ruling",
    "SafeRedactor",
    "SecretMasker",
    "Verification",
    "known_secrets",
    "open_redactor",
    "redactor_of",
]


def __getattr__(name: str) -> Any:
    """Load a name's module with its first use, so that `import research.governance` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'research.governance' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
