"""regard: train, decode and use sequence models from scratch, on your own data."""

__version__ = "0.1.0"

from regard.errors import UserError
from regard.estimators import Transducer, load

__all__ = ["Transducer", "UserError", "__version__", "load"]
