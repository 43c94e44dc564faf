"""The peak memory of a process, in bytes, by what Linux says of it; without /proc it is not known."""

from pathlib import Path

# Writing 5 here sets a process's peak memory back to what it holds. ru_maxrss cannot be set back, and begins with the
# peak of the process that started this one.
RESET = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


def peak() -> int:
    """Return the most memory that this process has held since it began, or was set back."""
    return int(_STATUS.read_text().partition("VmHWM:")[2].split()[0]) * 1024


def held() -> int:
    """Set the peak back to what this process holds, and return that."""
    RESET.write_text("5")
    return peak()
