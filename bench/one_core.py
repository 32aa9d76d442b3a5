"""`regard` with one thread, whose training budgets are processor time: other work does not count.

usage: REGARD="python bench/one_core.py" python bench/images.py
       python bench/one_core.py [words of the regard command ...]
"""

import os
import sys

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported


def main() -> None:
    """Run the command line of regard."""
    if sys.argv[1:2] == ["train"]:
        from cells import use_processor_clock

        use_processor_clock()
    from regard.cli.main_app import main as run

    sys.argv[0] = "regard"
    run()


if __name__ == "__main__":
    main()
