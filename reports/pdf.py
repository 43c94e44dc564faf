"""The report as PDF: the same page, printed by Chromium."""

import shutil
import subprocess
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# A page of some thousand claims takes a minute.
_PATIENCE = 600.0
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--no-pdf-header-footer",
)


def pdf(html: str) -> bytes:
    """Print a page.

    Parameters
    ----------
    html
        The page, which refers to nothing else.

    Returns
    -------
    The PDF.

    Raises
    ------
    OSError
        If there is no Chromium, or it does not print.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise OSError(f"needs a browser that prints, and none of {', '.join(BROWSERS)} is installed")
    with tempfile.TemporaryDirectory(prefix="canaryproof-") as place:
        page, printed = Path(place) / "report.html", Path(place) / "report.pdf"
        page.write_text(html, encoding="utf-8")
        command = [browser, *_FLAGS, f"--user-data-dir={place}/profile", f"--print-to-pdf={printed}", page.as_uri()]
        try:
            subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
            return printed.read_bytes()
        except (FileNotFoundError, subprocess.TimeoutExpired):
            raise OSError(f"{browser} did not print the page") from None
