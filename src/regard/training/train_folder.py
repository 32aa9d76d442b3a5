"""Which run `regard train` means: a new one in a free folder, or one that goes on."""

import re
from dataclasses import dataclass
from pathlib import Path

from regard.core import parallel
from regard.core.errors import UserError, info
from regard.core.files import read_json
from regard.data.reading.lines import stem
from regard.data.sources.open import DataSpec
from regard.storage.output_folder import RUNS, foreign_files, is_abandoned, next_run_folder


@dataclass(frozen=True)
class TrainArgs:
    """What the user asked `train` for."""

    place: DataSpec
    dev: DataSpec
    recipe: str | None
    settings: list[str]
    out: Path | None
    resume: bool
    force: bool
    init_from: Path | None = None
    unlabeled: str | None = None
    teacher: str | None = None


def choose_folder(args: TrainArgs, print_config: bool) -> tuple[Path, bool]:
    """Where the run lies or will lie, and whether it goes on. The first process decides."""
    if not parallel.is_main_process():
        return Path(), False
    if parallel.restart_count() and not args.resume:
        folder = _of_this_job(args)
        if folder is not None:
            return folder, True
    elif args.resume:
        folder = args.out or _newest_run(args.place)
        if folder and (folder / "run.json").exists():
            return folder, True
        if not (args.out and args.place.is_given()):
            of = f"of {args.place.data or args.place.source} " if args.place.is_given() else ""
            where = f"in {args.out}" if args.out else f"{of}under runs/"
            raise UserError(f"--resume: no run {where}; name its folder with --out")
        info(f"{folder}: no run yet; it begins now")
    return (Path() if print_config else _new_folder(args)), False


def _of_this_job(args: TrainArgs) -> Path | None:
    """The run that this job began before torchrun started it again."""
    runs = [args.out] if args.out else sorted(RUNS.glob("*"))
    for folder in runs:
        path = folder / "run.json"
        if path.exists() and read_json(path).get("run_id") == parallel.run_id():
            return folder
    return None


def _new_folder(args: TrainArgs) -> Path:
    """The folder for a new run; one with a run in it only by force."""
    if args.out is None:
        return next_run_folder(args.place.data or args.place.source or "run")
    if args.out.is_file():
        raise UserError(f"{args.out}: a file, where a folder for the run is expected")
    if args.out.exists() and any(args.out.iterdir()):
        again = args.resume or args.force or parallel.restart_count()
        begun = (args.out / "run.json").exists()
        if not begun and again and is_abandoned(args.out):
            return args.out  # a run that was killed before it began
        if not all((args.out / name).exists() for name in ("config.yaml", "run.json")):
            raise UserError(f"{args.out}: not empty and not a run folder; choose another --out")
        if not args.force:
            raise UserError(
                f"{args.out}: holds a run already; go on with it (--resume), replace it (--force) "
                "or choose another --out"
            )
        if strange := foreign_files(args.out):
            raise UserError(
                f"{args.out}: --force would delete {', '.join(strange[:3])}"
                f"{' and more' if len(strange) > 3 else ''}, which is no part of a run; move it "
                "away or choose another --out"
            )
    return args.out


def _newest_run(place: DataSpec) -> Path | None:
    """The newest run of this data under runs/."""
    data = place.data or place.source
    name = f"{re.escape(stem(data))}-[0-9]+" if data else ".*"
    runs = RUNS.iterdir() if RUNS.is_dir() else []
    found = [p for p in runs if re.fullmatch(name, p.name) and (p / "run.json").exists()]
    found = [p for p in found if not read_json(p / "run.json").get("imported")]
    return max(found, key=lambda p: (p / "run.json").stat().st_mtime, default=None)
