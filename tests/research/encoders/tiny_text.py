"""A tiny sentence-transformers model with random weights, written to disk the way a published one is. It knows nothing,
but everything around a real one runs the same."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from research.encoders.libraries import allow_torchvision, quiet

_WORDS = (
    "how many weeks of parental leave does the handbook give what caused the crisis of 2008 a table of revenue by"
    " region boats herring prices rose in the harbour keeper left in march tomatoes need sun water and patience"
)
DIM = 32


def make_tiny_text(folder: Path, *, seed: int = 0, dense: bool = False) -> Path:
    """Write a BERT with mean pooling into `folder`, with a layer of its own after that if `dense`, and return it."""
    allow_torchvision()
    with quiet(), TemporaryDirectory() as made:
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer

        base = _bert(Path(made), seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            transformer = Transformer(str(base))
            modules = [transformer, Pooling(DIM)]
            if dense:
                modules.append(Dense(DIM, DIM // 2))
            SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    return folder


def make_tiny_static(folder: Path) -> Path:
    """Write a model that is a table of word vectors, with its weights in a folder of their own."""
    allow_torchvision()
    with quiet(), TemporaryDirectory() as made:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(_bert(Path(made), 0) / "tokenizer.json"))
        SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=DIM)], device="cpu").save(str(folder))
    return folder


def make_tiny_cross(folder: Path, *, labels: int = 1) -> Path:
    """Write a BERT that scores a question and a text together, with so many scores each."""
    allow_torchvision()
    with quiet(), TemporaryDirectory() as made:
        import torch
        from sentence_transformers import CrossEncoder

        base = _bert(Path(made), 0)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = CrossEncoder(str(base), num_labels=labels, device="cpu", local_files_only=True)
            with torch.no_grad():  # so that its scores differ by more than the last digits
                model.transformers_model.classifier.weight.mul_(200)
            model.save_pretrained(str(folder))
    return folder


def edit_json(path: Path, **changes: object) -> None:
    """Change some entries of a model's settings file, which may not be there yet."""
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**content, **changes}))


def _bert(folder: Path, seed: int) -> Path:
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    letters = [prefix + chr(code) for code in range(33, 127) for prefix in ("", "##")]
    vocabulary = dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *_WORDS.split()])
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=DIM,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=256,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        BertModel(config).save_pretrained(folder)
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    return folder
