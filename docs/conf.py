"""The site, made by ``make docs``.

Its sources are the repository itself: Markdown in ``proofs_check`` and ``reports/published`` becomes pages where it
stands, so that a link that works on a code host works here too, and is checked.
"""

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path
from tempfile import TemporaryDirectory

from canaryproof.kernels import public

# Sphinx takes the order of members from the module that a class says it is of: here from the one where it stands.
public.set_module = lambda _: lambda thing: thing

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent / "extensions"))
# The command line of the environment that builds, for pages that run it; as wide as a terminal.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ["COLUMNS"] = "80"

# Notebooks are executed without the profile of who builds; kernels warn of the network, which stays on this machine.
_ipython = TemporaryDirectory()
_profile = Path(_ipython.name, "profile_default")
_profile.mkdir()
(_profile / "ipython_kernel_config.py").write_text(
    "c.IPKernelApp.log_level = 40\n", encoding="utf-8"
)
os.environ["IPYTHONDIR"] = _ipython.name

project = "canaryproof"
version = release = version_of("canaryproof")
author = copyright = "The canaryproof developers"  # noqa: A001
root_doc = "docs/index"
include_patterns = ["docs/**", "proofs_check/*.md", "reports/published/**"]
include_patterns += ["CHANGELOG.md", "CONTRIBUTING.md", "tests/README.md"]
exclude_patterns = [
    ".*",
    "build",
    "runs",
    "kernels",
    "verify",
    "examples",
    "docs/extensions",
    "docs/templates",
]
# A page for each public name, which the reference's tables lead to; numpydoc brings the extension that makes them.
templates_path = [str(Path(__file__).parent / "templates")]
extensions = [
    *(
        "myst_nb",
        "numpydoc",
        "sphinx.ext.autodoc",
        "sphinx.ext.intersphinx",
        "sphinx_click",
    ),
    *(
        "sphinx_codeautolink",
        "sphinx_copybutton",
        "mathml",
        "contents",
        "names",
        "types_of_parameters",
        "reports",
        "links",
    ),
]

# Inventories are of Debian 12's documentation packages: the site is built without a network.
_SITES = {
    "python": "https://docs.python.org/3",
    "scipy": "https://docs.scipy.org/doc/scipy",
    "pandas": "https://pandas.pydata.org/docs",
}
intersphinx_mapping = {
    name: (site, f"docs/inventories/{name}.inv") for name, site in _SITES.items()
}
# Names in blocks of code lead to the reference. Blocks of a page go on with the names of those before.
codeautolink_concat_default = True
codeautolink_custom_blocks = {"ipython3": "sphinx_codeautolink.clean_ipython"}
# That function cannot be kept from one build to the next. Tables have whole names, also below a module's text.
suppress_warnings = ["config.cache", "autosummary.import_cycle"]
# A copied console block is its command, without its output.
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 120
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
html_math_renderer = "mathml"
highlight_language = "none"
# They would make – of the -- of an option.
smartquotes = False

html_theme = "furo"
html_title = f"canaryproof {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
# Fonts that have the circumflex of ε̂.
_MONOSPACE = '"SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace'
html_theme_options = {"light_css_variables": {"font-stack--monospace": _MONOSPACE}}
html_extra_path = ["extra"]
html_show_sphinx = html_show_sourcelink = html_copy_source = False
