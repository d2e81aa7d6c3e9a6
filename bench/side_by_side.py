"""Measures Hopscope beside its peers in one interleaved run; bench/scores prepares and starts it.

First a gate: logits and scores of all must agree. Then rounds, in each of which everybody has a turn, so that a change
of the machine's clock or load meets all of them; figures are medians over the rounds. Last a whole training history.
Writes a JSON report, and Markdown tables made from it.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import history
import peers
import tables
import torch
import transformers

TOKENS = 17
SEQUENCES = 1200
BATCHES = (1, 16, 64, 300)
THREADS = (2, 1)
LONG = (117, 317, 867)

# Largest differences that are rounding: float32, and a temperature of 1e-4 that divides the error of the attention.
LOG_PROBABILITY_TOLERANCE = 3e-4
SCORE_TOLERANCE = 5e-3
MEAN_SCORE_TOLERANCE = 2e-4


def windows(count: int, seed: int) -> torch.Tensor:
    """Ids [count, 17] in the form of the Number task: 8 letters, then integers that point into the sequence."""
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(17, 137, (count, TOKENS), generator=random)
    for slot in range(8, TOKENS):
        ids[:, slot] = torch.randint(1, slot + 1, (count,), generator=random)
    return ids


@dataclasses.dataclass(frozen=True)
class Setting:
    checkpoint: pathlib.Path
    binaries: pathlib.Path
    scratch: pathlib.Path
    rounds: int
    seconds: float


class Disagreement(RuntimeError):
    """Two programs that should compute the same do not."""


# ---- Gate


def own_results(setting: Setting, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Hopscope's logits [sequences, T, vocab] and scores [sequences, layers, heads, 2] in float32."""
    from safetensors.torch import load_file

    tokens = setting.scratch / "gate.jsonl"
    tokens.write_text("".join(json.dumps({"tokens": row}) + "\n" for row in ids.tolist()))
    worker = setting.binaries / "hopscope-worker"
    common = ["--checkpoint", setting.checkpoint, "--tokens", tokens]
    inspected, scored = setting.scratch / "gate.safetensors", setting.scratch / "gate.json"
    subprocess.run([worker, "inspect", *common, "--capture", "logits", "--output", inspected], check=True)
    score = [worker, "score", *common, "--scorers", "positional_symbolic", "--tau", str(peers.TAU)]
    subprocess.run([*score, "--output", scored], check=True)
    captured = load_file(inspected)
    logits = torch.stack([captured[f"logits.{i}"] for i in range(len(ids))])
    found = json.loads(scored.read_text())["scorers"]["positional_symbolic"]
    if "taus" in found:
        found = found["taus"][0]
    pair = [torch.tensor(found[metric]["per_item"], dtype=torch.float64) for metric in ("positional", "symbolic")]
    return logits, torch.stack(pair, dim=-1)


def gate(
    setting: Setting, hugging_face: peers.HuggingFace, lens: peers.TransformerLens, count: int
) -> dict[str, float]:
    """Largest differences to Hopscope; raises Disagreement where one is more than rounding."""
    ids = windows(count, seed=1)
    own_logits, own_scores = own_results(setting, ids)
    own_probabilities = own_logits.log_softmax(-1)
    found: dict[str, float] = {}

    def compare(name: str, difference: torch.Tensor, tolerance: float) -> None:
        found[name] = difference.abs().max().item()
        if not found[name] <= tolerance:
            raise Disagreement(f"{name}: {found[name]:.3g} is more than {tolerance:.3g}")

    for name, forward in (
        ("transformers", hugging_face.forward),
        ("transformer_lens", lens.forward),
        ("transformer_lens_cache", lens.run_with_cache),
    ):
        # TransformerLens shifts the logits of a token by a constant, so log probabilities are what is comparable.
        difference = forward(ids).log_softmax(-1) - own_probabilities
        compare(f"log_probabilities.{name}", difference, LOG_PROBABILITY_TOLERANCE)
    for name, score in (("literal", hugging_face.literal), ("closed_form", hugging_face.closed_form)):
        difference = score(ids) - own_scores
        compare(f"scores.{name}", difference, SCORE_TOLERANCE)
        compare(f"mean_scores.{name}", difference.mean(0), MEAN_SCORE_TOLERANCE)
    return found


# ---- Rounds


def rate(run: Callable[[torch.Tensor], torch.Tensor], ids: torch.Tensor, batch: int, seconds: float) -> float:
    """Sequences a second, going through ids in batches for about so long; the first batch warms up."""
    batches = ids[: len(ids) // batch * batch].split(batch)
    run(batches[0])
    done = 0
    start = time.perf_counter()
    while True:
        for rows in batches:
            run(rows)
            done += len(rows)
            if time.perf_counter() - start >= seconds:
                return done / (time.perf_counter() - start)


def matrix_rate(shape: tuple[int, int, int], seconds: float) -> float:
    """GFLOP/s of torch's float32 matrix product [m, k] x [k, n]."""
    m, n, k = shape
    a, b = torch.ones(m, k), torch.ones(n, k)
    peers.multiply(a, b)
    done = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        peers.multiply(a, b)
        done += 1
    return 2e-9 * m * n * k * done / (time.perf_counter() - start)


def own_engine(setting: Setting, threads: int, lengths: tuple[int, ...], items: int) -> dict[str, Any]:
    command = [setting.binaries / "bench_engine", "--checkpoint", setting.checkpoint, "--threads", str(threads)]
    command += ["--runs", "1", "--seconds", str(setting.seconds), "--items", str(items), "--json", "--tokens"]
    done = subprocess.run([*command, *map(str, lengths)], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def rounds(setting: Setting, hugging_face: peers.HuggingFace, lens: peers.TransformerLens) -> dict[str, list[float]]:
    """What each turn measured, round by round: "NAME.THREADS" in sequences a second, "matrix...." in GFLOP/s."""
    ids = windows(SEQUENCES, seed=2)
    found: dict[str, list[float]] = collections.defaultdict(list)
    engine: dict[str, Any] = {}

    def peer_turn(
        name: str, run: Callable[[torch.Tensor], torch.Tensor], batch: int, threads: int
    ) -> Callable[[], None]:
        def turn() -> None:
            torch.set_num_threads(threads)
            found[f"{name}.{threads}"].append(rate(run, ids, batch, setting.seconds))

        return turn

    def torch_matrix_turn(threads: int) -> Callable[[], None]:
        def turn() -> None:
            torch.set_num_threads(threads)
            found[f"matrix.torch.1024.{threads}"].append(matrix_rate((1024, 1024, 1024), setting.seconds / 2))

        return turn

    def own_turn(threads: int) -> Callable[[], None]:
        def turn() -> None:
            reports = [own_engine(setting, threads, (TOKENS,), SEQUENCES)]
            if threads == THREADS[0]:
                reports.append(own_engine(setting, threads, LONG, 0))
            for name, value in reports[0]["matrix_gflops"].items():
                found[f"matrix.engine.{name}.{threads}"].append(value)
            for row in (row for report in reports for row in report["lengths"]):
                for name in ("forward_per_second", "scored_per_second"):
                    found[f"own.{row['tokens']}.{name}.{threads}"].append(row[name])
                for name in ("forward_gflops", "executed_gflops", "scores_share"):
                    found[f"own.{row['tokens']}.{name}.{threads}"].append(row[name])
            engine.update({name: reports[0][name] for name in ("processor", "isa", "torch")})

        return turn

    turns: list[Callable[[], None]] = []
    for threads in THREADS:
        turns.append(own_turn(threads))
        turns.append(torch_matrix_turn(threads))
        for batch in BATCHES:
            turns.append(peer_turn(f"transformers.forward.{batch}", hugging_face.forward, batch, threads))
        turns.append(peer_turn("transformer_lens.forward.64", lens.forward, 64, threads))
        turns.append(peer_turn("transformer_lens.run_with_cache.64", lens.run_with_cache, 64, threads))
        turns.append(peer_turn("literal.1", hugging_face.literal, 1, threads))
        turns.append(peer_turn("closed_form.64", hugging_face.closed_form, 64, threads))
    for index in range(setting.rounds):
        # Nobody always follows the same one.
        first = index * 5 % len(turns)
        for turn in turns[first:] + turns[:first]:
            turn()
        print(f"round {index + 1} of {setting.rounds}", file=sys.stderr, flush=True)
    return dict(found)


# ---- History


def whole_history(setting: Setting, checkpoints: int, samples: int) -> dict[str, Any]:
    root = setting.scratch / "history"
    history.make_history(setting.checkpoint, root, checkpoints)
    engine = history.run_engine(setting.binaries, root, samples, THREADS[0])
    service = history.run_service(setting.binaries, root, setting.scratch, samples, workers=THREADS[0])
    if (engine.sequences, engine.correct) != (service.sequences, service.correct):
        raise Disagreement(
            f"history: the engine has {engine.correct} of {engine.sequences} right, "
            f"the service {service.correct} of {service.sequences}"
        )
    return {
        "checkpoints": checkpoints,
        "sequences": engine.sequences,
        "bytes": sum(path.stat().st_size for path in root.rglob("*") if path.is_file()),
        "engine": dataclasses.asdict(engine),
        "service": dataclasses.asdict(service),
    }


def versions() -> dict[str, str]:
    names = ("torch", "transformers", "transformer-lens", "numpy")
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in names}


def machine() -> dict[str, Any]:
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {
        "processor": model,
        "processors": len(os.sched_getaffinity(0)),
        "capability": torch.backends.cpu.get_cpu_capability(),
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="rounds to take medians of (default: 7)")
    parser.add_argument("--seconds", type=float, default=0.5, help="seconds a turn (default: 0.5)")
    parser.add_argument(
        "--checkpoints", type=int, default=135, help="checkpoints of the history; 0: none (default: 135)"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes: to see that it works, not to measure")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder for scores.json and scores.md")
    parser.add_argument("--document", type=pathlib.Path, help="Markdown file whose part between the marks is replaced")
    parser.add_argument("--checkpoint", type=pathlib.Path, required=True, help="GPT-J checkpoint of the Number task")
    parser.add_argument("--binaries", type=pathlib.Path, required=True, help="folder of Hopscope's programs")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    samples = SEQUENCES // len(history.HOPS)
    if arguments.quick:
        arguments.rounds, arguments.seconds = 1, 0.05
        arguments.checkpoints, samples = min(arguments.checkpoints, 3), 20
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    arguments.output.mkdir(parents=True, exist_ok=True)
    load_before = os.getloadavg()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir=arguments.output) as scratch:
        setting = Setting(
            arguments.checkpoint.resolve(),
            arguments.binaries,
            pathlib.Path(scratch),
            arguments.rounds,
            arguments.seconds,
        )
        hugging_face = peers.HuggingFace(setting.checkpoint)
        lens = peers.TransformerLens(hugging_face)
        try:
            differences = gate(setting, hugging_face, lens, count=4 if arguments.quick else 32)
            print("all agree; measuring", file=sys.stderr, flush=True)
            measured = rounds(setting, hugging_face, lens)
            past = whole_history(setting, arguments.checkpoints, samples) if arguments.checkpoints else None
        except Disagreement as disagreement:
            print(f"disagreement: {disagreement}", file=sys.stderr)
            return 1
    report = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "load_average_before": load_before,
        "versions": versions(),
        "quick": arguments.quick,
        "rounds": arguments.rounds,
        "seconds_a_turn": arguments.seconds,
        "seconds": time.monotonic() - start,
        "differences": differences,
        "medians": {name: statistics.median(values) for name, values in sorted(measured.items())},
        "values": dict(sorted(measured.items())),
        "history": past,
    }
    (arguments.output / "scores.json").write_text(json.dumps(report, indent=1) + "\n")
    text = tables.markdown(report)
    (arguments.output / "scores.md").write_text(text)
    print(text)
    if arguments.document:
        tables.replace_measured(arguments.document, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
