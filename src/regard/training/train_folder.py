"""Choice of the run folder of `regard train`: a new folder, or the folder of a run to resume."""

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
    """The arguments of `regard train`."""

    data: DataSpec
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
    """Return the run folder and whether to resume its run.

    Only the main process decides; the other processes return placeholders.
    """
    if not parallel.is_main_process():
        return Path(), False
    if parallel.restart_count() and not args.resume:
        folder = _run_of_this_job(args)
        if folder is not None:
            return folder, True
    elif args.resume:
        folder = args.out or _newest_run(args.data)
        if folder and (folder / "run.json").exists():
            return folder, True
        if not (args.out and args.data.is_given()):
            name = args.data.data or args.data.source
            where = args.out or (f"runs/ (data {name})" if name else "runs/")
            raise UserError(f"--resume: no run in {where}", help="name the run folder with --out")
        info(f"{folder}: no run to resume; starting a new one")
    return (Path() if print_config else _new_folder(args)), False


def _run_of_this_job(args: TrainArgs) -> Path | None:
    """Return the run folder that this job created before torchrun restarted it, if any."""
    runs = [args.out] if args.out else sorted(RUNS.glob("*"))
    for folder in runs:
        path = folder / "run.json"
        if path.exists() and read_json(path).get("run_id") == parallel.run_id():
            return folder
    return None


def _new_folder(args: TrainArgs) -> Path:
    """Return the folder for a new run; raise UserError if it has files that must not be deleted."""
    if args.out is None:
        return next_run_folder(args.data.data or args.data.source or "run")
    if args.out.is_file():
        raise UserError(f"{args.out}: expected a folder, found a file")
    if args.out.exists() and any(args.out.iterdir()):
        again = args.resume or args.force or parallel.restart_count()
        is_run = (args.out / "run.json").exists()
        if not is_run and again and is_abandoned(args.out):
            return args.out  # a run that was killed before its start
        if not all((args.out / name).exists() for name in ("config.yaml", "run.json")):
            raise UserError(
                f"{args.out}: not empty and not a run folder", help="choose another --out"
            )
        if not args.force:
            raise UserError(
                f"{args.out}: already contains a run",
                help="continue it (--resume), overwrite it (--force), or choose another --out",
            )
        if foreign := foreign_files(args.out):
            names = f"{', '.join(foreign[:3])}{' and more' if len(foreign) > 3 else ''}"
            raise UserError(
                f"{args.out}: --force would delete files regard did not create: {names}",
                help="move them elsewhere, or choose another --out",
            )
    return args.out


def _newest_run(spec: DataSpec) -> Path | None:
    """Return the newest run under runs/ that is named after this data, if any."""
    data = spec.data or spec.source
    name = f"{re.escape(stem(data))}-[0-9]+" if data else ".*"
    runs = RUNS.iterdir() if RUNS.is_dir() else []
    found = [p for p in runs if re.fullmatch(name, p.name) and (p / "run.json").exists()]
    found = [p for p in found if not read_json(p / "run.json").get("imported")]
    return max(found, key=lambda p: (p / "run.json").stat().st_mtime, default=None)
