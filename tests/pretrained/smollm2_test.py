"""A pretrained model, SmolLM2-135M-Instruct, beside transformers on real text, and the heads that it is known to have.

Skipped (exit status 77) where the model or the peers' environment is not there: scripts/fetch_smollm2 makes both.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("HOPSCOPE_CACHE_DIR", SOURCE / ".cache"))
BINARIES = pathlib.Path(os.environ.get("HOPSCOPE_BIN_DIR", SOURCE / "build/release/bin"))
MODEL = CACHE / "smollm2/smollm2-135m-instruct"
PEERS = CACHE / "peers"
SKIPPED = 77

if __name__ == "__main__" and pathlib.Path(sys.prefix).resolve() != PEERS.resolve():
    if not (MODEL / ".pins").exists() or not (PEERS / ".pins").exists():
        print(f"skipped: there is no model in {MODEL}; scripts/fetch_smollm2 makes it")
        sys.exit(SKIPPED)
    python = PEERS / "bin/python"
    os.execv(python, [str(python), "-B", __file__, *sys.argv[1:]])

import contextlib
import subprocess
from collections.abc import Iterator

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from safetensors.torch import load_file

# Public-domain prose (Jane Austen, Pride and Prejudice, 1813), code, and a dialogue in the model's own chat format.
PROSE = (
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a "
    "wife. However little known the feelings or views of such a man may be on his first entering a neighbourhood, this "
    "truth is so well fixed in the minds of the surrounding families, that he is considered as the rightful property "
    "of some one or other of their daughters."
)
CODE = (
    "def gcd(a: int, b: int) -> int:\n    while b:\n        a, b = b, a % b\n    return a\n\nassert gcd(12, 18) == 6\n"
)
CHAT = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\nThe capital of France is"
TEXTS = (PROSE, CODE, CHAT)

# Largest absolute differences to transformers in float64: a hundred times what was seen there, and five times in
# float32, where transformers' own error is of the same size.
FLOAT64 = {"logits": 1e-10, "attention": 1e-11}
FLOAT32 = {"logits": 4e-4, "attention": 2e-5}


def inspect(sequences: list[list[int]], captures: str, dtype: str) -> dict[str, torch.Tensor]:
    with tempfile.TemporaryDirectory() as folder:
        tokens, output = pathlib.Path(folder) / "tokens.jsonl", pathlib.Path(folder) / "captured.safetensors"
        tokens.write_text("".join(json.dumps({"tokens": sequence}) + "\n" for sequence in sequences))
        command = [BINARIES / "hopscope-worker", "inspect", "--checkpoint", MODEL, "--tokens", tokens]
        subprocess.run([*command, "--capture", captures, "--dtype", dtype, "--output", output], check=True)
        return load_file(output)


def load(dtype: torch.dtype) -> transformers.LlamaForCausalLM:
    model = transformers.LlamaForCausalLM.from_pretrained(MODEL, dtype=dtype, attn_implementation="eager").eval()
    rotary = model.model.rotary_emb
    base, width = model.config.rope_parameters["rope_theta"], model.config.head_dim
    rotary.inv_freq = (1 / base ** (torch.arange(0, width, 2, dtype=torch.float64) / width)).to(dtype)
    return model


@contextlib.contextmanager
def float64_throughout() -> Iterator[None]:
    """transformers names float32 in softmax, norms and rotary tables; here that name stands for float64."""
    kept = torch.float32, torch.float, torch.Tensor.float
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = kept


@torch.inference_mode()
def forward(model: transformers.LlamaForCausalLM, ids: list[int]) -> dict[str, torch.Tensor]:
    out = model(torch.tensor([ids]), output_attentions=True, use_cache=False)
    return {"logits": out.logits[0], "attention": torch.cat(out.attentions)}


class SmolLM2Test(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
        cls.sequences = [tokenizer(text).input_ids for text in TEXTS]
        model = load(torch.float64)
        with float64_throughout():
            cls.expected = [forward(model, ids) for ids in cls.sequences]

    def differences(self, found: list[dict[str, torch.Tensor]]) -> dict[str, float]:
        return {
            name: max(
                (f[name].double() - e[name]).abs().max().item() for f, e in zip(found, self.expected, strict=True)
            )
            for name in ("logits", "attention")
        }

    def own(self, dtype: str) -> dict[str, float]:
        captured = inspect(self.sequences, "logits,attention", dtype)
        return self.differences(
            [{name: captured[f"{name}.{i}"] for name in ("logits", "attention")} for i in range(len(self.sequences))]
        )

    def test_float64_agrees_with_transformers_on_real_text(self) -> None:
        found = self.own("float64")
        print("float64:", found, file=sys.stderr)
        for name, tolerance in FLOAT64.items():
            self.assertLess(found[name], tolerance, name)

    def test_float32_is_as_close_to_float64_as_transformers_float32_is(self) -> None:
        model = load(torch.float32)
        theirs = self.differences([forward(model, ids) for ids in self.sequences])
        found = self.own("float32")
        print("float32:", found, "transformers:", theirs, file=sys.stderr)
        for name, tolerance in FLOAT32.items():
            self.assertLess(found[name], tolerance, name)
            self.assertLess(found[name], 5 * theirs[name], name)

    def test_it_predicts_paris(self) -> None:
        tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
        captured = inspect([self.sequences[2]], "logits", "float32")
        self.assertEqual(tokenizer.decode([captured["logits.0"][-1].argmax().item()]), " Paris")

    def test_known_heads_are_found_on_repeated_random_tokens(self) -> None:
        random = torch.Generator().manual_seed(1)
        length, sequences = 64, []
        for _ in range(8):
            half = torch.randint(1000, 49000, (length,), generator=random).tolist()
            sequences.append([1, *half, *half])
        captured = inspect(sequences, "attention", "float32")
        attention = torch.stack([captured[f"attention.{i}"] for i in range(len(sequences))])

        def along(offset: int, first_query: int) -> torch.Tensor:
            """Mean weight [layers, heads] of the key `offset` slots before the query."""
            return attention.diagonal(-offset, dim1=-2, dim2=-1)[..., first_query - offset :].mean(dim=(0, -1))

        for name, scores, expected in (
            ("previous token", along(1, 1), {(16, 0): 0.89, (11, 1): 0.84}),
            # The key after the query token's first occurrence; queries of the second half.
            ("induction", along(length - 1, length + 1), {(18, 6): 0.90, (17, 3): 0.80}),
        ):
            with self.subTest(name):
                heads = scores.shape[1]
                best = scores.flatten().argsort(descending=True)[:2].tolist()
                print(
                    name, [(i // heads, i % heads, round(scores.flatten()[i].item(), 3)) for i in best], file=sys.stderr
                )
                self.assertEqual([(i // heads, i % heads) for i in best], list(expected))
                for (layer, head), value in expected.items():
                    self.assertAlmostEqual(scores[layer, head].item(), value, delta=0.04)


if __name__ == "__main__":
    unittest.main()
