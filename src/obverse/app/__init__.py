"""The command line: one module per command, thin. Reads flags, calls the library, prints."""
