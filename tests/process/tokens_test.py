"""Sequences of the user's own go from a file through server and workers, and survive the loss of both."""

import json
import os
import random
import subprocess
import unittest

from harness import BIN_DIR, CHECKPOINTS, Cluster, Watch, wait_for

# Letter sequences with their answers, of one to four hops.
LETTER = [
    ([17, 4, 50, 27, 56, 4, 15, 2, 92, 83, 95, 123, 120, 100, 94, 93, 114], 15),
    ([42, 34, 26, 56, 16, 28, 35, 39, 126, 72, 76, 79, 93, 95, 100, 81, 115], 42),
    ([30, 3, 38, 57, 35, 50, 3, 35, 121, 104, 87, 93, 101, 89, 107, 78, 98], 50),
    ([54, 5, 64, 61, 19, 28, 17, 29, 74, 123, 123, 80, 105, 102, 87, 88, 117], 5),
]


def write_lines(cluster, name, lines):
    with open(os.path.join(cluster.folder, name), "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")


def spec(name, scorers=("accuracy",)):
    return {"name": "tokens", "scorers": list(scorers),
            "tasks": [{"task": "tokens", "tokens_file": name, "checkpoints": ["letter/step-06750"]}]}


def many_lines():
    """Enough for many units, with and without labels, of several lengths."""
    draw = random.Random(1)
    lines = []
    for i in range(1500):
        line = {"tokens": [draw.randint(1, 128) for _ in range(draw.choice([5, 17, 300]))]}
        if i % 3:
            line["label"] = draw.randint(1, 64)
        lines.append(line)
    return lines


class TokensTest(unittest.TestCase):
    def test_a_file_is_answered_where_it_has_labels(self):
        with Cluster() as cluster:
            lines = [{"tokens": tokens, "label": label} for tokens, label in LETTER]
            lines += [{"tokens": tokens, "label": 1} for tokens, _ in LETTER[:1]]
            lines += [{"tokens": tokens[3:]} for tokens, _ in LETTER[:2]]
            write_lines(cluster, "lines.jsonl", lines)
            output = os.path.join(cluster.folder, "out")
            path = cluster.write_spec(spec("lines.jsonl", ["accuracy", "positional_symbolic"]))
            done = subprocess.run([BIN_DIR / "hopscope", "run", path, "--local", "--model_root", CHECKPOINTS,
                                   "--workers", "1", "--output", output], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(output, "results.json"), encoding="utf-8") as file:
                results = json.load(file)
            self.assertEqual(len(results["cells"]), 1)
            cell = results["cells"][0]
            self.assertEqual((cell["task"], cell["hops"], cell["added_tokens"]), ("tokens", 1, 0))
            self.assertEqual((cell["items"], cell["items_unlabelled"], cell["correct"]), (7, 2, 4))
            self.assertAlmostEqual(cell["accuracy"], 0.8)
            self.assertTrue(cell["tokens"].startswith("sha256:"))
            self.assertEqual({head["items"] for head in results["heads"]}, {7})

    def test_a_file_without_labels_has_scores_but_no_accuracy(self):
        with Cluster() as cluster:
            cluster.start_server()
            cluster.start_worker()
            write_lines(cluster, "lines.jsonl", [{"tokens": tokens} for tokens, _ in LETTER])
            job = cluster.submit(spec("lines.jsonl"))
            self.assertEqual(cluster.wait_finished(job)["state"], "STATE_SUCCEEDED")
            cell = cluster.results(job, "plain")["cells"][0]
            self.assertEqual((cell["items"], cell["items_unlabelled"]), (4, 4))
            for key in ("accuracy", "stderr", "ci_low", "ci_high"):
                self.assertIsNone(cell[key], key)

    def test_a_wrong_file_is_refused_with_its_line(self):
        with Cluster() as cluster:
            cluster.start_server()
            write_lines(cluster, "lines.jsonl", [{"tokens": [1]}, {"tokens": [1], "labels": 2}])
            done = cluster.cli("submit", cluster.write_spec(spec("lines.jsonl")), check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn('lines.jsonl:2: unknown key "labels"', done.stderr)
            write_lines(cluster, "lines.jsonl", [{"tokens": [1]}, {"tokens": [129]}])
            done = cluster.cli("submit", cluster.write_spec(spec("lines.jsonl")), check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("line 2 of the sequences has token id 129", done.stderr)

    def test_killed_worker_and_server_lose_nothing(self):
        fake = dict(binary="hopscope-fake-worker", extra=("--fake_delay", "300ms"))
        with Cluster() as cluster:
            write_lines(cluster, "lines.jsonl", many_lines())
            cluster.start_server()
            cluster.start_worker(binary="hopscope-fake-worker")
            calm = cluster.submit(spec("lines.jsonl"))
            self.assertEqual(cluster.wait_finished(calm)["state"], "STATE_SUCCEEDED")
            calm = cluster.results(calm, "calm")
        self.assertEqual(calm["cells"][0]["items"], 1500)
        self.assertEqual(calm["cells"][0]["items_unlabelled"], 500)
        with Cluster() as cluster:
            write_lines(cluster, "lines.jsonl", many_lines())
            cluster.start_server()
            victim = cluster.start_worker(**fake)
            job = cluster.submit(spec("lines.jsonl"))
            watch = Watch(cluster.address, job)
            wait_for(lambda: any("unitStarted" in event for event in watch.snapshot()), "a unit to start")
            victim.kill()
            cluster.server.kill()
            cluster.start_server()
            cluster.start_worker(**fake)
            finished = cluster.wait_finished(job)
            self.assertEqual(finished["state"], "STATE_SUCCEEDED")
            self.assertGreater(int(finished["totals"]["units"]), 3)
            self.assertEqual(cluster.results(job, "killed")["cells"], calm["cells"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
