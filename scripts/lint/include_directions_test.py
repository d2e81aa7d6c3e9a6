#!/usr/bin/env python3
"""Tests of include_directions.py."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import include_directions  # noqa: E402


class IncludeDirectionsTest(unittest.TestCase):
    def check(self, path: str, *lines: str) -> list[str]:
        """Checks a tree that holds one file."""
        with tempfile.TemporaryDirectory() as root:
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            files, problems = include_directions.check_tree(root)
            self.assertEqual(files, 1)
            return problems

    def assert_allowed(self, path: str, include: str):
        self.assertEqual(self.check(path, f"#include {include}"), [], f"{include} in {path}")

    def assert_refused(self, path: str, include: str):
        problems = self.check(path, "// A comment.", f"#include {include}")
        self.assertEqual(len(problems), 1, f"{include} in {path}")
        self.assertTrue(problems[0].startswith(f"{path}:2: "), problems[0])

    def test_arrows_of_the_server_go_one_way(self):
        self.assert_allowed("server/rpc/eval_service.cc", '"server/jobs/job_service.h"')
        self.assert_allowed("server/jobs/planner.cc", '"server/store/store.h"')
        self.assert_allowed("server/main.cc", '"server/store/sqlite_store.h"')
        self.assert_refused("server/jobs/planner.cc", '"server/rpc/eval_service.h"')
        self.assert_refused("server/store/store.h", '"server/jobs/job_service.h"')
        self.assert_refused("server/rpc/eval_service.cc", '"server/store/store.h"')

    def test_link_sees_the_engine_and_not_the_other_way_round(self):
        self.assert_allowed("worker/link/link.cc", '"worker/engine/engine.h"')
        self.assert_refused("worker/engine/fake_engine.cc", '"worker/link/link.h"')

    def test_programs_do_not_see_one_another(self):
        self.assert_refused("client/client.cc", '"server/jobs/job_service.h"')
        self.assert_refused("client/cli/main.cc", '"worker/engine/engine.h"')
        self.assert_refused("server/main.cc", '"worker/engine/engine.h"')
        self.assert_refused("worker/main.cc", '"client/client.h"')
        self.assert_refused("common/status.cc", '"server/main.h"')
        self.assert_allowed("tests/process/run_test.cc", '"client/client.h"')

    def test_libtorch_stays_in_the_engine(self):
        for header in ("<torch/torch.h>", "<ATen/ATen.h>", "<c10/util/Half.h>", '"torch/torch.h"'):
            self.assert_allowed("worker/engine/model/gpt_j.cc", header)
            for path in ("worker/link/link.cc", "worker/main.cc", "server/main.cc", "client/client.h", "common/status.h",
                         "tests/golden/golden_test.cc"):
                self.assert_refused(path, header)

    def test_grpc_stays_out_of_the_cores(self):
        for header in ("<grpcpp/grpcpp.h>", "<grpc/status.h>", '"hopscope/v1/evaluation.grpc.pb.h"',
                       '"hopscope/v1/evaluation_mock.grpc.pb.h"'):
            for path in ("server/rpc/eval_service.cc", "server/main.cc", "worker/link/link.cc", "worker/main.cc",
                         "client/client.cc", "common/rpc/convert.cc", "tests/process/run_test.cc"):
                self.assert_allowed(path, header)
            for path in ("server/jobs/planner.cc", "server/store/store.h", "worker/engine/tasks/number.cc",
                         "common/status.cc"):
                self.assert_refused(path, header)

    def test_messages_are_open_to_all(self):
        for path in ("worker/engine/engine.h", "server/store/store.h", "common/spec/catalog.h", "client/client.h"):
            self.assert_allowed(path, '"hopscope/v1/evaluation.pb.h"')

    def test_databases_stay_in_the_store(self):
        self.assert_allowed("server/store/sqlite_store.cc", "<sqlite3.h>")
        self.assert_refused("server/jobs/planner.cc", "<sqlite3.h>")
        self.assert_refused("tests/process/run_test.cc", '"sqlite3.h"')

    def test_a_header_is_named_from_the_root(self):
        self.assert_refused("server/jobs/planner.cc", '"planner.h"')

    def test_spacing_and_comments(self):
        self.assertEqual(len(self.check("client/a.h", "#  include   <torch/torch.h>")), 1)
        self.assertEqual(self.check("client/a.h", "// #include <torch/torch.h>"), [])

    def test_a_similar_name_is_not_the_folder(self):
        self.assert_refused("server/jobs/planner.cc", '"server/storefront/x.h"')
        self.assert_allowed("server/jobs/planner.cc", "<torchlight/x.h>")

    def test_an_unknown_folder_is_an_error(self):
        self.assertIn("no rule", self.check("plugins/a.cc", "#include <vector>")[0])

    def test_built_and_hidden_folders_are_left_out(self):
        with tempfile.TemporaryDirectory() as root:
            for path in ("build/a.cc", ".cache/b.h", "common/c.h"):
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write('#include "server/main.h"\n')
            files, problems = include_directions.check_tree(root)
            self.assertEqual((files, len(problems)), (1, 1))

    def test_the_program_fails_on_a_wrong_include_and_on_an_empty_tree(self):
        def run(root):
            return subprocess.run([sys.executable, os.path.join(HERE, "include_directions.py"), root],
                                  capture_output=True, text=True, check=False)

        with tempfile.TemporaryDirectory() as root:
            self.assertEqual(run(root).returncode, 1)
            os.makedirs(os.path.join(root, "client"))
            path = os.path.join(root, "client", "a.cc")
            with open(path, "w", encoding="utf-8") as file:
                file.write("#include <vector>\n")
            self.assertEqual(run(root).returncode, 0)
            with open(path, "a", encoding="utf-8") as file:
                file.write("#include <ATen/ATen.h>\n")
            wrong = run(root)
            self.assertEqual(wrong.returncode, 1)
            self.assertIn("client/a.cc:2: ATen/ATen.h", wrong.stdout)


if __name__ == "__main__":
    unittest.main()
