"""`regard` with a clock that stands still while it is stopped; time_to_quality.py starts it.

usage: PYTHONPATH=CHECKOUT/src python own_clock.py CLOCKFILE [words of the regard command ...]
CLOCKFILE holds one double: the seconds for which this process has been stopped so far. What
stops it adds to that number before it resumes it, so that a budget counts running time only.
"""

import contextlib
import importlib
import mmap
import struct
import sys
import time
import types


def main() -> None:
    """Runs regard's command line with the clock of this process."""
    with open(sys.argv[1], "rb") as file:
        stopped = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    sys.argv = ["regard", *sys.argv[2:]]
    own = types.SimpleNamespace(**vars(time))
    own.monotonic = lambda: time.monotonic() - struct.unpack("d", stopped[:8])[0]
    jobs = ("experiments.train_job", "cli.commands.train")
    for name in ("training.run", "training.loop", "training.session", *jobs, "cli"):
        with contextlib.suppress(ModuleNotFoundError):  # versions differ in their files
            importlib.import_module(f"regard.{name}")
    changed = 0
    for name, module in list(sys.modules.items()):
        if name.startswith("regard.") and getattr(module, "time", None) is time:
            vars(module)["time"] = own
            changed += 1
    if not changed:
        sys.exit("own_clock.py: no part of regard reads time.monotonic; adapt this script")
    importlib.import_module("regard.cli").main()


if __name__ == "__main__":
    main()
