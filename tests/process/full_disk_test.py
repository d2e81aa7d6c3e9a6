"""A server whose disk is full says so at once, keeps what it has, and serves again by itself when there is room."""

import json
import os
import subprocess
import unittest
import urllib.error
import urllib.request

from harness import Cluster, wait_for

SPEC = {
    "name": "full-disk",
    "scorers": ["accuracy"],
    "tasks": [{"task": "number", "hops": [1, 2, 3, 4], "added_tokens": list(range(200)), "samples": 1,
               "checkpoints": ["number/step-06750"]}],
}


class FullDiskTest(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.state = self.cluster.folder / "state"
        self.state.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(self.state)],
                                 capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"needs the right to mount a tmpfs: {mounted.stderr.strip()}")
        # Before the folder is removed, and after the server is gone.
        self.addCleanup(subprocess.run, ["umount", "--lazy", str(self.state)], check=False)
        self.cluster.start_server()

    def readyz(self):
        try:
            with urllib.request.urlopen(f"http://{self.cluster.metrics_address}/readyz", timeout=10) as response:
                return response.status
        except urllib.error.HTTPError as error:
            return error.code

    def fill(self):
        with open(self.state / "filler", "wb", buffering=0) as filler:
            size = 1 << 16
            while size > 0:
                try:
                    filler.write(bytes(size))
                except OSError:
                    size //= 2

    def submit(self):
        return self.cluster.cli("submit", self.cluster.write_spec(SPEC), "--json", check=False)

    def test_a_full_disk_is_told_and_left_behind(self):
        kept = json.loads(self.submit().stdout)["name"]
        self.assertEqual(self.readyz(), 200)
        self.fill()

        def refused():
            done = self.submit()
            return done if done.returncode != 0 else None
        # What lies in the log of the database still has room.
        done = wait_for(refused, "the disk to be full")
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertEqual(json.loads(done.stdout.splitlines()[-1])["error"]["reason"], "STORE_UNAVAILABLE")
        self.assertIn("is not ready", done.stderr)
        # No probe has to find it out first.
        self.assertEqual(self.readyz(), 503)
        self.assertEqual(self.cluster.get(kept)["state"], "STATE_PENDING")

        os.unlink(self.state / "filler")
        wait_for(lambda: self.readyz() == 200, "the server to serve again")
        self.assertEqual(self.submit().returncode, 0)
        self.assertEqual(self.cluster.get(kept)["state"], "STATE_PENDING")


if __name__ == "__main__":
    unittest.main(verbosity=2)
