"""How canaries are designed: as the paper prints it, and by the redesign of this package."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class CanaryOptions:
    """How a canary is designed: by default by this package's redesign, which is not the paper's design."""

    steps: int = 2500  # iterations T
    rate: float = 0.1  # Adam's learning rate β

    # ``covariance`` is the sum of squared products with all clients (equation 1; "loss 2" of Appendix D). ``mean`` is
    # the squared product with the clients' mean (Appendix A; "loss 1").
    loss: Literal["covariance", "mean"] = "covariance"
    # Length that the hinge asks of the update before clipping, in clip norms. The hinge lets it end a few per cent
    # short, and 1 leaves ‖u_c‖² so much below C².
    norm_constant: float = 1.25
    # ``soft``: designed with the pixels; ``class``: the one that the start gives most weight.
    label: Literal["soft", "class"] = "soft"
    restarts: int = 4  # how often to begin anew while the canary is poor
    largest_loss: float = 0.02  # loss above which it is poor, as a share of a zero gradient's loss


# Texts that are drawn at the end of a design of tokens, of which the best is the canary.
TEXTS = 32
# Section 4: Adam with rate 1, the constant C, a class for the canary, and one design. Random pixels are ``noise``'s
# uniform ones.
AS_PRINTED = CanaryOptions(rate=1.0, norm_constant=1.0, label="class", restarts=0)
# This package changes these options, and begins with normal pixels, to show how far the method could go.
REDESIGNED = CanaryOptions()
