"""Cells of notebooks that want points, or harm: each is a learner's own, in front of the others.

``SOLVED`` is what the notebook has solved beside it, and so what it may get, unless it is ended.
"""

from exercise_parts import PARTS
from grading import LASTS

PART = "foundations"
NAMES = [question.name for question in PARTS[PART].questions()]
PARENT = "import json, os, signal, subprocess\nP = os.getppid()\n"
RESULTS = PARENT + 'out = os.environ["TMPDIR"] + "/results.json"\n'
KEEPER = PARENT + 'K = int(open(f"/proc/{P}/stat").read().rpartition(")")[2].split()[1])\n'
FORGED = f'[{{"name": n, "score": 1}} for n in {NAMES!r}]'

# They end the run: no point, and a remark.
ENDED = {
    "writes-results": RESULTS + f'json.dump({{"tests": {FORGED}}}, open(out, "w")); os.kill(P, 9)',
    "writes-nonsense": RESULTS + 'open(out, "w").write("{}"); os.kill(P, 9)',
    "makes-a-pipe": RESULTS + "os.mkfifo(out); os.kill(P, 9)",
    "kills-the-keeper": KEEPER
    + f'subprocess.Popen(["setsid", "env", "-i", "sleep", "{LASTS}"]);'
    + "os.kill(K, 9); os.kill(P, 9)",
    "ends-its-kernel": PARENT + "os._exit(0)",
    "results-that-raise": "import otter.test_files\n"
    "class Evil:\n    def __reduce__(self):\n        return exit, (0,)\n"
    "otter.test_files.GradingResults = lambda *_: Evil()",
}
# They stop their own supervision: ended when the time is up.
STOPPED = {
    "stops-the-keeper": KEEPER + "os.kill(K, signal.SIGSTOP); os.kill(P, signal.SIGSTOP)",
    "catches-all": "while True:\n    try:\n        while True:\n            pass\n"
    "    except BaseException:\n        pass",
}
SCORES = """\
from otter.test_files import abstract_test
init = abstract_test.TestFile.__init__
def made(score):
    def begins(self, *arguments, **options):
        init(self, *arguments, **options)
        self._score = score
    abstract_test.TestFile.__init__ = begins
"""
# They make the checker, its tests or its results say that all is right.
FORGING = {
    "own-check": "from d2lmgpu.course import exercises\n"
    "exercises.check = exercises.checking.check = lambda *_, **__: True",
    "own-tests": "import glob\nfor path in glob.glob('tests/*.py'):\n"
    "    cases = [{'code': '>>> 1 + 1\\n2\\n', 'hidden': False, 'locked': False}]\n"
    "    suites = [{'cases': cases, 'scored': True, 'setup': '', 'teardown': '',"
    " 'type': 'doctest'}]\n"
    "    test = {'name': path.split('/')[-1][:-3], 'points': 1, 'suites': suites}\n"
    "    open(path, 'w').write(f'OK_FORMAT = True\\ntest = {test!r}')",
    "own-package": "path = 'd2lmgpu/course/exercises/__init__.py'\n"
    "open(path, 'a').write('\\ncheck = lambda *_, **__: True')\n"
    "import sys\nfor name in [n for n in sys.modules if n.startswith('d2lmgpu')]:\n"
    "    del sys.modules[name]",
    "own-scores": SCORES + "made(1)",
    "many-points": SCORES + "made(1e9)",
    "points-as-text": SCORES + "made('all')",
    "own-doctest": "import doctest\n"
    "doctest.DocTestRunner.run = lambda *_, **__: doctest.TestResults(0, 1)",
    "own-exercises": "import types, d2lmgpu.course\n"
    "d2lmgpu.course.exercises = types.SimpleNamespace(check=lambda *_, **__: True)",
}
# It leaves folders that are nested deeper than Python calls functions.
NESTS = """\
import os
here = os.getcwd()
for place in {places!r}:
    os.makedirs(os.path.expandvars(place))
    os.chdir(os.path.expandvars(place))
    for _ in range(2000):
        os.mkdir("d")
        os.chdir("d")
os.chdir(here)"""
# As root: what another account may not. Each writes what it got to FOUND, a path of the test's.
FORBIDDEN = {
    "reads-secrets": "text = open('/etc/shadow').read()\nopen({found!r}, 'a').write(text)",
    "reads-others": "import glob\n"
    "others = glob.glob({folder!r} + '/*') + glob.glob('/tmp/*/submission/*.ipynb')\n"
    "others = [path for path in others if 'reads-others' not in path]\n"
    "open({found!r}, 'a').write(str(others)) if others else None",
    "writes-grades": "open({folder!r} + '/grades/grades.csv', 'a').write('forged')",
    "calls-out": "import socket\nsocket.create_connection(('127.0.0.1', {port}), 5).send(b'here')",
    "kills-everybody": "import os\nos.kill(-1, 9)",
}
