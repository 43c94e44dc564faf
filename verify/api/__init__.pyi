from canaryproof.kernels import certified as certified
from canaryproof.kernels import exact_law as exact_law
from canaryproof.kernels import gaussian_mechanism as gaussian_mechanism
from canaryproof.kernels import null_cosine as null_cosine
from canaryproof.kernels import two_gaussians as two_gaussians
from canaryproof.kernels.canaries import Canaries as Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries as OrthonormalCanaries
from canaryproof.verify.audit.accounting import accountant as accounting  # noqa: F401
from canaryproof.verify.audit.answer.instruments import ResidualTests as ResidualTests
from canaryproof.verify.audit.answer.instruments import SamplingTests as SamplingTests
from canaryproof.verify.audit.answer.instruments import seed_tests as seed_tests
from canaryproof.verify.audit.answer.model_card import model_card as model_card
from canaryproof.verify.audit.answer.plan import plan as plan
from canaryproof.verify.audit.answer.release_sums import release_sums as release_sums
from canaryproof.verify.audit.answer.replay import replay as replay
from canaryproof.verify.audit.answer.review import review as review
from canaryproof.verify.audit.answer.rounds_plan import plan_rounds as plan_rounds
from canaryproof.verify.audit.answer.run_audit import Audit as Audit
from canaryproof.verify.audit.answer.run_audit import audit as audit
from canaryproof.verify.audit.answer.run_audit import audit_release as audit_release
from canaryproof.verify.audit.bounds import catalogue as bounds  # noqa: F401
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients as CanaryClients
from canaryproof.verify.audit.canaries.grouped_canaries import GroupedCanaries as GroupedCanaries
from canaryproof.verify.audit.canaries.participation import Insertion as Insertion
from canaryproof.verify.audit.canaries.participation import Participation as Participation
from canaryproof.verify.audit.canaries.participation import bernoulli as bernoulli
from canaryproof.verify.audit.canaries.participation import fixed_schedule as fixed_schedule
from canaryproof.verify.audit.canaries.participation import shuffled_epochs as shuffled_epochs
from canaryproof.verify.audit.canaries.participation import uniform as uniform
from canaryproof.verify.audit.canaries.round_scores import RoundScores as RoundScores
from canaryproof.verify.audit.canaries.scores import Scores as Scores
from canaryproof.verify.audit.canaries.shapes import flatten as flatten
from canaryproof.verify.audit.canaries.shapes import omitted_tensors as omitted_tensors
from canaryproof.verify.audit.canaries.shapes import split as split
from canaryproof.verify.audit.canaries.sharded_canaries import ShardedCanaries as ShardedCanaries
from canaryproof.verify.audit.canaries.whitened_clients import WhitenedClients as WhitenedClients
from canaryproof.verify.audit.files.errors import InputError as InputError
from canaryproof.verify.audit.files.stored_release import open_release as open_release
from canaryproof.verify.audit.watch.entry import watch as watch
from canaryproof.verify.papers.canife.own_model import audit_canife as audit_canife
from canaryproof.verify.papers.canife.own_model import design_canary as design_canary
from canaryproof.verify.papers.comparison.canife_laws import benchmark_canife as benchmark_canife
from canaryproof.verify.papers.convergence.report import convergence as convergence

__version__: str
