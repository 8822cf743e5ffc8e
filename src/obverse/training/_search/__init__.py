"""Search over lr and weight: plan, study, workers, result, page. Not for training: a trial is a run."""
