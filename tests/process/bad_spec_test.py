"""Every kind of bad spec is refused with the right code and the field's path, before anything is stored or runs."""

import copy
import json
import math
import os
import shutil
import struct
import unittest

from harness import CHECKPOINTS, Cluster

GOOD = {
    "name": "good",
    "scorers": ["accuracy"],
    "tasks": [{"task": "number", "hops": [1, 2], "added_tokens": [0], "samples": 10,
               "checkpoints": ["number/step-06750"]}],
}


def changed(**changes):
    """GOOD with keys of its task or of the spec changed."""
    spec = copy.deepcopy(GOOD)
    for key, value in changes.items():
        (spec if key in {"scorers", "seeds", "labels", "priority", "deadline_s", "tasks"} else spec["tasks"][0])[key] = value
    return spec


# name: (spec, status code, field that the error names)
CASES = {
    "unknown task": (changed(task="numbers"), "INVALID_ARGUMENT", "spec.tasks[0].task"),
    "no tasks": (changed(tasks=[]), "INVALID_ARGUMENT", "spec.tasks"),
    "hop 0": (changed(hops=[1, 0]), "INVALID_ARGUMENT", "spec.tasks[0].hops[1]"),
    "hop 5": (changed(hops=[5]), "INVALID_ARGUMENT", "spec.tasks[0].hops[0]"),
    "no hops": (changed(hops=[]), "INVALID_ARGUMENT", "spec.tasks[0].hops"),
    "duplicate hops": (changed(hops=[2, 2]), "INVALID_ARGUMENT", "spec.tasks[0].hops[1]"),
    "negative added tokens": (changed(added_tokens=[-1]), "INVALID_ARGUMENT", "spec.tasks[0].added_tokens[0]"),
    "too many added tokens": (changed(added_tokens=[0, 10**6]), "INVALID_ARGUMENT", "spec.tasks[0].added_tokens[1]"),
    "duplicate added tokens": (changed(added_tokens=[50, 50]), "INVALID_ARGUMENT", "spec.tasks[0].added_tokens[1]"),
    "no samples": (changed(samples=0), "INVALID_ARGUMENT", "spec.tasks[0].samples"),
    "negative samples": (changed(samples=-3), "INVALID_ARGUMENT", "spec.tasks[0].samples"),
    "too many samples": (changed(samples=10**15), "INVALID_ARGUMENT", "spec.tasks[0].samples"),
    "unknown scorer": (changed(scorers=["accurracy"]), "INVALID_ARGUMENT", "spec.scorers[0].name"),
    "unknown scorer parameter": (changed(scorers=[{"positional_symbolic": {"tua": [1]}}]),
                                 "INVALID_ARGUMENT", "spec.scorers[0].params.tua"),
    "tau of zero": (changed(scorers=[{"positional_symbolic": {"taus": [1.0, 0.0]}}]),
                    "INVALID_ARGUMENT", "spec.scorers[0].params.taus[1]"),
    "no checkpoints": (changed(checkpoints=[]), "INVALID_ARGUMENT", "spec.tasks[0].checkpoints"),
    "missing checkpoint": (changed(checkpoints=["number/step-99999"]), "NOT_FOUND", "spec.tasks[0].checkpoints[0]"),
    "glob without a match": (changed(checkpoints=["number/step-06750", "other/*"]),
                             "NOT_FOUND", "spec.tasks[0].checkpoints[1]"),
    "path out of the model root": (changed(checkpoints=["../number/step-06750"]),
                                   "INVALID_ARGUMENT", "spec.tasks[0].checkpoints[0]"),
    "absolute path": (changed(checkpoints=["/etc"]), "INVALID_ARGUMENT", "spec.tasks[0].checkpoints[0]"),
    "link out of the model root": (changed(checkpoints=["outside"]), "INVALID_ARGUMENT", "spec.tasks[0].checkpoints[0]"),
    "truncated checkpoint": (changed(checkpoints=["truncated"]), "FAILED_PRECONDITION", "spec.tasks[0].checkpoints[0]"),
    "config of an unknown family": (changed(checkpoints=["unknown"]),
                                    "FAILED_PRECONDITION", "spec.tasks[0].checkpoints[0]"),
    "vocabulary too small": (changed(checkpoints=["letter/step-06750"]),
                             "FAILED_PRECONDITION", "spec.tasks[0].checkpoints[0]"),
    "learned positions too short": (changed(checkpoints=["learned"], added_tokens=[0, 4000]),
                                    "FAILED_PRECONDITION", "spec.tasks[0].added_tokens[1]"),
    "duplicate seeds": (changed(seeds=[1, 1]), "INVALID_ARGUMENT", "spec.seeds[1]"),
    "priority out of range": (changed(priority=1000), "INVALID_ARGUMENT", "spec.priority"),
    "negative deadline": (changed(deadline_s=-1), "INVALID_ARGUMENT", "spec.deadline_s"),
    "bad label": (changed(labels={"a" * 64: "x"}), "INVALID_ARGUMENT", "spec.labels"),
    "too many cells": (changed(seeds=list(range(1, 2001)), added_tokens=list(range(0, 100)), hops=[1, 2, 3, 4]),
                       "INVALID_ARGUMENT", "spec"),
    "unknown padding": (changed(padding="zeros"), "INVALID_ARGUMENT", "spec.tasks[0].padding"),
    "window that does not fit": (changed(window={"target": 0, "pre_target": 8}),
                                 "INVALID_ARGUMENT", "spec.tasks[0].window.target"),
}


def make_model_root(folder):
    """The shipped checkpoints, and broken ones beside them."""
    root = folder / "models"
    for task in ("number", "letter"):
        (root / task).mkdir(parents=True)
        shutil.copytree(CHECKPOINTS / task / "step-06750", root / task / "step-06750")
    os.symlink(folder, root / "outside")
    truncated = root / "truncated"
    shutil.copytree(root / "number" / "step-06750", truncated)
    with open(truncated / "model.safetensors", "r+b") as weights:
        weights.truncate(1_000_000)
    unknown = root / "unknown"
    shutil.copytree(root / "number" / "step-06750", unknown)
    (unknown / "config.json").write_text('{"model_type": "mamba"}')
    write_learned_positions_model(root / "learned")
    return root


def write_learned_positions_model(folder, vocab=137, positions=64, width=8):
    """A one-layer GPT-2 of zeros whose vocabulary holds the Number task."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({
        "model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": width, "n_positions": positions,
        "vocab_size": vocab, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}))
    block = "transformer.h.0."
    shapes = {"transformer.wte.weight": [vocab, width], "transformer.wpe.weight": [positions, width],
              block + "attn.c_attn.weight": [width, 3 * width], block + "attn.c_attn.bias": [3 * width],
              block + "attn.c_proj.weight": [width, width], block + "attn.c_proj.bias": [width],
              block + "mlp.c_fc.weight": [width, 4 * width], block + "mlp.c_fc.bias": [4 * width],
              block + "mlp.c_proj.weight": [4 * width, width], block + "mlp.c_proj.bias": [width]}
    for norm in (block + "ln_1", block + "ln_2", "transformer.ln_f"):
        shapes[norm + ".weight"] = shapes[norm + ".bias"] = [width]
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    encoded = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(encoded)) + encoded + bytes(offset))


class BadSpecTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.cluster.model_root = make_model_root(cls.cluster.folder)
        cls.cluster.start_server()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__(None, None, None)

    def test_the_good_spec_is_good(self):
        plan = json.loads(self.cluster.cli("validate", self.cluster.write_spec(GOOD), "--json").stdout)
        self.assertEqual(int(plan["estimate"]["cells"]), 2)
        self.assertEqual(int(plan["estimate"]["sequences"]), 20)

    def test_bad_specs_are_refused_with_code_and_field(self):
        self.assertGreaterEqual(len(CASES), 20)
        for name, (spec, code, field) in CASES.items():
            for command in ("validate", "submit"):
                with self.subTest(name, command=command):
                    done = self.cluster.cli(command, self.cluster.write_spec(spec), "--json", check=False)
                    self.assertNotEqual(done.returncode, 0, done.stdout)
                    error = json.loads(done.stdout.splitlines()[-1])["error"]
                    self.assertEqual(error["code"], code, error)
                    self.assertEqual(error["field"], field, error)
                    self.assertTrue(error["message"], error)
        self.assertEqual(json.loads(self.cluster.cli("list", "--json").stdout or "{}").get("jobs", []), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
