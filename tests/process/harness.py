"""Starts real Hopscope programs for tests that cross processes: a server, workers, and the command line.

Everything listens on loopback with port 0; the bound addresses come from ready files. A Cluster kills what it started
and removes its folder when it is closed.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request

SOURCE_DIR = pathlib.Path(os.environ["HOPSCOPE_SOURCE_DIR"])
BIN_DIR = pathlib.Path(os.environ["HOPSCOPE_BIN_DIR"])
CHECKPOINTS = SOURCE_DIR / "checkpoints"

# Generous: only a hang should reach it.
PATIENCE_S = 120.0


def wait_for(condition, what, patience_s=PATIENCE_S, interval_s=0.02):
    """Polls until condition() is true and returns its value; fails the test after patience_s."""
    deadline = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"gave up after {patience_s:.0f} s waiting for {what}")
        time.sleep(interval_s)


class Program:
    """A running server or worker."""

    def __init__(self, name, arguments, folder):
        self.name = name
        self.ready_file = folder / f"{name}.ready.json"
        self.log_path = folder / f"{name}.log"
        self.ready_file.unlink(missing_ok=True)
        self._log = open(self.log_path, "ab")
        self.process = subprocess.Popen(
            [*arguments, "--ready_file", str(self.ready_file)],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        return self.log_path.read_text(errors="replace")

    def wait_ready(self):
        def ready():
            if self.process.poll() is not None:
                raise AssertionError(
                    f"{self.name} ended with {self.process.returncode} before it was ready:\n{self.log()}")
            return self.ready_file.exists()
        wait_for(ready, f"{self.name} to be ready")
        return json.loads(self.ready_file.read_text())

    def kill(self):
        """SIGKILL: no chance to say goodbye."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._log.close()

    def terminate(self):
        """SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=PATIENCE_S)
        self._log.close()
        return code


class Watch:
    """`hopscope watch JOB --json` in the background; events in the order of arrival."""

    def __init__(self, address, job, after=0):
        self.events = []
        self._lock = threading.Lock()
        self.process = subprocess.Popen(
            [str(BIN_DIR / "hopscope"), "watch", job, "--after", str(after), "--json", "--server", address],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._lock:
                self.events.append(json.loads(line))

    def snapshot(self):
        with self._lock:
            return list(self.events)

    def durable(self):
        """Events with a sequence number."""
        return [event for event in self.snapshot() if int(event.get("sequence", 0)) > 0]

    def cut(self):
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stderr.close()
        self.process.stdout.close()

    def wait_end(self):
        code = self.process.wait(timeout=PATIENCE_S)
        self._reader.join()
        error = self.process.stderr.read()
        self.process.stderr.close()
        self.process.stdout.close()
        return code, error


class Cluster:
    """One server on a state folder, and workers."""

    def __init__(self, lease_duration="1s", model_root=CHECKPOINTS):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hopscope-test-"))
        self.lease_duration = lease_duration
        self.model_root = model_root
        self.server = None
        self.address = None
        self.metrics_address = None
        self.workers = []
        self._started_workers = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if any(error) and self.server is not None:
            for program in [self.server, *self.workers]:
                print(f"--- log of {program.name}\n{program.log()[-4000:]}")
        for program in [*self.workers, self.server]:
            if program is not None:
                program.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start_server(self, extra=()):
        """Starts the server, on the address of the last one where there was one."""
        self.server = Program("server", [
            str(BIN_DIR / "hopscope-server"), "--listen", self.address or "127.0.0.1:0",
            "--metrics_listen", "127.0.0.1:0", "--state_dir", str(self.folder / "state"),
            "--model_root", str(self.model_root), "--lease_duration", self.lease_duration, *extra], self.folder)
        ready = self.server.wait_ready()
        self.address = ready["listen"]
        self.metrics_address = ready["metrics_listen"]
        return self

    def start_worker(self, binary="hopscope-worker", extra=()):
        self._started_workers += 1
        worker = Program(f"worker-{self._started_workers}", [
            str(BIN_DIR / binary), "--server", self.address, "--model_root", str(self.model_root),
            "--threads", "1", "--metrics_listen", "127.0.0.1:0", *extra], self.folder)
        worker.ready = worker.wait_ready()
        self.workers.append(worker)
        return worker

    def write_spec(self, spec, name="spec.yaml"):
        """JSON is YAML."""
        path = self.folder / name
        path.write_text(json.dumps(spec) if not isinstance(spec, str) else spec)
        return path

    def cli(self, *arguments, check=True):
        """Runs `hopscope ARGUMENTS --server ...`; returns the completed process."""
        done = subprocess.run([str(BIN_DIR / "hopscope"), *map(str, arguments), "--server", self.address],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        if check and done.returncode != 0:
            raise AssertionError(f"hopscope {' '.join(map(str, arguments))} ended with {done.returncode}:\n"
                                 f"{done.stdout}\n{done.stderr}")
        return done

    def submit(self, spec):
        """Submits and returns the job's name."""
        done = self.cli("submit", self.write_spec(spec), "--json")
        return json.loads(done.stdout)["name"]

    def get(self, job):
        return json.loads(self.cli("get", job, "--json").stdout)

    def wait_finished(self, job, patience_s=300.0):
        finished = {"STATE_SUCCEEDED", "STATE_FAILED", "STATE_CANCELLED", "STATE_PARTIALLY_SUCCEEDED"}

        def state():
            found = self.get(job)
            return found if found["state"] in finished else None
        return wait_for(state, f"{job} to end", patience_s, 0.1)

    def results(self, job, name):
        """results.json of a job, through `hopscope results --output`."""
        folder = self.folder / name
        self.cli("results", job, "--output", folder)
        return json.loads((folder / "results.json").read_text())

    def metrics(self, address=None):
        """Samples of /metrics as {name{labels}: value}."""
        with urllib.request.urlopen(f"http://{address or self.metrics_address}/metrics", timeout=10) as response:
            text = response.read().decode()
        samples = {}
        for line in text.splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                samples[name] = float(value)
        return samples
