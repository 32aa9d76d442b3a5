"""Imports of optional packages."""

import importlib
from typing import Any

from regard.core.errors import UserError


def import_package(name: str) -> Any:
    """Import a package. Raise UserError with the install command if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise UserError(
            f"package {package} is not installed ({error})",
            help=f"pip install 'regard[export]' or pip install {package}",
        ) from error
