"""Markdown tables from a report of side_by_side.py."""

from __future__ import annotations

import pathlib
from typing import Any

BEGIN = "<!-- measured: begin -->\n"
END = "<!-- measured: end -->\n"

# The authors' extraction and metric on 2 cores of an AMD EPYC, ms a sequence of 17 tokens x 12 layers, in another run.
PUBLISHED_LITERAL_MS = 208.0

PEERS = {
    "transformers.forward.1": "transformers, forward, batch 1",
    "transformers.forward.16": "transformers, forward, batch 16",
    "transformers.forward.64": "transformers, forward, batch 64",
    "transformers.forward.300": "transformers, forward, batch 300",
    "transformer_lens.forward.64": "TransformerLens, forward, batch 64",
    "transformer_lens.run_with_cache.64": "TransformerLens, run_with_cache, batch 64",
    "closed_form.64": "closed form in Python, with its forward pass, batch 64: scores",
    "literal.1": "literal procedure in transformers, 120 swaps a batch: scores",
}


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def _ms(per_second: float) -> str:
    milliseconds = 1e3 / per_second
    return f"{milliseconds:.3f}" if milliseconds < 10 else f"{milliseconds:.1f}"


def _side_by_side(medians: dict[str, float]) -> str:
    def row(label: str, two: float, one: float, own: str) -> list[str]:
        return [
            label,
            _ms(two),
            _ms(one),
            f"{medians[f'own.17.{own}.2'] / two:.2f}",
            f"{medians[f'own.17.{own}.1'] / one:.2f}",
        ]

    rows = []
    for own, label in (
        ("forward_per_second", "forward and accuracy"),
        ("scored_per_second", "forward, accuracy and scores"),
    ):
        rows.append(
            [f"**Hopscope, {label}**", _ms(medians[f"own.17.{own}.2"]), _ms(medians[f"own.17.{own}.1"]), "1", "1"]
        )
    for name, label in PEERS.items():
        own = "scored_per_second" if label.endswith("scores") else "forward_per_second"
        rows.append(row(label, medians[f"{name}.2"], medians[f"{name}.1"], own))
    return table(["", "ms, 2 threads", "ms, 1 thread", "times Hopscope's, 2 threads", "1 thread"], rows)


def _lengths(medians: dict[str, float]) -> str:
    rows = []
    for name in sorted(
        (key for key in medians if key.endswith(".forward_per_second.2")), key=lambda key: int(key.split(".")[1])
    ):
        tokens = name.split(".")[1]
        forward, scored = medians[name], medians[f"own.{tokens}.scored_per_second.2"]
        rows.append(
            [
                tokens,
                _ms(forward),
                _ms(scored),
                f"{forward / scored:.2f}",
                f"{medians[f'own.{tokens}.forward_gflops.2']:.0f}",
                f"{medians[f'own.{tokens}.executed_gflops.2']:.0f}",
                f"{100 * medians[f'own.{tokens}.scores_share.2']:.0f} %",
            ]
        )
    header = ["tokens", "forward, ms", "with scores, ms", "ratio", "GFLOP/s", "executed", "scorers' share of the time"]
    return table(header, rows)


def _matrix(medians: dict[str, float]) -> str:
    names = {
        "matrix.torch.1024": "torch, 1024 x 1024 x 1024",
        "matrix.engine.1024x1024x1024": "the engine's call, 1024 x 1024 x 1024, each thread its own",
        "matrix.engine.model_in": "the engine's call, into a layer",
        "matrix.engine.model_out": "the engine's call, out of a layer",
    }
    rows = [[label, f"{medians[f'{name}.2']:.0f}", f"{medians[f'{name}.1']:.0f}"] for name, label in names.items()]
    return table(["matrix product, GFLOP/s", "2 threads", "1 thread"], rows)


def _history(past: dict[str, Any]) -> str:
    rows = [
        [label, f"{past[key]['seconds']:.1f}", f"{1e3 * past[key]['seconds'] / past['sequences']:.3f}"]
        for key, label in (("engine", "engine alone"), ("service", "`hopscope run --local`, two workers of one thread"))
    ]
    head = (
        f"{past['checkpoints']} checkpoints ({past['bytes'] / 1e9:.2f} GB, read from disk) x "
        f"{past['sequences'] // past['checkpoints']:,} sequences x 12 layers, accuracy and scores:\n\n"
    )
    return head + table(["whole history", "s", "ms a sequence"], rows)


def goals(report: dict[str, Any]) -> list[tuple[str, float, float, bool]]:
    """What is aimed at: text, goal, value, met."""
    m = report["medians"]
    forward, scored = m["own.17.forward_per_second.2"], m["own.17.scored_per_second.2"]
    best = max(m[f"transformers.forward.{batch}.2"] for batch in (1, 16, 64, 300))
    found = [
        ("scores and accuracy, times the own forward pass, at most", 1.2, forward / scored, False),
        ("own forward pass, times transformers' at its best batch size", 1.5, forward / best, True),
        (
            "own forward pass, times TransformerLens run_with_cache",
            2.0,
            forward / m["transformer_lens.run_with_cache.64.2"],
            True,
        ),
        (
            "share of the 1024^3 matrix product's rate",
            2 / 3,
            m["own.17.forward_gflops.2"] / m["matrix.torch.1024.2"],
            True,
        ),
        (
            "the same, counting executed operations only",
            2 / 3,
            m["own.17.executed_gflops.2"] / m["matrix.torch.1024.2"],
            True,
        ),
        (
            f"scores, times the authors' procedure ({PUBLISHED_LITERAL_MS:.0f} ms a sequence, another run)",
            250.0,
            PUBLISHED_LITERAL_MS * scored / 1e3,
            True,
        ),
    ]
    if report["history"]:
        found.append(
            ("whole history through the service, s, less than", 150.0, report["history"]["service"]["seconds"], False)
        )
    return [(text, goal, value, value >= goal if at_least else value <= goal) for text, goal, value, at_least in found]


def _where_time_goes(medians: dict[str, float]) -> str:
    lines = []
    for threads, label in ((2, "two threads"), (1, "one thread")):
        # Into a layer goes 896 / (896 + 640) of the operations of a layer's products, out of it the rest.
        into, out = medians[f"matrix.engine.model_in.{threads}"], medians[f"matrix.engine.model_out.{threads}"]
        share_in = 896 / (896 + 640)
        at_model_shapes = 1 / (share_in / into + (1 - share_in) / out)
        products = 100 * medians[f"own.17.executed_gflops.{threads}"] / at_model_shapes
        scores = 100 * medians[f"own.17.scores_share.{threads}"]
        lines.append(
            f"With {label} the matrix products, at their {at_model_shapes:.0f} GFLOP/s at this model's shapes, account "
            f"for {products:.0f} % of the forward pass at 17 tokens; attention, norms, activations, rotation and making "
            f"the sequences for the rest. The scorers take {scores:.0f} % of the time of a pass with scores.\n"
        )
    return "\n".join(lines)


def markdown(report: dict[str, Any]) -> str:
    """All tables of a report."""
    m, machine, versions = report["medians"], report["machine"], report["versions"]
    head = (
        f"{report['date']}, {machine['processors']} processors of {machine['processor']} ({machine['capability']}); "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + f". Medians of {report['rounds']} rounds; "
        + f"load average before the run {report['load_average_before'][0]:.1f}.\n"
    )
    if report["quick"]:
        head = "**Tiny sizes: these figures say nothing.**\n\n" + head
    largest = max(value for name, value in report["differences"].items() if name.startswith("log_probabilities"))
    scores = max(value for name, value in report["differences"].items() if name.startswith("scores"))
    head += (
        f"\nLargest difference between any two: {largest:.1e} of log probabilities, {scores:.1e} of single scores.\n"
    )
    goal_rows = [
        [text, f"{goal:.2f}", f"{value:.2f}", "yes" if met else "**no**"] for text, goal, value, met in goals(report)
    ]
    parts = [
        head,
        "A sequence of 17 tokens x 12 layers:\n\n" + _side_by_side(m),
        _matrix(m),
        "Hopscope by length, two threads:\n\n" + _lengths(m),
        _where_time_goes(m),
    ]
    if report["history"]:
        parts.append(_history(report["history"]))
    parts.append(table(["goal", "", "measured", "met"], goal_rows))
    return "\n".join(parts)


def replace_measured(document: pathlib.Path, text: str) -> None:
    """Puts text between the marks of a document."""
    content = document.read_text()
    begin, end = content.index(BEGIN) + len(BEGIN), content.index(END)
    document.write_text(content[:begin] + "\n" + text + "\n" + content[end:])
