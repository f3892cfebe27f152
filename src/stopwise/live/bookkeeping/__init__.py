"""Opening, ending and counting rounds under one lock: what happened, who listens, what is kept."""
