"""Canaries as clients of somebody else's federated server: for the examples of Flower, pfl-research and NVFlare.

A server's training takes its cohorts, the canaries' updates and a place to leave each release from an object here. It
does so twice: first with twenty canaries, under a watch; then with a hundred, for an audit. Canaries go the whole way:
their updates are ten clip norms long, so that the server must clip them.

Whom the ε holds against: neighbours are federations with and without one client. The attacker sees each round's noised
sum. He knows all other clients' updates, and the round of the client in question, who takes part once.
"""

import argparse

import numpy as np
from numpy_loop import CLIENTS, CLIP_NORM, ROUNDS, client_update, first_model, made_data

from canaryproof import (
    Canaries,
    CanaryClients,
    Insertion,
    accounting,
    audit,
    flatten,
    shuffled_epochs,
    split,
    watch,
)

NOISE_MULTIPLIER, DELTA, MEMBERS = 0.5, 1e-5, ROUNDS * CLIENTS
NAMES = tuple(first_model(np.random.default_rng(0)))
DIM = len(flatten(first_model(np.random.default_rng(0))))


def clipped_sum(updates):
    """Return the sum of updates, each clipped to the clip norm."""
    return sum((u * min(1.0, CLIP_NORM / max(np.linalg.norm(u), 1e-12)) for u in updates), np.zeros(DIM))


class Federation:
    """Clients with data, and canaries among them; canaries have the numbers from MEMBERS on."""

    def __init__(self, participation, seed, noise_multiplier):
        self.participation, self.noise_multiplier = participation, noise_multiplier
        self.x, self.y = made_data(np.random.default_rng([seed, 3]), MEMBERS)
        self.updates = []

    def cohort(self, number):
        """Return the clients of a round, and the canaries after them."""
        return np.append(self.participation.clients(number), MEMBERS + self.canaries(number))

    def data(self, member):
        """Return a client's examples."""
        return self.x[member], self.y[member]

    def others(self, clip_norm):
        """Return the sum of the round's updates of clients who are no canaries, as the server should clip them."""
        updates, self.updates = self.updates, []
        return clipped_sum([update / clip_norm for update in updates])

    def trained(self, model, member):
        """Return a client's model after its local training, and a canary's: the model and its update."""
        update = self.update(member) if member >= MEMBERS else client_update(model, *self.data(member), 0.1)
        if member < MEMBERS:
            self.updates.append(update)
        return {name: model[name] + change for name, change in split(np.asarray(update, float), model).items()}


class Watched(Federation):
    """Twenty canaries, which take part in every round, under a watch.

    All of them have the same update. What enters with another length than the clip norm is then the same in each round,
    and no noise.
    """

    rounds, count = 5, 20

    def __init__(self, seed=0, noise_multiplier=NOISE_MULTIPLIER):
        super().__init__(shuffled_epochs(MEMBERS, CLIENTS, 1, seed), seed, noise_multiplier)
        claim = accounting.gaussian(noise_multiplier, participations=1, rounds=self.rounds)
        self.watch = watch(delta=DELTA, claim=claim, members=MEMBERS)
        self.direction = Canaries(seed, 1, DIM).vector(0)

    def canaries(self, number):  # noqa: ARG002
        """Return the canaries of a round."""
        return np.arange(self.count)

    def update(self, member):  # noqa: ARG002
        """Return a canary's update, which the server is to clip."""
        return 10.0 * CLIP_NORM * self.direction

    def add(self, number, total, clip_norm=CLIP_NORM):
        """Hand a round's noised sum over, and what the server should have summed; its clipping is not at hand."""
        summed = self.others(clip_norm) + self.count * self.direction
        drawn = self.participation.clients(number)
        self.watch.step(release=total / clip_norm, total=summed, drawn=drawn, clip_norm=1.0)

    def stopped(self):
        """Do not stop a training that is watched."""
        return False


class Audited(Federation):
    """A hundred canaries, of whom five take part in a round, for an audit."""

    rounds = ROUNDS

    def __init__(self, seed=0, noise_multiplier=NOISE_MULTIPLIER, canaries=100, members=MEMBERS, clients=CLIENTS):
        participation = shuffled_epochs(members, clients, 1, seed, Insertion(canaries, canaries))
        super().__init__(participation, seed, noise_multiplier)
        self.claim = accounting.gaussian(noise_multiplier)
        self.clients = CanaryClients(Canaries(7 + seed, canaries, DIM), participation)

    def canaries(self, number):
        """Return the canaries of a round."""
        return self.clients.participants(number)

    def update(self, member):
        """Return a canary's update, which the server is to clip."""
        return 10.0 * CLIP_NORM * self.clients.canaries.vector(member - MEMBERS)

    def add(self, number, total, clip_norm=CLIP_NORM):
        """Take a round's noised sum."""
        self.clients.add(total / clip_norm, number, known=self.others(clip_norm))

    def stopped(self):
        """Tell whether there is less noise than claimed: an honest training is stopped once in a thousand times."""
        return self.clients.evidence(self.noise_multiplier).alarm() is not None

    def result(self):
        """Return the audit, for the attacker who knows a canary's round."""
        return audit(self.clients.scores("known rounds"), DELTA, claim=self.claim)


def main(description, train, faults, noise_multiplier=lambda number: NOISE_MULTIPLIER):  # noqa: ARG005
    """Watch and audit a server's training as the command line says."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--break", dest="fault", choices=faults, help="break the privacy as a setting would")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    watched = Watched(options.seed, noise_multiplier(CLIENTS + Watched.count))
    train(watched, options.fault, options.seed)
    print(f"{watched.watch.close()}\n")
    audited = Audited(options.seed, noise_multiplier(CLIENTS + 5))
    train(audited, options.fault, options.seed)
    claim = audited.claim
    print(f"{claim}: ε = {claim.epsilon(DELTA):.3f} at δ = {DELTA:g}, for one client\n\n{audited.result()}")
