"""Result files: what was measured, with the date, the hardware and the commit it was measured on."""

import json
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import torch

FOLDER = Path(__file__).parent / "results"


def cpu_name() -> str:
    """The processor's name as the system gives it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def commit() -> str:
    """The commit measured, with a + where the tree had changes."""
    here = Path(__file__).parent
    try:
        name = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True)
        dirty = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no"], cwd=here, capture_output=True, text=True
        )
    except FileNotFoundError:
        return "unknown"
    return (name.stdout.strip() or "unknown") + ("+" if dirty.stdout.strip() else "")


def facts() -> dict:
    """What makes a measurement made now comparable: date, commit, hardware and versions."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "cpu": cpu_name(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def write_result(name: str, measured: dict, folder: Path = FOLDER) -> Path:
    """Write `measured` beside the facts that make it comparable; returns the file."""
    record = {**facts(), **measured}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{record['date'][:10]}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path
