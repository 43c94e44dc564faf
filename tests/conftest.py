import os

from hypothesis import settings

# "ci" draws the same examples every time; "deep" draws new ones, and many.
settings.register_profile("ci", derandomize=True, max_examples=60, deadline=None)
settings.register_profile("deep", max_examples=1500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
