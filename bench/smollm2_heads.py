"""Positional and symbolic heads of SmolLM2-135M-Instruct on a binding task; bench/smollm2_heads starts it.

A prompt states 8 to 32 facts, "NAME likes the color COLOR.", and asks for one of them, after arXiv 2511.11579. A fact
is a block of keys; all have the same number of tokens. Writes a JSON report, and Markdown tables made from it.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import itertools
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import tables
import transformers

MIN_FACTS, MAX_FACTS = 8, 32
TAU = 1e-4
GAMMA = 0.1

# fmt: off
NAMES = [
    "Alice", "Ben", "Clara", "David", "Emma", "Frank", "Grace", "Henry", "Ivan", "Jack", "Kate", "Lucy", "Mary",
    "Nick", "Oscar", "Paul", "Rose", "Sam", "Tom", "Victor", "Anna", "Bob", "Charlie", "Daniel", "Edward", "Fred",
    "George", "Hannah", "Isaac", "James", "Kevin", "Laura", "Mark", "Nancy", "Oliver", "Peter", "Robert", "Sarah",
    "Thomas", "William", "Adam", "Brian", "Chris", "Eric", "Jane", "John", "Linda", "Michael", "Richard", "Simon",
    "Steve", "Susan",
]
COLORS = [
    "red", "blue", "green", "yellow", "black", "white", "brown", "purple", "orange", "pink", "gray", "gold", "silver",
    "violet",
]
# fmt: on


@dataclasses.dataclass(frozen=True)
class Prompt:
    tokens: list[int]
    blocks: list[tuple[int, int]]  # slots [begin, end) of each fact
    label: int


class Binding:
    """Makes prompts whose facts differ in two tokens alone: the name and the color."""

    def __init__(self, tokenizer: transformers.PreTrainedTokenizerBase, seed: int) -> None:
        self._tokenizer = tokenizer
        self._random = random.Random(seed)
        self._names = [name for name in NAMES if len(self._ids(f" {name}")) == 1]
        self._colors = [color for color in COLORS if len(self._ids(f" {color}")) == 1]
        if len(self._names) < MAX_FACTS or len(self._colors) < 2:
            raise ValueError(f"too few names ({len(self._names)}) or colors ({len(self._colors)}) of one token")

    def make(self, facts: int) -> Prompt:
        names = self._random.sample(self._names, facts)
        colors = self._random.choices(self._colors, k=facts)
        tokens = [self._tokenizer.bos_token_id]
        blocks = []
        for name, color in zip(names, colors, strict=True):
            fact = self._ids(f" {name} likes the color {color}.")
            blocks.append((len(tokens), len(tokens) + len(fact)))
            tokens += fact
        asked = self._random.randrange(facts)
        tokens += self._ids(f" Question: What color does {names[asked]} like? Answer: {names[asked]} likes the color")
        return Prompt(tokens, blocks, self._ids(f" {colors[asked]}")[0])

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer(text, add_special_tokens=False).input_ids


def score(worker: pathlib.Path, model: pathlib.Path, prompts: list[Prompt], folder: pathlib.Path) -> dict:
    tokens, output = folder / "binding.jsonl", folder / "binding.json"
    tokens.write_text("".join(json.dumps(dataclasses.asdict(prompt)) + "\n" for prompt in prompts))
    command = [worker, "score", "--checkpoint", model, "--tokens", tokens, "--output", output]
    command += ["--scorers", "accuracy,positional_symbolic", "--tau", str(TAU)]
    subprocess.run([*command, "--param", "positional_symbolic.mode=blocks"], check=True)
    return json.loads(output.read_text())["scorers"]


def report(scorers: dict, prompts: list[Prompt]) -> dict:
    found = scorers["positional_symbolic"]
    found = found["taus"][0] if "taus" in found else found
    positional, symbolic = found["positional"]["mean"], found["symbolic"]["mean"]
    flat = [list(itertools.chain.from_iterable(scores)) for scores in (positional, symbolic)]
    correct = scorers["accuracy"]["correct"]["per_item"]
    r = statistics.correlation(*flat)
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "prompts": len(prompts),
        "facts": [min(len(p.blocks) for p in prompts), max(len(p.blocks) for p in prompts)],
        "tokens": [min(len(p.tokens) for p in prompts), max(len(p.tokens) for p in prompts)],
        "tau": TAU,
        "accuracy": sum(correct) / len(correct),
        "pearson_r": r,
        # Fisher's transform.
        "pearson_r_interval": [math.tanh(math.atanh(r) + z / math.sqrt(len(flat[0]) - 3)) for z in (-1.96, 1.96)],
        "positional": positional,
        "symbolic": symbolic,
    }


def markdown(found: dict) -> str:
    low, high = found["pearson_r_interval"]
    heads = [
        (p, s, f"{layer}.{head}")
        for layer, rows in enumerate(zip(found["positional"], found["symbolic"], strict=True))
        for head, (p, s) in enumerate(zip(*rows, strict=True))
    ]
    rows = []
    for layer, (positional, symbolic) in enumerate(zip(found["positional"], found["symbolic"], strict=True)):
        pure_positional = [
            h for h, (p, s) in enumerate(zip(positional, symbolic, strict=True)) if p >= 1 - GAMMA and s <= GAMMA
        ]
        pure_symbolic = [
            h for h, (p, s) in enumerate(zip(positional, symbolic, strict=True)) if s >= 1 - GAMMA and p <= GAMMA
        ]
        rows.append(
            [
                str(layer),
                f"{statistics.median(positional):.2f}",
                f"{statistics.median(symbolic):.2f}",
                f"{min(positional):.2f} - {max(positional):.2f}",
                f"{min(symbolic):.2f} - {max(symbolic):.2f}",
                ", ".join(map(str, pure_positional)) or "-",
                ", ".join(map(str, pure_symbolic)) or "-",
            ]
        )
    most_positional = sorted(heads, key=lambda head: head[0] - head[1], reverse=True)[:5]
    most_symbolic = sorted(heads, key=lambda head: head[1] - head[0], reverse=True)[:5]

    def listed(best: list[tuple[float, float, str]]) -> str:
        return ", ".join(f"{name} ({p:.2f} / {s:.2f})" for p, s, name in best)

    head = (
        f"{found['date']}: {found['prompts']} prompts of {found['facts'][0]} to {found['facts'][1]} facts, "
        f"{found['tokens'][0]} to {found['tokens'][1]} tokens; a fact is a block; tau {found['tau']:g}; "
        f"the model answers {100 * found['accuracy']:.0f} % of them.\n"
    )
    correlation = (
        f"**Correlation of the two maps over all {len(heads)} heads: r = {found['pearson_r']:.2f}** "
        f"(95 % interval {low:.2f} to {high:.2f}).\n"
    )
    best = (
        f"Most positional heads (positional / symbolic): {listed(most_positional)}. "
        f"Most symbolic: {listed(most_symbolic)}.\n"
    )
    header = ["layer", "positional, median", "symbolic, median", "range", "range", "pure positional", "pure symbolic"]
    return "\n".join([head, correlation, best, tables.table(header, rows)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="checkpoint folder with its tokenizer")
    parser.add_argument("--worker", type=pathlib.Path, required=True, help="the program hopscope-worker")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder for smollm2.json and smollm2.md")
    parser.add_argument("--prompts", type=int, default=64, help="how many prompts (default: 64)")
    parser.add_argument("--document", type=pathlib.Path, help="Markdown file whose part between the marks is replaced")
    arguments = parser.parse_args()
    if arguments.prompts < 2:
        parser.error("--prompts: at least 2")
    binding = Binding(transformers.AutoTokenizer.from_pretrained(arguments.model), seed=42)
    span = MAX_FACTS - MIN_FACTS
    prompts = [binding.make(MIN_FACTS + i * span // (arguments.prompts - 1)) for i in range(arguments.prompts)]
    arguments.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        found = report(score(arguments.worker, arguments.model, prompts, pathlib.Path(folder)), prompts)
    (arguments.output / "smollm2.json").write_text(json.dumps(found, indent=1) + "\n")
    text = markdown(found)
    (arguments.output / "smollm2.md").write_text(text)
    print(text)
    if arguments.document:
        tables.replace_measured(arguments.document, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
