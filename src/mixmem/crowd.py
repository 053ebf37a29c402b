"""Public names for the labels of a crowd; the code is in :mod:`mixmem.models.crowd`.

>>> from mixmem.crowd import DawidSkene
>>> rows = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t1", "eve", "dog"), ("t2", "ann", "dog")]
>>> DawidSkene().fit(rows).tasks_["label"].to_dict()
{'t1': 'cat', 't2': 'dog'}
"""

from mixmem.models.crowd.agreement import Agreement, agreement
from mixmem.models.crowd.labels import Labels, read_labels, read_truth
from mixmem.models.crowd.model import DawidSkene, MajorityVote, OneCoinDawidSkene
from mixmem.models.crowd.ratings import NumericRatings
from mixmem.models.crowd.scoring import calibration_error, error_rate, expected_error, log_loss

__all__ = [
    "Agreement",
    "DawidSkene",
    "Labels",
    "MajorityVote",
    "NumericRatings",
    "OneCoinDawidSkene",
    "agreement",
    "calibration_error",
    "error_rate",
    "expected_error",
    "log_loss",
    "read_labels",
    "read_truth",
]
