"""From counters to the distribution of the depth, carried along from round to round."""
