"""Experiences: what was tried, what was expected of it, what came of it; and values, what many of them have in common.

`intake` checks what comes, `experiences` keeps it, `axes` says what each is found by; `clusters` and `values` find
what experiences share.
"""
