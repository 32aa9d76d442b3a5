"""File descriptors: each connection needs one, and the system limits their number."""

import os
import sys

from regard.core.errors import warn

OVER_LIMIT_CONNECTIONS = 64  # connections above the maximum that may still request /health
ACCEPT_BATCH = 32  # connections accepted at once, before the first of them is counted
# The event loop accepts up to this many batches before it closes a connection to make room.
UNCOUNTED = 4 * ACCEPT_BATCH
SPARE = 32  # for files that are opened later
MIN_CONNECTIONS = 8


def fit_connections(max_connections: int) -> int:
    """Raise the descriptor limit as needed; return how many connections it allows.

    Print a warning if it allows fewer than `max_connections`.
    """
    others = num_open_descriptors() + OVER_LIMIT_CONNECTIONS + UNCOUNTED + SPARE
    limit = raise_limit(others + max_connections)
    if limit is None or limit >= others + max_connections:
        return max_connections
    fitted = max(MIN_CONNECTIONS, limit - others)
    warn(
        f"at most {fitted} connections instead of {max_connections}: "
        f"the limit of open files is {limit}",
        help=f"raise it with ulimit -n {others + max_connections}",
    )
    return fitted


def raise_limit(needed: int) -> int | None:
    """Raise the soft limit of open files to `needed`, or to the hard limit if that is lower.

    Return the limit after that, or None if the system has no such limit.
    """
    if sys.platform == "win32":
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    if soft >= needed:
        return soft
    target = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    except (OSError, ValueError):  # macOS has another limit, which the hard limit does not show
        return soft
    return target


def num_open_descriptors() -> int:
    """Return the number of open file descriptors of this process (an estimate without /proc)."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 64
