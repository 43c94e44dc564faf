"""What Python lacks on Windows is taken away here, as nobody has tried the package there.

Libraries load before that, and numba compiles something: they take what this machine has. ``os.name`` stays, because
``pathlib`` goes by it. Files and consoles have another encoding on Windows, where the code does not name one.
"""

NUMBA = "import multiprocessing, numba, platformdirs; numba.njit(lambda x: x + 1)(1)"
LIBRARIES = f"""
import cachetools, cattrs, click, dp_accounting, flint, hypothesis, jinja2, matplotlib.pyplot, mpmath, pandas
import rich.console, scipy.stats, statsmodels.api, threadpoolctl
{NUMBA}
"""
PROCESSES = "import concurrent.futures.process, multiprocessing.popen_spawn_posix"
# What starts processes looks for this mask once, when it loads.
SIMULATION = """
import os, signal, sys, warnings
del signal.pthread_sigmask
{libraries}
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("geteuid", "getuid", "O_NOFOLLOW", "O_NONBLOCK", "pread", "sched_getaffinity", "sysconf"):
    delattr(os, name)
sys.platform = "win32"
warnings.filterwarnings("error", category=EncodingWarning, module="canaryproof")
{program}
"""


def as_on_windows(program: str, libraries: str) -> str:
    """Return a program for a fresh interpreter: lines that load libraries, and another one as on Windows."""
    return SIMULATION.format(libraries=libraries, program=program)
