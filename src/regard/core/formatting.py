"""Human-readable sizes, durations and counts."""

UNITS = ("KB", "MB", "GB", "TB")


def size(count: int) -> str:
    """Return a number of bytes with its unit: `12 MB`."""
    value, unit = float(count), "bytes"
    for larger in UNITS:
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:,.0f} {unit}" if value >= 10 or unit == "bytes" else f"{value:.1f} {unit}"


def duration(seconds: float) -> str:
    """Return a duration in its two largest units: `45 s`, `3 min 20 s`, `2 h 05 min`."""
    total = round(seconds)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60:02d} s"
    return f"{total // 3600} h {total % 3600 // 60:02d} min"


def count_noun(count: int, noun: str) -> str:
    """Return a count with its noun: '1 tag', '2 tags', '3,000 tags'."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
