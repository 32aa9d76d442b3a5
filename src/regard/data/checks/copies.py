"""Find files with equal content: copies in the training set, and dev files that are also in it."""

from collections.abc import Hashable, Mapping, Sequence

from regard.core.formatting import count_noun

Same = list[list[str]]  # names of two files with equal content each, the earlier one first


def find_copies(train: Mapping[str, Hashable], dev: Mapping[str, Hashable]) -> tuple[Same, Same]:
    """Return the copies in the training set, and the dev files that occur in it.

    train, dev: content of each file by its name.
    """
    first: dict[Hashable, str] = {}
    copies: Same = []
    for name, content in train.items():
        if content in first:
            copies.append([first[content], name])
        else:
            first[content] = name
    return copies, [[first[content], name] for name, content in dev.items() if content in first]


def copy_warnings(
    noun: str,
    copies: int,
    first_copy: Sequence[str],
    overlap: int,
    first_overlap: Sequence[str],
    dev_count: int,
) -> list[str]:
    """Return the warnings about copies and overlap. noun: name of a file, such as "image"."""
    found = []
    if copies:
        first, other = first_copy
        count = f"{count_noun(copies, noun)} of train equal to an earlier one"
        found.append(f"{count}, first: {other} = {first}")
    if overlap:
        first, other = first_overlap
        count = f"{overlap:,} of {dev_count:,} dev {noun}s"
        found.append(f"{count} also occur in train (data leakage), first: {other} = {first}")
    return found
