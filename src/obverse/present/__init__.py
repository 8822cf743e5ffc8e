"""What pages, terminals and notebooks share. Not for what any of them says."""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from . import complete, options, palette, plots, registry
    from .axis import DECADE, OCTAVE, Axis, axis_for
    from .chart import HEIGHT, WIDTH, Array, across, coordinate, dots, line, path, steps, svg_frame, tick, up
    from .fields import Fields
    from .minute import Counted, every_minute
    from .notebook import cell
    from .options import (
        CACHE,
        DATA,
        KEEP,
        ROOT,
        SEED,
        Cluster,
        DataArgument,
        FactoryArguments,
        GivenSeed,
        Json,
        Layers,
        Module,
        Normalize,
        Report,
        RunArgument,
        Seed,
        Weights,
        check_seed,
        numbers,
        select,
    )
    from .output import (
        debugging,
        deliver,
        echo,
        echo_page,
        echo_quick,
        make_folder,
        print_json,
        print_result,
        write_result,
    )
    from .palette import LIGHT, marker, shape
    from .pictures import picture
    from .png import SCALING, Pixels, data_uri, displayed, png_bytes, read_png, save_png
    from .progress import audit_progress, claims_progress, layer_progress, training_progress
    from .registry import Look, Panel, ResultType, Table, show
    from .svg import INK, PAGE, drawing, sentinel
    from .table import Column, open_console, print_grid, say
    from .tabs import Answer, Subject, Tab
    from .template import environment, markup, render_page
    from .usage import Command, Commands, UsageError, as_sentence

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "CACHE",
    "DATA",
    "DECADE",
    "HEIGHT",
    "INK",
    "KEEP",
    "LIGHT",
    "OCTAVE",
    "PAGE",
    "ROOT",
    "SCALING",
    "SEED",
    "WIDTH",
    "Answer",
    "Array",
    "Axis",
    "Cluster",
    "Column",
    "Command",
    "Commands",
    "Counted",
    "DataArgument",
    "FactoryArguments",
    "Fields",
    "GivenSeed",
    "Json",
    "Layers",
    "Look",
    "Module",
    "Normalize",
    "Panel",
    "Pixels",
    "Report",
    "ResultType",
    "RunArgument",
    "Seed",
    "Subject",
    "Tab",
    "Table",
    "UsageError",
    "Weights",
    "across",
    "as_sentence",
    "audit_progress",
    "axis_for",
    "cell",
    "check_seed",
    "claims_progress",
    "complete",
    "coordinate",
    "data_uri",
    "debugging",
    "deliver",
    "displayed",
    "dots",
    "drawing",
    "echo",
    "echo_page",
    "echo_quick",
    "environment",
    "every_minute",
    "layer_progress",
    "line",
    "make_folder",
    "marker",
    "markup",
    "numbers",
    "open_console",
    "options",
    "palette",
    "path",
    "picture",
    "plots",
    "png_bytes",
    "print_grid",
    "print_json",
    "print_result",
    "read_png",
    "registry",
    "render_page",
    "save_png",
    "say",
    "select",
    "sentinel",
    "shape",
    "show",
    "steps",
    "svg_frame",
    "tick",
    "training_progress",
    "up",
    "write_result",
]
