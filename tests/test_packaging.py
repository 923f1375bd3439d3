"""Wheel and source distribution: whole, the same whenever they are built, and installed without changing what is there."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import site
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from command_lines import commands

ROOT = Path(__file__).resolve().parents[1]
EPOCH = "1700000000"
BUILDER = importlib.util.find_spec("hatchling") is not None
needs_builder = pytest.mark.skipif(not BUILDER, reason="hatchling is not installed: pip install '.[test]'")


def build(tree: Path, out: Path, *targets: str) -> dict[str, Path]:
    """The files that are built there, by ending."""
    argv = [sys.executable, "-m", "hatchling", "build", "-d", str(out), *(word for t in targets for word in ("-t", t))]
    env = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    done = subprocess.run(argv, cwd=tree, capture_output=True, text=True, timeout=120, check=False, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return {p.suffix: p for p in out.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def files_below(folder: Path) -> Iterator[str]:
    """What belongs to the project: caches of Python and of our tools do not."""
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if path.is_file() and path.suffix != ".pyc" and not any(p == "__pycache__" or p.endswith("_cache") for p in parts):
            yield "/".join(parts)


@needs_builder
def test_the_same_source_gives_the_same_bytes(built: dict[str, Path], tmp_path: Path) -> None:
    again = build(ROOT, tmp_path / "again")
    assert {k: digest(p) for k, p in again.items()} == {k: digest(p) for k, p in built.items()}
    assert set(built) == {".whl", ".gz"}


@needs_builder
def test_the_wheel_of_the_source_distribution_is_the_wheel_of_the_tree(built: dict[str, Path], tmp_path: Path) -> None:
    with tarfile.open(built[".gz"]) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    wheel = build(tree, tmp_path / "dist", "wheel")[".whl"]
    assert digest(wheel) == digest(built[".whl"])


@needs_builder
def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(built: dict[str, Path]) -> None:
    names = set(zipfile.ZipFile(built[".whl"]).namelist())
    about = {n for n in names if n.split("/")[0].endswith((".dist-info", ".data"))}
    package = {f"ray_rl_debug/{n}" for n in files_below(ROOT / "ray_rl_debug")}
    templates = {f"ray_rl_debug/slurm_templates/{n}" for n in files_below(ROOT / "slurm")}
    assert names - about == package | templates
    assert {n.split("/", 1)[1] for n in about} == {
        "METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE", "data/share/man/man1/rayrl-debug.1",
    }  # fmt: skip


@needs_builder
def test_the_source_distribution_holds_all_that_tests_and_documents_need(built: dict[str, Path]) -> None:
    with tarfile.open(built[".gz"]) as archive:
        names = {n.split("/", 1)[1] for n in archive.getnames()}
    for folder in ("ray_rl_debug", "slurm", "deploy", "examples", "tests", "benchmarks", "docs", ".ci"):
        missing = {f"{folder}/{n}" for n in files_below(ROOT / folder)} - names
        assert not missing, sorted(missing)[:5]
    assert {p.name for p in ROOT.glob("*.md")} | {"pyproject.toml", "LICENSE"} <= names


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    """An environment that has all that we need, as a frozen image has it; without us and without a network."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True, timeout=120)
    python = tmp_path / "env" / "bin" / "python"
    asked = subprocess.run([str(python), "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True, check=True)
    # beside ours: everything of this environment but ourselves
    everything = tmp_path / "packages"
    everything.mkdir()
    for place in map(Path, site.getsitepackages()):
        for path in place.iterdir():
            if not path.name.lower().replace("-", "_").lstrip("_").startswith("ray_rl_debug") and not path.name.endswith(".pth"):
                (everything / path.name).symlink_to(path)
    Path(asked.stdout.strip(), "image.pth").write_text(f"{everything}\n")
    return python


def pip(python: Path, *arguments: str) -> str:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith("PIP_")}
    argv = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_builder
@pytest.mark.integration
@pytest.mark.parametrize("how", [("--no-deps",), ()], ids=["alone", "with what it needs"])
def test_a_frozen_environment_gets_us_and_no_other_version(how: tuple[str, ...], built: dict[str, Path], frozen: Path, tmp_path: Path) -> None:
    before = set(pip(frozen, "list", "--format=freeze").split())
    pip(frozen, "install", "--no-index", *how, str(built[".whl"]))
    assert set(pip(frozen, "list", "--format=freeze").split()) - before == {"ray-rl-debug==0.1.0"}
    assert before <= set(pip(frozen, "list", "--format=freeze").split())
    tool = str(frozen.with_name("rayrl-debug"))
    case = ROOT / "tests" / "cases" / "RRD501" / "hang.json.gz"
    page = tmp_path / "out"
    for arguments, code, words in (
        (("--version",), 0, "rayrl-debug 0.1.0"),
        (("explain", "RRD501"), 0, "Story"),
        (("slurm", "render", "ray", "--nodes", "2", "--gpus-per-node", "8", "--", "python", "train.py"), 0, "#SBATCH"),
        (("report", str(case), "-o", str(page)), 1, "HANG"),
    ):
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path, env=env)
        assert done.returncode == code, (arguments, done.stdout[-500:], done.stderr[-500:])
        assert words in done.stdout, arguments
    assert "</html>" in (page / "report.html").read_text()


def test_the_version_says_what_a_report_of_a_bug_needs() -> None:
    done = subprocess.run([sys.executable, "-m", "ray_rl_debug", "--version"], capture_output=True, text=True, timeout=60, check=True)
    first, python, packages, pyspy, system = done.stdout.splitlines()
    assert first == "rayrl-debug 0.1.0"
    assert python.startswith(f"Python {sys.version_info.major}.{sys.version_info.minor}.")
    assert "ray 2." in packages
    assert pyspy.startswith("py-spy: ")
    assert system.startswith("Linux ")


def test_the_manual_page_is_what_the_command_line_says() -> None:
    text = (ROOT / "docs" / "rayrl-debug.1").read_text()
    # in a process of its own: click keeps the help options that other tests have asked for
    made = "import sys; sys.path.insert(0, 'docs'); import make_man; sys.stdout.write(str(make_man.page()))"
    done = subprocess.run([sys.executable, "-c", made], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert text == done.stdout, "python docs/make_man.py"
    for name, command in commands():
        assert f".SS {name}".replace("-", "\\-") in text or (isinstance(command, click.Group) and name == "rayrl-debug")


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_manual_page_has_no_error() -> None:
    argv = ["groff", "-man", "-Tutf8", "-ww", "-z", str(ROOT / "docs" / "rayrl-debug.1")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("words", "word", "wanted"), [("rayrl-debug sn", 1, "snapshot"), ("rayrl-debug doctor --pre", 2, "--preflight")])
def test_shells_complete_commands_and_options(words: str, word: int, wanted: str) -> None:
    env = {**os.environ, "_RAYRL_DEBUG_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(word)}
    program = "import sys; from ray_rl_debug.commands.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False, env=env)
    assert done.stdout.splitlines() == [f"plain,{wanted}"]
