"""Text and pages become vectors: the embedded encoder, others by name or address, and visual ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.encoders.allowed import check_allowed, remember
    from research.encoders.base import (
        DEFAULT,
        QuestionEncoder,
        TextEncoder,
        TokenCounter,
        check_text_encoder,
        fitting,
        hand_over,
        identify_text_encoder,
        is_embedded,
        is_light,
        load_remembered,
        load_text_encoder,
        split_to_fit,
        token_counter,
        usable_cores,
    )
    from research.encoders.checkpoints import check_files
    from research.encoders.colpali import (
        INSTALL,
        PageVectors,
        VisualEncoder,
        checkpoint_of,
        identify,
        load_visual_encoder,
    )
    from research.encoders.libraries import (
        DEFAULT_CHECKPOINT,
        allow_torchvision,
        colpali_ready,
        installed,
        is_there,
        quiet,
    )
    from research.encoders.maxsim import (
        CANDIDATES,
        EXACT_PAGES,
        FULL,
        SKETCH,
        PackedPages,
        first_stage,
        pack,
        score,
        shape_of,
        stack,
        unpack,
    )
    from research.encoders.minilm import VOCABULARY, load_session, without_surrogates
    from research.encoders.openai import OpenAIEncoder, alike
    from research.encoders.sentence_transformers import SentenceTransformersEncoder, check_package
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "": "checkpoints minilm",
            "allowed": "check_allowed remember",
            "base": (
                "DEFAULT QuestionEncoder TextEncoder TokenCounter check_text_encoder fitting hand_over "
                "identify_text_encoder is_embedded is_light load_remembered load_text_encoder "
                "split_to_fit token_counter usable_cores"
            ),
            "checkpoints": "check_files",
            "colpali": "INSTALL PageVectors VisualEncoder checkpoint_of identify load_visual_encoder",
            "libraries": "DEFAULT_CHECKPOINT allow_torchvision colpali_ready installed is_there quiet",
            "maxsim": ("CANDIDATES EXACT_PAGES FULL PackedPages SKETCH first_stage pack score shape_of stack unpack"),
            "minilm": "VOCABULARY load_session without_surrogates",
            "openai": "OpenAIEncoder alike",
            "sentence_transformers": "SentenceTransformersEncoder check_package",
        },
    )
