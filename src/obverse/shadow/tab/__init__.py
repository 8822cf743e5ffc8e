"""Two tabs of the explorer: a net's shadow, and the theory beside simulations."""
