"""Each stage held against the plurality of the others: the opinion that no model is behind.

A stage does not vote on itself. In the consensus it does: stages that often agree gain accuracy,
and with it weight, by their own votes. Copies are not known here: each has a vote.
"""

from __future__ import annotations

import numpy as np

from stopwise.arrays import FloatArray
from stopwise.estimating.consensus import Groups, plurality_of


def plurality_of_others(groups: Groups) -> FloatArray:
    """For each partition and stage: right if the others give its answer most; ties are shared.

    nan where no other stage answers, 0 where the stage itself does not.

    >>> rows = Groups.of(np.array([[0, 0, 1], [0, 1, 2], [0, -1, 1]]), np.ones(3))
    >>> plurality_of_others(rows)[rows.inverse]
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 0. ],
           [0. , 0. , 0. ]])
    """
    right = np.zeros(groups.codes.shape)
    for stage in range(groups.codes.shape[1]):
        others = np.delete(np.arange(groups.codes.shape[1]), stage)
        rest = Groups.of(groups.codes[:, others], groups.number)
        chances = plurality_of(rest)[rest.inverse]
        right[:, stage] = (groups.same[:, stage, others] * chances).max(axis=1)
        right[(groups.codes[:, others] < 0).all(axis=1), stage] = np.nan
    right[groups.codes < 0] = 0.0
    return right
