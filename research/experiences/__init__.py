"""Experiences: what was tried, what was expected of it, what came of it; and values, what many of them have in common.

`records` says what each is and what it is found by, `intake` checks what comes, `experiences` keeps it; `clusters` and
`values` find what experiences share.
"""
