"""Entry point of `python -m hudi_timeline`, which is the command `hudi`."""

from hudi_timeline.cli.main import main

if __name__ == "__main__":
    main()
