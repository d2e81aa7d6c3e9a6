#!/usr/bin/env python3
"""Unpacks chosen parts of a wheel.

    unpack_wheel.py WHEEL DEST [--keep PREFIX]... [--drop PREFIX]... [--strip PREFIX] [--executable]

A member is unpacked where its name starts with one of the --keep prefixes (none: every member) and with none of the
--drop prefixes. --strip removes a leading folder from the names. It is an error when nothing is left.
"""

import argparse
import os
import shutil
import sys
import zipfile


def main() -> int:
    parser = argparse.ArgumentParser(description="Unpacks chosen parts of a wheel.")
    parser.add_argument("wheel")
    parser.add_argument("dest")
    parser.add_argument("--keep", action="append", default=[], metavar="PREFIX")
    parser.add_argument("--drop", action="append", default=[], metavar="PREFIX")
    parser.add_argument("--strip", default="", metavar="PREFIX")
    parser.add_argument("--executable", action="store_true", help="make the files executable")
    args = parser.parse_args()

    keep, drop = tuple(args.keep) or ("",), tuple(args.drop)
    root = os.path.realpath(args.dest)
    count = 0
    with zipfile.ZipFile(args.wheel) as wheel:
        for member in wheel.infolist():
            name = member.filename
            if member.is_dir() or not name.startswith(keep) or (drop and name.startswith(drop)):
                continue
            target = os.path.realpath(os.path.join(root, name.removeprefix(args.strip)))
            if not target.startswith(root + os.sep):
                print(f"unpack_wheel.py: {name} would land outside {root}", file=sys.stderr)
                return 1
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with wheel.open(member) as source, open(target, "wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
            if args.executable:
                os.chmod(target, 0o755)
            count += 1
    if count == 0:
        print(f"unpack_wheel.py: nothing in {args.wheel} matches", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
