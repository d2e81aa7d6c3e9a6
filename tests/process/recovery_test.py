"""A job's numbers are the same for any number of workers, and survive workers and servers that are killed."""

import unittest

from harness import Cluster, Watch, wait_for

# Enough units that a kill falls into the middle of the job: a unit is about 1,200 sequences of 17 tokens, and 60 of 317.
SPEC = {
    "name": "recovery",
    "seed": 7,
    "scorers": ["accuracy", {"positional_symbolic": {"taus": [1.0e-4, 0.05]}}],
    "tasks": [
        {"task": "number", "hops": [1, 3], "added_tokens": [0, 50], "samples": 700,
         "checkpoints": ["number/step-06750"]},
        {"task": "letter", "hops": [2, 4], "added_tokens": [0], "samples": 1500,
         "checkpoints": ["letter/step-06750"]},
    ],
}
ITEMS = 2 * 2 * 700 + 2 * 1500


class RecoveryTest(unittest.TestCase):
    calm = None

    @classmethod
    def setUpClass(cls):
        with Cluster() as cluster:
            cluster.start_server()
            cluster.start_worker()
            job = cluster.submit(SPEC)
            finished = cluster.wait_finished(job)
            assert finished["state"] == "STATE_SUCCEEDED", finished
            cls.calm = cluster.results(job, "calm")

    def assert_same_as_calm(self, results):
        self.assertEqual(results["cells"], self.calm["cells"])
        self.assertEqual(results["heads"], self.calm["heads"])
        self.assertEqual(sum(cell["items"] + cell["items_failed"] for cell in results["cells"]), ITEMS)

    def test_calm_run_counts_each_item_once_and_is_right(self):
        self.assertEqual(len(self.calm["cells"]), 6)
        self.assertEqual(sum(cell["items"] for cell in self.calm["cells"]), ITEMS)
        # 6 cells x 2 taus x at least 2 metrics x 12 layers x 1 head.
        self.assertGreaterEqual(len(self.calm["heads"]), 6 * 2 * 2 * 12)
        for cell in self.calm["cells"]:
            if cell["added_tokens"] == 0:
                self.assertGreater(cell["accuracy"], 0.99, cell)

    def test_three_workers_give_bit_identical_results(self):
        with Cluster() as cluster:
            cluster.start_server()
            for _ in range(3):
                cluster.start_worker()
            job = cluster.submit(SPEC)
            self.assertEqual(cluster.wait_finished(job)["state"], "STATE_SUCCEEDED")
            self.assert_same_as_calm(cluster.results(job, "three"))

    def test_killed_worker_loses_and_doubles_nothing_and_is_named_in_the_history(self):
        with Cluster() as cluster:
            cluster.start_server()
            victim = cluster.start_worker()
            job = cluster.submit(SPEC)
            watch = Watch(cluster.address, job)
            wait_for(lambda: any("unitStarted" in event for event in watch.snapshot()), "a unit to start")
            victim.kill()
            cluster.start_worker()
            cluster.start_worker()
            self.assertEqual(cluster.wait_finished(job)["state"], "STATE_SUCCEEDED")
            code, error = watch.wait_end()
            self.assertEqual(code, 0, error)
            lost = [event["workerLost"] for event in watch.durable() if "workerLost" in event]
            self.assertEqual(len(lost), 1, watch.durable())
            self.assertIn(str(victim.pid), lost[0]["description"])
            self.assertTrue(lost[0]["units"])
            failures = [event["unitFailed"] for event in watch.durable() if "unitFailed" in event]
            self.assertTrue(all(failure["failure"]["reason"] == "WORKER_LOST" for failure in failures), failures)
            self.assert_same_as_calm(cluster.results(job, "killed"))

    def test_killed_server_goes_on_where_it_was(self):
        with Cluster() as cluster:
            cluster.start_server()
            cluster.start_worker()
            cluster.start_worker()
            job = cluster.submit(SPEC)
            watch = Watch(cluster.address, job)
            wait_for(lambda: any("cellCompleted" in event for event in watch.snapshot()), "a cell to complete")
            cluster.server.kill()
            cluster.start_server()
            self.assertEqual(cluster.wait_finished(job)["state"], "STATE_SUCCEEDED")
            # The watcher that was there all along reconnected by itself.
            code, error = watch.wait_end()
            self.assertEqual(code, 0, error)
            sequences = [int(event["sequence"]) for event in watch.durable()]
            self.assertEqual(sequences, list(range(1, len(sequences) + 1)))
            self.assertIn("jobFinished", watch.durable()[-1])
            self.assert_same_as_calm(cluster.results(job, "restarted"))

    def test_worker_told_to_stop_hands_back_and_exits_cleanly(self):
        with Cluster() as cluster:
            cluster.start_server()
            leaving = cluster.start_worker()
            cluster.start_worker()
            job = cluster.submit(SPEC)
            watch = Watch(cluster.address, job)
            wait_for(lambda: any("unitStarted" in event for event in watch.snapshot()), "a unit to start")
            self.assertEqual(leaving.terminate(), 0, leaving.log())
            self.assertEqual(cluster.wait_finished(job)["state"], "STATE_SUCCEEDED")
            code, error = watch.wait_end()
            self.assertEqual(code, 0, error)
            self.assertFalse([event for event in watch.durable() if "unitFailed" in event or "workerLost" in event])
            self.assert_same_as_calm(cluster.results(job, "drained"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
