"""Give freed memory back to the system. Not for what is in use."""

from __future__ import annotations

import ctypes

LARGE = 2**25  # numbers of a pass, 256 MB, from which on it is worth the third more time that it costs


def give_back(numbers: int) -> None:
    """After work on so many numbers.

    The GNU C library keeps freed blocks of less than 32 MB, and does not use them again where the next one
    must be aligned: with a million inputs, two gigabytes after twenty regions. Elsewhere this does nothing.
    """
    if numbers < LARGE:
        return
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):  # another C library
        return
