"""What may be seen: policies, and access by them before anything is searched; redactors, placeholders, masks.

from research.governance import Placeholders, SafeRedactor, SecretMasker, known_secrets, redactor_of

redactor = SafeRedactor(lambda: redactor_of(settings), seconds=5)
safe = redactor.redact_all(texts, Placeholders())   # None for each text that could not be made safe
index.acting_as(Principal("anna", "lab")).ask(...)   # of what anna may see, and nothing else is read
masker = SecretMasker(known_secrets(["STRIPE_KEY"]))
masker.mask(text)                                    # §§secret(STRIPE_KEY)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.governance.access import (
        Action,
        AllowAll,
        MemoryAccessAudit,
        MemoryAccessDecision,
        Principal,
        Resource,
        Ruling,
        check_encoder,
        has_policies,
        owner_principal,
    )
    from research.governance.audit import Audit, Verification, check_audit
    from research.governance.enforce import PolicyAccess, record_access
    from research.governance.keys import find_keys
    from research.governance.labels import Label, Labels, Proposal, mark_of, resources_of
    from research.governance.masking import SecretMasker, known_secrets
    from research.governance.people import PresidioRedactor
    from research.governance.policy import (
        MemoryAccessPolicy,
        check_policy,
        read_policies,
    )
    from research.governance.redaction import (
        SECRETS,
        BaseRedactor,
        NoopRedactor,
        Placeholders,
        RedactorProtocol,
        SafeRedactor,
        redactor_of,
    )
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "access": (
                "Action AllowAll MemoryAccessAudit MemoryAccessDecision Principal Resource Ruling check_encoder "
                "has_policies owner_principal"
            ),
            "audit": "Audit Verification check_audit",
            "enforce": "PolicyAccess record_access",
            "keys": "find_keys",
            "labels": "Label Labels Proposal mark_of resources_of",
            "masking": "SecretMasker known_secrets",
            "policy": "MemoryAccessPolicy check_policy read_policies",
            "people": "PresidioRedactor",
            "redaction": "BaseRedactor NoopRedactor Placeholders RedactorProtocol SECRETS SafeRedactor redactor_of",
        },
    )
