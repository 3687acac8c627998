"""What living beside other schedulers asks of the ranking: nodes that they are about to fill are left to them.

Whoever ranks by room left sends what waits to the emptiest node that still takes it, as kube-scheduler does. Two that
do so meet there, and where little is left there is not enough for both. So where a share of every node is kept free,
nearly full nodes are ranked the other way round, the fullest first: ours go to the end of the others' ranking, and what
an unseen pod of theirs needs is the share that stays free.
"""

from __future__ import annotations

import numpy as np

from graphsched.decision import names, trace
from graphsched.decision.constraints import check, sharing
from graphsched.decision.scoring import scores
from graphsched.graph import view


class Headroom:
    """100 for nodes that are not nearly full with the pod, and for those where just the headroom would be left.

    In between, the more is left the less, down to 0 where a node only just counts as nearly full.

    For each resource of which a share is kept, `left` is what would remain beyond it and `span` from where on a node is
    nearly full; the score is 100 − ⌊100 · least left / span⌋, and 100 if that least is 1 or more.
    """

    plugin = names.HEADROOM
    normalised = scores.Normalised.NO
    static = False

    def applies(self, subject: check.Subject) -> bool:
        """Where the profile keeps a share."""
        return subject.headroom > 0

    def raw(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Scores:
        """Int64 for each row, 0..100."""
        least = np.full(check.count(graph, rows), scores.SCORE_MAX)
        for name, amount in sharing.concerned(subject):
            offered = graph.columns.column(graph.columns.allocatable, name)[rows]
            span = sharing.nearly_full(offered, subject.headroom)
            left = np.maximum(sharing.free(graph, subject, name, rows) - amount, 0)
            # Of next to nothing no share can be kept.
            share = np.where(span > 0, left * scores.SCORE_MAX // np.maximum(span, 1), scores.SCORE_MAX)
            least = np.minimum(least, share)
        # A node that is not nearly full comes to 100 % 100 here, as does one where nothing is left.
        points: trace.Scores = scores.SCORE_MAX - least % scores.SCORE_MAX
        return points
