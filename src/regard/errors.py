"""The one error that a user can cause and mend."""


class UserError(ValueError):
    """Something the user can put right: says where, what was expected, what came, what to do.

    The command line prints it without a traceback and leaves with code 2.
    """
