"""Training generators: settings, the loop, results, page. Not for the models: they are in `generative`."""
