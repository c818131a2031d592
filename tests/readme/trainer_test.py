#!/usr/bin/env python3
"""Runs the README's trainer as two processes on one daemon.

  trainer_test.py BIN_DIRECTORY TRAINER
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(sys.argv.pop(1))
TRAINER = sys.argv.pop(1)
LIMIT_S = 240


class Trainer(unittest.TestCase):
    def test_two_ranks_train_a_hundred_steps(self):
        with tempfile.TemporaryDirectory(prefix="holdfast.") as directory:
            socket, ready = f"{directory}/worker.sock", f"{directory}/ready.json"
            daemon = subprocess.Popen([BIN / "holdfastd", f"--worker_socket={socket}", "--num_ranks=2",
                                       f"--ready_file={ready}"])
            try:
                while not os.path.exists(ready):
                    self.assertIsNone(daemon.poll(), "holdfastd has ended")
                    time.sleep(0.05)
                workers = [subprocess.Popen([TRAINER, socket, str(rank)]) for rank in range(2)]
                self.assertEqual([worker.wait(LIMIT_S) for worker in workers], [0, 0])
                status = subprocess.run([BIN / "holdfastctl", "status", "--json", f"--address=unix:{socket}"], check=True,
                                        stdout=subprocess.PIPE, text=True)
                state = json.loads(status.stdout)["models"][0]["state"]
                self.assertEqual((state["step"], state["emas"][0]["num_updates"]), ("100", "100"))
            finally:
                daemon.terminate()
                self.assertEqual(daemon.wait(LIMIT_S), 0)


if __name__ == "__main__":
    unittest.main()
