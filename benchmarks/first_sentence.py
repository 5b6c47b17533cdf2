"""A peer's shortest script from nothing to the first translated sentence.

    python benchmarks/first_sentence.py ctranslate2 2 runs/bench-ctranslate2 "A man is riding a bicycle."

with so many threads, and beam 5. Ours is translate.py itself.
"""

import sys
import unicodedata
from pathlib import Path

BEAM = 5


def ctranslate2(folder: Path, threads: int, sentence: str) -> str:
    """CTranslate2 with the tokenizers package; torch is not imported."""
    import ctranslate2
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    translator = ctranslate2.Translator(str(folder), intra_threads=threads, compute_type="float32")
    tokens = tokenizer.encode(" " + unicodedata.normalize("NFC", sentence)).tokens
    [best] = translator.translate_batch([tokens], beam_size=BEAM)
    vocabulary = tokenizer.get_vocab()
    return str(tokenizer.decode([vocabulary[token] for token in best.hypotheses[0]])).strip()


def huggingface(folder: Path, threads: int, sentence: str) -> str:
    """Hugging Face transformers, with the position table that `from_pretrained` does not keep."""
    import peers  # noqa: F401  so that the project's modules are found
    import torch
    from marian import set_positions
    from tokenizers import Tokenizer
    from transformers import MarianMTModel

    torch.set_num_threads(threads)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = set_positions(MarianMTModel.from_pretrained(folder)).eval()
    ids = [*tokenizer.encode(" " + unicodedata.normalize("NFC", sentence)).ids, model.config.eos_token_id]
    with torch.inference_mode():
        [best] = model.generate(torch.tensor([ids]), num_beams=BEAM, max_new_tokens=2 * len(ids) + 20)
    special = (model.config.pad_token_id, model.config.bos_token_id, model.config.eos_token_id)
    return str(tokenizer.decode([i for i in best.tolist() if i not in special])).strip()


def main() -> None:
    """The command."""
    engine, threads, folder, sentence = sys.argv[1:]
    translate = {"ctranslate2": ctranslate2, "huggingface": huggingface}[engine]
    print(translate(Path(folder), int(threads), sentence))


if __name__ == "__main__":
    main()
