#!/usr/bin/env python3
"""Checks that includes point the way the folders allow: rpc -> jobs -> store, link -> engine, everything -> common.

    include_directions.py [ROOT]

Prints one line per wrong include and exits with 1 if there is one. A C++ file in a folder that the table below does not
know is an error too, so that the table cannot fall behind the tree.
"""

import os
import re
import sys

# The folders of ours whose headers the files of a folder may include; the longest folder that holds a file decides.
# Messages made from the .proto files ("hopscope/v1/x.pb.h") are open to all.
OURS = {
    "common": ["common"],
    "server": ["server", "common"],  # main.cc, which wires the rest
    "server/rpc": ["server/rpc", "server/jobs", "common"],
    "server/jobs": ["server/jobs", "server/store", "common"],
    "server/store": ["server/store", "common"],
    "worker": ["worker", "common"],  # main.cc and the commands that run without a server
    "worker/link": ["worker/link", "worker/engine", "common"],
    "worker/engine": ["worker/engine", "common"],
    "client": ["client", "common"],
    "tests": ["tests", "client", "server", "worker", "common"],
    "bench": ["bench", "client", "server", "worker", "common"],
}

# Libraries that only some folders may see: name, what its headers look like, folders with the right, folders below
# those without it.
LIBRARIES = [
    ("LibTorch", re.compile(r"^(torch|ATen|c10|caffe2|torchgen)/"), ["worker/engine"], []),
    (
        "gRPC",
        re.compile(r"^(grpc|grpcpp|grpc\+\+)/|\.grpc\.pb\.h$"),
        ["common/rpc", "server", "worker", "client", "tests", "bench"],
        ["server/jobs", "server/store", "worker/engine"],
    ),
    ("a database", re.compile(r"^(sqlite3(ext)?\.h|libpq-fe\.h|libpq/|pqxx/)"), ["server/store"], []),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
SOURCE = (".h", ".hpp", ".cc", ".cpp", ".cu", ".cuh", ".inc")
NOT_OURS = {"build", "third_party", "node_modules", "demo-results"}


def inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def folder_of(path: str) -> str | None:
    """The entry of OURS that decides for a file."""
    fitting = [folder for folder in OURS if inside(os.path.dirname(path), folder)]
    return max(fitting, key=len, default=None)


def check_include(path: str, header: str, quoted: bool) -> str | None:
    """What is wrong with this include in this file, or None."""
    for name, pattern, allowed, denied in LIBRARIES:
        if not pattern.search(header):
            continue
        # The longest folder that speaks about this file decides.
        rights = [(len(f), True) for f in allowed if inside(path, f)] + [(len(f), False) for f in denied if inside(path, f)]
        if not max(rights, default=(0, False))[1]:
            but = f", not in {' or '.join(denied)}" if denied else ""
            return f"{header}: headers of {name} may be included only under {', '.join(allowed)}{but}"
    top = header.split("/")[0]
    if top == "hopscope" or top not in {folder.split("/")[0] for folder in OURS}:
        if quoted and "/" not in header:
            return f"{header}: name our headers from the root of the tree, and others' in angle brackets"
        return None
    folder = folder_of(path)
    if any(inside(header, target) for target in OURS[folder]):
        return None
    return f"{header}: {folder} may include only {', '.join(OURS[folder])}"


def check_file(root: str, path: str) -> list[str]:
    if folder_of(path) is None:
        return [f"{path}:1: no rule says what this folder may include; add one to scripts/lint/include_directions.py"]
    problems = []
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if match := INCLUDE.match(line):
                problem = check_include(path, match[1] or match[2], match[1] is not None)
                if problem:
                    problems.append(f"{path}:{number}: {problem}")
    return problems


def check_tree(root: str) -> tuple[int, list[str]]:
    """Number of files read, and what is wrong."""
    files, problems = 0, []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(s for s in subfolders if not s.startswith(".") and s not in NOT_OURS)
        for name in sorted(names):
            if name.endswith(SOURCE):
                files += 1
                problems += check_file(root, os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/"))
    return files, problems


def main() -> int:
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    files, problems = check_tree(os.path.abspath(root))
    for problem in problems:
        print(problem)
    if files == 0:
        print(f"include_directions: no C++ file under {root}")
        return 1
    print(f"include_directions: {files} files, {len(problems)} wrong includes")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
