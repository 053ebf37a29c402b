"""The one error that is the user's to repair, and the warning that a result may be wrong."""


class InputError(ValueError):
    """Bad input or bad usage: the message says what was expected, what came, where, and what to do.

    The command line prints the message alone and exits with code 2; anything else is a defect (exit code 1).
    """


class FitWarning(UserWarning):
    """A finished fit may be wrong: the message says why and what to do; ``report_.warnings`` has all of them."""


class TableWarning(UserWarning):
    """Something in a table was read in a way its owner should know: a column was left out, a mark was guessed."""
