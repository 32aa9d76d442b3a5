"""YAML texts that may come from anywhere."""

from typing import Any

import yaml


class InvalidYaml(ValueError):
    """An invalid YAML text. The message starts with the line: ` line 3: invalid YAML: ...`."""


class PlainLoader(yaml.SafeLoader):
    """A loader of plain values. Aliases are errors: a few, nested, are billions of values."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next node; raise ComposerError if it is an alias."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise yaml.composer.ComposerError(None, None, "aliases are not supported", mark)
        return super().compose_node(parent, index)


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML text; raise InvalidYaml if it is invalid or has aliases."""
    try:
        return yaml.load(text, PlainLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        line = f" line {mark.line + 1}" if mark else ""
        raise InvalidYaml(f"{line}: invalid YAML: {what}") from error
    except RecursionError:
        raise InvalidYaml(": invalid YAML: nested too deeply") from None
    except (ValueError, OverflowError) as error:  # an integer of 5,000 digits, a 99th of May
        raise InvalidYaml(f": invalid YAML: {error}") from error
