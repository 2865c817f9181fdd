import subprocess
import sys

import pytest

from linocut.errors import InputError
from linocut.evaluation.lock import only_writer

HOLD = """
import sys, time
from pathlib import Path
from linocut.evaluation.lock import only_writer
with only_writer(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_and_a_killed_one_leaves_no_lock(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(InputError, match=f"process {holder.pid}"), only_writer(tmp_path):
        pass
    holder.kill()
    holder.communicate()
    with only_writer(tmp_path):
        pass
