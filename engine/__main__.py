"""`python -m engine`: the engine from a shell."""

import sys

from engine.cli import main

sys.exit(main())
