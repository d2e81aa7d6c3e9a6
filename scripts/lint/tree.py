#!/usr/bin/env python3
"""Checks what git would carry: its size, paths of somebody's machine, and marks of unfinished work.

    tree.py [ROOT]

Looks at tracked files and at new ones that .gitignore does not name. Prints one line per finding and exits with 1 if
there is one.
"""

import os
import re
import subprocess
import sys

MAX_TREE_BYTES = 48 << 20
MAX_TEXT_BYTES = 1 << 20  # larger files are data

# Absolute paths below folders where people keep their files; they mean nothing on another machine.
MACHINE_PATH = re.compile(r"(?<![\w.~$}/-])/(?:home|root|Users|work|workspace|mnt)/\w")
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")


def files_of(root: str) -> list[str]:
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, check=True).stdout
    names = {os.fsdecode(name) for name in listed.split(b"\0") if name}
    return sorted(name for name in names if os.path.lexists(os.path.join(root, name)))


def check_text(path: str, text: str) -> list[str]:
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := MACHINE_PATH.search(line):
            problems.append(f"{path}:{number}: path of a machine: {match[0]}...")
        if match := UNFINISHED.search(line):
            problems.append(f"{path}:{number}: unfinished: {match[0]}")
    return problems


def check_tree(root: str, max_bytes: int = MAX_TREE_BYTES) -> tuple[int, list[str]]:
    """Bytes of the tree, and what is wrong."""
    sizes, problems = {}, []
    for name in files_of(root):
        path = os.path.join(root, name)
        sizes[name] = os.lstat(path).st_size
        if os.path.islink(path) or sizes[name] > MAX_TEXT_BYTES:
            continue
        with open(path, "rb") as file:
            content = file.read()
        if b"\0" not in content:
            problems += check_text(name, content.decode("utf-8", errors="replace"))
    total = sum(sizes.values())
    if total > max_bytes:
        largest = sorted(sizes, key=sizes.get, reverse=True)[:5]
        problems.append(f"the tree has {total:,} bytes, more than {max_bytes:,}; largest: "
                        + ", ".join(f"{name} ({sizes[name]:,})" for name in largest))
    return total, problems


def main() -> int:
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    total, problems = check_tree(os.path.abspath(root))
    for problem in problems:
        print(problem)
    print(f"tree: {total / (1 << 20):.1f} of {MAX_TREE_BYTES >> 20} MiB, {len(problems)} findings")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
