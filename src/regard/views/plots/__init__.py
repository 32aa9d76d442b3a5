"""Textbook figures of `regard plot`, computed with the code that also trains models."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.views.plots import (
    alignment_plot,
    attention_cells,
    attention_field,
    attention_ideas,
    attention_rank,
    checkpoints,
    convolution_plots,
    decay_plot,
    functions,
    graphs,
    image_plots,
    masks,
    norm_plots,
    norm_statistics,
    optimizer_paths,
    patterns,
    position_ideas,
    position_scores,
    position_table,
    position_training,
    recurrent_plot,
    relu_curves,
    residual_sizes,
    scene_plot,
    schedule_plot,
    search_plot,
    sound_plot,
    synthesis_plot,
)
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class FigureSpec:
    """A figure of `regard plot`. about: description. reads: the `PlotArgs` that `plot` uses.

    needs_run: whether it shows a run, instead of something general.
    """

    about: str
    plot: Callable[[PlotArgs], "Figure"]
    reads: tuple[str, ...] = ()
    needs_run: bool = False


FIGURES = {
    "schedule": FigureSpec(
        "learning-rate schedules: all kinds, or that of a run or of settings",
        schedule_plot.plot_schedules,
        ("kinds", "run", "settings"),
    ),
    "decay": FigureSpec(
        "scheduled sampling: probability of the true token, all decays or that of a run",
        decay_plot.plot_decays,
        ("kinds", "run"),
    ),
    "checkpoints": FigureSpec(
        "dev loss and metric of RUN over its validations, and one against the other",
        checkpoints.plot_checkpoints,
        ("run",),
        needs_run=True,
    ),
    "optimizers": FigureSpec(
        "optimizer paths on a ravine, a saddle and the Rosenbrock function",
        optimizer_paths.plot_optimizer_paths,
        ("kinds",),
    ),
    "search": FigureSpec(
        "search tree: greedy and beam search of a toy model, or of RUN for a text",
        search_plot.plot_search,
        ("run", "text", "beam"),
    ),
    "sound": FigureSpec(
        "a sound: waveform, sliding window and log-mel features, of an example or of a file",
        sound_plot.plot_sound,
        ("run",),
    ),
    "synthesis": FigureSpec(
        "a recording, the sound that RUN makes of its text, and which token each frame is from",
        synthesis_plot.plot_synthesis,
        ("run", "text", "settings"),
        needs_run=True,
    ),
    "positions": FigureSpec(
        "sinusoidal positional encodings and their similarity", position_table.plot_positions
    ),
    "position-order": FigureSpec(
        "a sentence and its shuffle in an encoder with and without positions",
        position_ideas.plot_position_order,
    ),
    "position-shift": FigureSpec(
        "columns of the sinusoidal table, and the rotation that shifts them",
        position_ideas.plot_position_shift,
    ),
    "position-scores": FigureSpec(
        "what each positional encoding adds to attention scores",
        position_scores.plot_position_scores,
        ("kinds",),
    ),
    "position-tables": FigureSpec(
        "learned and FLOATER positions before and after a short training, next to sinusoids",
        position_training.plot_tables,
    ),
    "norm-axes": FigureSpec(
        "which numbers of a padded batch layer norm and batch norm average over",
        norm_plots.plot_norm_axes,
    ),
    "norm-gradients": FigureSpec(
        "gradients and the residual stream of a new Transformer: pre-norm, post-norm, others",
        norm_plots.plot_norm_gradients,
        ("kinds",),
    ),
    "residual-sizes": FigureSpec(
        "sizes of the residual stream and of what each branch adds, by layer",
        residual_sizes.plot_residual_sizes,
        ("kinds",),
    ),
    "norm-statistics": FigureSpec(
        "batch and running statistics over a training on text: layer, batch, PowerNorm",
        norm_statistics.plot_norm_statistics,
        ("kinds",),
    ),
    "attention-mask": FigureSpec("attention masks of a Transformer", masks.plot_masks),
    "attention-pattern": FigureSpec(
        "attention patterns of all kernels, computed from gradients",
        patterns.plot_patterns,
        ("kinds",),
    ),
    "attention-cells": FigureSpec(
        "number of scores of sparse and low-rank kernels over the length, next to n²",
        attention_cells.plot_cells,
        ("kinds",),
    ),
    "attention-field": FigureSpec(
        "inputs that an output depends on after 1 to 4 layers of sparse attention",
        attention_field.plot_field,
        ("kinds",),
    ),
    "attention-rank": FigureSpec(
        "singular values of trained attention maps, and errors of low rank and Linformer",
        attention_rank.plot_rank,
    ),
    "attention-sorting": FigureSpec(
        "the map of Reformer before and after sorting by bucket",
        attention_field.plot_sorting,
    ),
    "attention-relu": FigureSpec(
        "ReLU and softmax attention on the task `reverse`: learning curves and maps",
        relu_curves.plot_relu,
        ("kinds",),
    ),
    "attention-recurrent": FigureSpec(
        "recurrent networks and self-attention: gradients over distance, time over length",
        recurrent_plot.plot_recurrent,
    ),
    "alignment": FigureSpec(
        "attention to a long source: additive, guided, location-aware and monotonic",
        alignment_plot.plot_alignments,
        ("kinds",),
    ),
    "graph-attention": FigureSpec(
        "attention on a graph and on the complete graph, each next to its matrix",
        graphs.plot_graph_attention,
    ),
    "attention-scale": FigureSpec(
        "why scores are divided by sqrt(d): scores and largest weights over the width",
        attention_ideas.plot_scale,
    ),
    "attention-order": FigureSpec(
        "linear attention: (Q K^T) V and Q (K^T V), with the sizes in between",
        attention_ideas.plot_order,
    ),
    "performer": FigureSpec(
        "random features: attention maps and their error over the number of features",
        attention_ideas.plot_performer,
    ),
    "convolution": FigureSpec(
        "a convolution as attention with one head per shift", attention_ideas.plot_convolution
    ),
    "convolution-sizes": FigureSpec(
        "stops of a kernel on a grid: stride 1 and 2, with and without padding",
        convolution_plots.plot_sizes,
    ),
    "receptive-fields": FigureSpec(
        "receptive fields and map sizes of the small image models, layer by layer",
        convolution_plots.plot_fields,
    ),
    "scenes": FigureSpec(
        "drawn scenes of the built-in data, with captions", scene_plot.plot_scenes
    ),
    "image-tensor": FigureSpec(
        "an image as three channels and as one vector: drawn, or --text FILE",
        image_plots.plot_tensor,
        ("text",),
    ),
    "feature-maps": FigureSpec(
        "three filters and their feature maps: of a drawn image, or of --text FILE",
        image_plots.plot_feature_maps,
        ("text",),
    ),
    "pooling": FigureSpec(
        "max and mean pooling of a map: before and after", image_plots.plot_pooling, ("text",)
    ),
    "activations": FigureSpec(
        "relu, gelu, silu, tanh, sigmoid", functions.plot_activations, ("kinds",)
    ),
    "softmax": FigureSpec("softmax probabilities at several temperatures", functions.plot_softmax),
    "smoothing": FigureSpec("target distributions with label smoothing", functions.plot_smoothing),
}
