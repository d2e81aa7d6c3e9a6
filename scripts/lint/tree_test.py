#!/usr/bin/env python3
"""Tests of tree.py."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import tree  # noqa: E402


class TreeTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = self.folder.name
        subprocess.run(["git", "init", "--quiet", self.root], check=True)

    def write(self, name: str, content: str | bytes):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())

    def problems(self, **options) -> list[str]:
        return tree.check_tree(self.root, **options)[1]

    def test_a_clean_tree_passes(self):
        self.write("a/b.cc", "// See https://example.com/home/page and docs/work/x, ~/work/x, /usr/include, /tmp.\n")
        self.assertEqual(self.problems(), [])

    def test_paths_of_a_machine_are_found(self):
        for top in ("home", "root", "work", "Users"):
            self.write("a.txt", f"first\nsee /{top}/someone/file\n")
            self.assertEqual(self.problems(), [f"a.txt:2: path of a machine: /{top}/s..."])

    def test_unfinished_work_is_found(self):
        for mark in ("TO" "DO", "FIX" "ME", "XX" "X"):
            self.write("a.cc", f"// {mark}: later\n")
            self.assertEqual(self.problems(), [f"a.cc:1: unfinished: {mark}"])
        self.write("a.cc", "mkdtemp(\"run-XXXXXX\");\n")
        self.assertEqual(self.problems(), [])

    def test_binary_files_are_only_weighed(self):
        self.write("a.bin", b"\0/home/someone/file")
        self.assertEqual(self.problems(), [])

    def test_a_heavy_tree_fails_and_names_the_largest_file(self):
        self.write("small.txt", "x")
        self.write("large.bin", b"\0" * 1000)
        self.assertEqual(self.problems(max_bytes=1001), [])
        problem, = self.problems(max_bytes=1000)
        self.assertIn("1,001 bytes", problem)
        self.assertIn("largest: large.bin (1,000)", problem)

    def test_ignored_files_do_not_count(self):
        self.write(".gitignore", "/build/\n")
        self.write("build/a.txt", "TO" "DO\n")
        self.assertEqual(self.problems(), [])


if __name__ == "__main__":
    unittest.main()
