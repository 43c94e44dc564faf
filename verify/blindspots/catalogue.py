"""All mechanisms by name."""

from canaryproof.verify.blindspots import finite_noise, laplace, several_releases, single_release
from canaryproof.verify.blindspots.mechanism import Mechanism

MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism
    for module in (single_release, several_releases, finite_noise, laplace)
    for mechanism in module.MECHANISMS
}
