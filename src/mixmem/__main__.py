"""``python -m mixmem``: the command line."""

import sys

from mixmem.cli import main

sys.exit(main())
