"""The claims ledger: every quantitative statement of the documents that can be decided, with its verdict."""

from canaryproof.verify.claims import canife, final, review, submission, v1

CHECKS = (*final.CHECKS, *v1.CHECKS, *submission.CHECKS, *review.CHECKS, *canife.CHECKS)
