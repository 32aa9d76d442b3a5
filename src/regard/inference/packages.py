"""Packages that only some engines need."""

import importlib
from typing import Any

from regard.core.errors import UserError


def need(name: str) -> Any:
    """The package; where it cannot be imported, how to install it is said."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise UserError(
            f"the package {package} is not there ({error}); pip install 'regard[export]' or "
            f"pip install {package}"
        ) from error
