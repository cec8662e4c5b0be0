import sys

from d2lmgpu.cli import main

sys.exit(main())
