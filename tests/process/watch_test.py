"""A watcher that is cut and resumes sees each event once, in order; cancel ends a job at once; a stopping server says so."""

import json
import unittest

from harness import Cluster, Watch, wait_for

SPEC = {
    "name": "watched",
    "scorers": ["accuracy"],
    "tasks": [{"task": "number", "hops": [1, 2, 3, 4], "added_tokens": [0, 20, 50], "samples": 300,
               "checkpoints": ["number/step-06750"]}],
}
LONG_SPEC = {
    "name": "long",
    "tasks": [{"task": "letter", "hops": [1, 2, 3, 4], "added_tokens": [850], "samples": 4000,
               "checkpoints": ["letter/step-06750"]}],
}


class WatchTest(unittest.TestCase):
    def test_cut_watcher_resumes_after_the_last_sequence_it_saw(self):
        with Cluster() as cluster:
            cluster.start_server()
            cluster.start_worker()
            job = cluster.submit(SPEC)
            seen = []
            for cut_after in (2, 5, 9):
                watch = Watch(cluster.address, job, after=seen[-1]["sequence"] if seen else 0)
                wait_for(lambda: len(seen) + len(watch.durable()) >= cut_after, f"event {cut_after}")
                watch.cut()
                seen += watch.durable()
            watch = Watch(cluster.address, job, after=seen[-1]["sequence"])
            code, error = watch.wait_end()
            self.assertEqual(code, 0, error)
            seen += watch.durable()
            sequences = [int(event["sequence"]) for event in seen]
            self.assertEqual(sequences, list(range(1, len(sequences) + 1)))
            self.assertIn("jobFinished", seen[-1])
            self.assertEqual(sum("jobFinished" in event for event in seen), 1)
            cells = [event["cellCompleted"]["result"]["cell"].get("index", 0) for event in seen
                     if "cellCompleted" in event]
            self.assertEqual(sorted(cells), list(range(12)))
            # A late watcher replays the same history.
            late = Watch(cluster.address, job)
            self.assertEqual(late.wait_end()[0], 0)
            self.assertEqual([event for event in late.durable()], seen)

    def test_cancel_stops_a_running_job(self):
        with Cluster(lease_duration="30s") as cluster:
            cluster.start_server()
            cluster.start_worker()
            job = cluster.submit(LONG_SPEC)
            watch = Watch(cluster.address, job)
            wait_for(lambda: any("unitStarted" in event for event in watch.snapshot()), "a unit to start")
            cluster.cli("cancel", job)
            watch.wait_end()
            self.assertEqual(watch.durable()[-1]["jobFinished"]["state"], "STATE_CANCELLED")
            # The worker is free again well before its unit could have ended by itself: a new job gets done.
            spec = dict(SPEC, tasks=[dict(SPEC["tasks"][0], hops=[1], added_tokens=[0], samples=50)])
            self.assertEqual(cluster.wait_finished(cluster.submit(spec))["state"], "STATE_SUCCEEDED")

    def test_server_told_to_stop_exits_cleanly_and_its_watcher_reconnects(self):
        with Cluster() as cluster:
            cluster.start_server()
            cluster.start_worker()
            job = cluster.submit(SPEC)
            watch = Watch(cluster.address, job)
            wait_for(lambda: watch.durable(), "an event")
            self.assertEqual(cluster.server.terminate(), 0, cluster.server.log())
            cluster.start_server()
            code, error = watch.wait_end()
            self.assertEqual(code, 0, error)
            sequences = [int(event["sequence"]) for event in watch.durable()]
            self.assertEqual(sequences, list(range(1, len(sequences) + 1)))

    def test_pending_job_says_why_it_waits(self):
        with Cluster() as cluster:
            cluster.start_server()
            job = cluster.submit(SPEC)
            self.assertIn("worker", cluster.get(job)["waitingReason"])

    def test_metrics_count_the_items_of_a_job(self):
        with Cluster() as cluster:
            cluster.start_server()
            worker = cluster.start_worker()
            job = cluster.submit(SPEC)
            cluster.wait_finished(job)
            items = sum(value for name, value in cluster.metrics().items()
                        if name.startswith("hopscope_items_scored_total"))
            self.assertEqual(items, 12 * 300)
            sequences = wait_for(
                lambda: cluster.metrics(worker.ready["metrics_listen"]).get("hopscope_worker_sequences_total"),
                "the worker's counter")
            self.assertEqual(sequences, 12 * 300)

    def test_run_leaves_results_in_json_and_csv(self):
        with Cluster() as cluster:
            cluster.start_server()
            cluster.start_worker()
            output = cluster.folder / "out"
            done = cluster.cli("run", cluster.write_spec(SPEC), "--json", "--output", output)
            events = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertTrue(any("jobFinished" in event for event in events))
            results = json.loads((output / "results.json").read_text())
            self.assertEqual(len(results["cells"]), 12)
            self.assertEqual(results["checkpoints"][0]["name"], "number/step-06750")
            for cell in results["cells"]:
                self.assertEqual(cell["items"], 300)
                self.assertLessEqual(cell["ci_low"], cell["accuracy"])
                self.assertGreaterEqual(cell["ci_high"], cell["accuracy"])
            self.assertEqual(len((output / "cells.csv").read_text().splitlines()), 13)


if __name__ == "__main__":
    unittest.main(verbosity=2)
