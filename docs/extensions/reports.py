"""The report of the published run and that of an audit are files of the site, made when it is finished."""

from pathlib import Path

import numpy as np
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

import canaryproof as cp
from canaryproof.reports.formats import report
from canaryproof.verify.papers.runs.run_folder import read_material

_PUBLISHED = Path(__file__).parents[2] / "reports" / "published"


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    made = report(read_material(_PUBLISHED), None)
    (site / "report.html").write_bytes(made.files["report.html"])
    canaries = cp.Canaries(seed=7, count=1000, dim=20_000)
    # The mechanism with a bug of the page on gates.
    noise = np.random.default_rng(1).normal(0, 0.2, 20_000)
    release = canaries.sum(np.arange(1000)) + noise
    found = cp.audit_release(release, canaries, delta=1e-6, noise_multiplier=1.54)
    (site / "audit.html").unlink(missing_ok=True)
    found.report(site / "audit.html", title="A release with too little noise")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Write both when the site is made, before its links are checked."""
    app.connect("build-finished", _write, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
