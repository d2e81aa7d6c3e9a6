"""A whole training history through Hopscope: many checkpoint folders, loading included.

The folders are made from one checkpoint: every copy's weights differ a little, so that no cache and no shared digest
can save work. They are written to disk and dropped from the page cache before each run.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import time

import numpy
import safetensors.numpy

HOPS = (1, 2, 3, 4)


def make_history(checkpoint: pathlib.Path, root: pathlib.Path, count: int) -> None:
    """Fills root with count checkpoint folders, step-00050, step-00100, ..."""
    weights = safetensors.numpy.load_file(checkpoint / "model.safetensors")
    random = numpy.random.default_rng(42)
    for index in range(1, count + 1):
        folder = root / f"step-{50 * index:05d}"
        folder.mkdir(parents=True)
        shutil.copy(checkpoint / "config.json", folder)
        changed = {
            name: value * (1 + 1e-4 * random.standard_normal(value.shape, dtype=numpy.float32))
            for name, value in weights.items()
        }
        safetensors.numpy.save_file(changed, folder / "model.safetensors", metadata={"format": "pt"})


def drop_from_page_cache(root: pathlib.Path) -> None:
    """So that the next reader finds the files on the disk alone."""
    for path in root.rglob("*.safetensors"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One run over a history."""

    seconds: float
    sequences: int
    correct: int
    details: dict[str, float]


def run_engine(binaries: pathlib.Path, root: pathlib.Path, samples: int, threads: int) -> Outcome:
    """The engine alone, in one process; samples for each hop count."""
    drop_from_page_cache(root)
    start = time.perf_counter()
    done = subprocess.run(
        [binaries / "bench_history", "--model_root", root, "--samples", str(samples), "--threads", str(threads)],
        check=True,
        stdout=subprocess.PIPE,
    )
    seconds = time.perf_counter() - start
    report = json.loads(done.stdout)
    return Outcome(seconds, report.pop("sequences"), report.pop("correct"), report)


def run_service(
    binaries: pathlib.Path, root: pathlib.Path, scratch: pathlib.Path, samples: int, workers: int
) -> Outcome:
    """`hopscope run --local`: a server and one-thread workers, from an empty state to saved results."""
    spec = {
        "name": "history",
        "seed": 42,
        "tasks": [
            {
                "task": "number",
                "hops": list(HOPS),
                "added_tokens": [0],
                "samples": samples,
                "checkpoints": ["step-*"],
            }
        ],
        "scorers": ["accuracy", "positional_symbolic"],
    }
    spec_file = scratch / "history.json"
    spec_file.write_text(json.dumps(spec))
    results = scratch / "results"
    drop_from_page_cache(root)
    command = [binaries / "hopscope", "run", spec_file, "--local", "--model_root", root, "--output", results]
    command += ["--workers", str(workers), "--threads", "1", "--json"]
    start = time.perf_counter()
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(f"hopscope run ended with {done.returncode}:\n{done.stderr}")
    cells = json.loads((results / "results.json").read_text())["cells"]
    return Outcome(
        seconds, sum(cell["items"] for cell in cells), sum(cell["correct"] for cell in cells), {"workers": workers}
    )
