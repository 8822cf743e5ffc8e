"""Events of real images, whose teacher nobody knows: k-means of what each region shows. Not for nets.

The event of a region is the nearest of its centres, the event of the top region is the label. Centres come
from some images and serve for others too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from .._core import BadInput, Progress, or_global
from ._regions import RegionGraph
from ._teacher import Teacher

STARTS = 2  # of k-means, of which the better one counts
LEVELS = 255  # grey levels: the teacher keeps its inputs as 16-bit numbers


def shown(images: Tensor, graph: RegionGraph, region: str) -> Tensor:
    """What a region sees of each image, inputs × numbers in float64: all channels of its pixels."""
    own = torch.tensor(graph.positions[region])
    return images.flatten(2)[:, :, own].flatten(1).double()


def find_centres(
    images: Tensor, graph: RegionGraph, events: int, *, seed: int = 0, progress: Progress | None = None
) -> dict[str, Tensor]:
    """Centres × numbers of every region but the top: `events` of them, or fewer where less occurs.

    Regions that see the same pixels have the same centres.
    """
    _check_images(images, graph)
    if type(events) is not int or not 1 <= events <= len(images):
        raise BadInput(
            f"from 1 to {len(images):,} events, as there are images", got=repr(events), do="8 is usual"
        )
    found: dict[str, Tensor] = {}
    known: dict[tuple[int, ...], Tensor] = {}
    for number, region in enumerate(graph.order[:-1]):
        if progress:
            progress(number, len(graph.order) - 1, region)
        pixels = graph.positions[region]
        if pixels not in known:
            known[pixels] = k_means(shown(images, graph, region), events, seed)
        found[region] = known[pixels]
    return found


def k_means(rows: Tensor, count: int, seed: int = 0) -> Tensor:
    """Centres × numbers of the rows: `count` of them, or every distinct row where there are no more."""
    from sklearn.cluster import KMeans

    distinct = np.unique(rows.numpy(), axis=0)
    if len(distinct) <= count:  # each is an event; k-means would complain
        return torch.from_numpy(distinct)
    fitted = KMeans(count, n_init=STARTS, random_state=seed).fit(rows.numpy())
    return torch.from_numpy(fitted.cluster_centers_).double()


def nearest(rows: Tensor, centres: Tensor) -> Tensor:
    """The index of the nearest centre to each row."""
    # the smallest ‖a − b‖² has the largest ⟨a, b⟩ − ½‖b‖²
    return (rows @ centres.T - centres.square().sum(1) / 2).argmax(1)


def event_teacher(
    images: Tensor, labels: Tensor, classes: int, graph: RegionGraph, centres: Mapping[str, Tensor]
) -> Teacher:
    """The teacher of these images: each has probability 1/N, its label is the event of the top region."""
    _check_images(images, graph)
    if labels.shape != (len(images),) or labels.is_floating_point():
        raise BadInput(
            f"a label for each of {len(images):,} images",
            got=f"shape {tuple(labels.shape)}",
            do="give as many",
        )
    if not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise BadInput(f"labels from 0 to {classes - 1}", got=int(labels.max()), do="check the classes")
    if set(centres) != set(graph.order[:-1]):
        odd = sorted(set(centres) ^ set(graph.order[:-1]))
        raise BadInput(
            "centres of all regions but the top", got=f"a difference in {odd[:3]}", do="find_centres"
        )
    events = {name: nearest(shown(images, graph, name), own) for name, own in centres.items()}
    levels = (LEVELS * images.double().mean(1)).round().clamp(-(2**15), 2**15 - 1).flatten(1)
    return Teacher(
        graph,
        levels.to(torch.int16),
        torch.full((len(images),), 1 / len(images), dtype=torch.float64),
        events | {graph.top: labels.long()},
        {name: len(own) for name, own in centres.items()} | {graph.top: classes},
        sampled=True,
    )


def shuffled(teacher: Teacher, generator: torch.Generator | None = None) -> Teacher:
    """The control: each region's events dealt to the inputs anew, as often as before; labels stay.

    Regions that see the same pixels keep the same events. What is left of an agreement is due to the number
    of events, not to what they say.
    """
    generator = or_global(generator)
    graph, dealt = teacher.graph, {}
    known: dict[tuple[int, ...], Tensor] = {}
    for name in graph.order[:-1]:
        pixels = graph.positions[name]
        if pixels not in known:
            known[pixels] = torch.randperm(len(teacher.p), generator=generator)
        dealt[name] = teacher.events[name][known[pixels]]
    return replace(teacher, events=dealt | {graph.top: teacher.labels})


def _check_images(images: Tensor, graph: RegionGraph) -> None:
    if images.ndim != 4 or len(images) == 0 or not images.is_floating_point():
        raise BadInput(
            "images × channels × height × width",
            got=f"shape {tuple(images.shape)}",
            do="give at least one image",
        )
    if images.shape[2] * images.shape[3] < graph.inputs:
        raise BadInput(
            f"images of {graph.inputs} pixels",
            got=f"{images.shape[2]} × {images.shape[3]}",
            do="give those that the net takes",
        )
    if not bool(images.isfinite().all()):
        raise BadInput("finite pixels", got="others", do="remove them")
