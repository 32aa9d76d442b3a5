"""Plot of synthesis: the features of a recording and of the made sound, and the staircase.

T frames, S source positions, F bands.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.data.reading.sounds import Sound
from regard.data.reading.spoken import speaker_of
from regard.inference.prediction.predict_options import search_changes
from regard.inference.predictor import Predictor
from regard.inputs.log_mel import Analysis, band_edges
from regard.storage.run_files import run_metadata
from regard.storage.training_data import read_training_data
from regard.views.figures.sound_panels import plot_features
from regard.views.figures.style import COLORS, FAINT, GRID, new_figure
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_TOKENS = 60  # that are named
WIDTH, PANEL, ROW = 8.0, 1.9, 0.2  # inches


def plot_synthesis(args: PlotArgs) -> "Figure":
    """Plot a recording and the sound that a model makes of its text; the recording if known."""
    assert args.run is not None
    predictor = Predictor.load(args.run)
    task: Any = predictor.task
    if not predictor.config.task.writes_sounds:
        raise UserError(
            f"{args.run}: a {task.kind} model makes no sounds", help="use a synthesize model"
        )
    search = predictor.search_options(**search_changes({}, args.settings))
    recording = _recording(predictor, args.text, search.speaker)
    if args.text is None and recording is None:
        raise UserError(f"{args.run}: its data is unknown", help="add --text TEXT")
    source = task.parse(args.text) if recording is None else recording.source
    request = predictor.engine.fit_request(task.search_request(task.rows([source]), [0], search))
    found, weights = search.align(predictor.engine.stepper(), request)
    made = task.make_prediction(source, None, found, search, 1).value.features
    names = task.source.names(source)
    shown = [] if weights is None else names
    voice = search.speaker or speaker_of(source) or next(iter(task.speakers), "")
    title = f"“{source}”" + (f", speaker {voice}" if voice else "")
    heights = [PANEL] * (2 if recording else 1) + [max(0.9, ROW * len(shown))] * bool(shown)
    figure = new_figure(WIDTH, sum(heights) + 1.2, title)
    panels = figure.subplots(
        len(heights), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
    )[:, 0]
    analysis, rows = task.target.analysis, iter(panels)
    if recording is not None:
        _plot_spectrogram(next(rows), task.frames(recording.target), analysis, "recording")
    _plot_spectrogram(next(rows), made, analysis, "made by the model")
    if weights is not None:
        _plot_weights(next(rows), weights, shown, analysis)
    panels[-1].set_xlabel("seconds")
    longest = max(len(made), len(task.frames(recording.target)) if recording else 0)
    panels[-1].set_xlim(0, (longest * analysis.hop + analysis.length) / analysis.rate)
    return figure


def _recording(predictor: Predictor, text: str | None, speaker: str | None) -> Pair | None:
    """Return a recording of a text (None: any) by a speaker, first of the dev set, if known."""
    facts = run_metadata(predictor.folder)
    data = read_training_data(predictor.folder, predictor.config, predictor.task, facts)
    task: Any = predictor.task
    wanted = speaker or next(iter(task.speakers), None)
    for pair in (*data.dev, *data.train):
        if text in (None, str(pair.source)) and wanted in (None, speaker_of(pair.source)):
            assert isinstance(pair.target, Sound)
            return pair
    return None


def _plot_spectrogram(axes: "Axes", features: np.ndarray, analysis: Analysis, title: str) -> None:
    """Plot log-mel features (S, F)."""
    edges = band_edges(analysis.rate, analysis.bands)
    window, step = analysis.length / analysis.rate, analysis.hop / analysis.rate
    hertz = float(edges[0]), float(edges[-1])
    plot_features(axes, features.astype(np.float32), hertz, window, step)
    axes.set_title(title, fontsize=9, color=FAINT)


def _plot_weights(axes: "Axes", weights: np.ndarray, names: list[str], analysis: Analysis) -> None:
    """Plot the weight (T, S) of each token in each frame; darker cells have larger weights."""
    from matplotlib.colors import LinearSegmentedColormap

    colors = LinearSegmentedColormap.from_list("weights", ["white", GRID, COLORS[0]])
    step = analysis.hop / analysis.rate
    start = analysis.length / analysis.rate / 2 - step / 2
    extent = (start, start + len(weights) * step, -0.5, weights.shape[1] - 0.5)
    axes.imshow(
        weights.T,
        origin="lower",
        aspect="auto",
        cmap=colors,
        extent=extent,
        vmin=0,
        vmax=1,
        interpolation="nearest",
    )
    if len(names) <= MAX_TOKENS:
        axes.set_yticks(range(len(names)), names)
    axes.set_title("token of each frame", fontsize=9, color=FAINT)
    axes.grid(False)
