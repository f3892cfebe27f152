"""`python -m stopwise` is the `stopwise` command."""

from stopwise.cli import main

if __name__ == "__main__":
    main()
