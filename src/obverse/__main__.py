"""`python -m obverse` is the command `obverse`."""

from .cli.main import main

if __name__ == "__main__":
    main()
