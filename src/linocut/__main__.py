"""`python -m linocut` is `linocut`."""

from linocut.cli import main

if __name__ == "__main__":
    main()
