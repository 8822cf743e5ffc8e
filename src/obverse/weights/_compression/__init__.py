"""A net made smaller: layers whose signal pays become two thin ones. Not for taking a matrix apart."""
