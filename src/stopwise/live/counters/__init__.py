"""What a learner has counted: pairs, segments, and their sums."""
