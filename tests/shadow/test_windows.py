"""Which outputs saw an input: against the Jacobian; and maps over windows against dense linear algebra."""

from itertools import product

import pytest
import torch
from sklearn.linear_model import Ridge as Peer
from torch import nn

from obverse.shadow._regression import fit_windows
from obverse.shadow._reversal import Reach, find_rule
from obverse.shadow._ridge import ridge
from obverse.shadow._samples import window_sample
from obverse.shadow._windows import cell_of, cells, cut, here, join_cells, look, views_of

CONVOLUTIONS = [
    (nn.Conv2d(2, 3, 3, padding=1), (2, 6, 5)),
    (nn.Conv2d(2, 3, 3, stride=2, padding=1), (2, 7, 6)),
    (nn.Conv2d(2, 3, (3, 2), stride=(2, 1), padding=(0, 1)), (2, 7, 6)),
    (nn.Conv2d(2, 4, 3, padding=2, dilation=2, groups=2), (2, 6, 6)),
    (nn.Conv2d(2, 3, 3, stride=2, padding=2, dilation=2), (2, 8, 8)),
    (nn.Conv2d(2, 3, 1, stride=2), (2, 5, 5)),
    (nn.Conv2d(2, 5, 4, stride=4), (2, 8, 8)),
    (nn.Conv2d(2, 3, 3, padding="same"), (2, 5, 5)),
    (nn.Conv1d(2, 3, 5, stride=3, padding=2), (2, 11)),
    (nn.Conv3d(1, 2, 2, stride=2), (1, 4, 4, 4)),
    (nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1), (2, 4, 4)),
    (nn.ConvTranspose2d(2, 3, 3, padding=1), (2, 5, 4)),
    (nn.ConvTranspose2d(2, 3, 2, stride=2, dilation=2), (2, 3, 3)),
    (nn.ConvTranspose1d(2, 3, 4, stride=2, padding=1), (2, 5)),
]


def reach_of(module, shape):
    with torch.no_grad():
        output = module.float()(torch.zeros(1, *shape))
    return find_rule(module).fitted(module, shape, tuple(output.shape[1:]))


@pytest.mark.parametrize(("module", "shape"), CONVOLUTIONS)
def test_a_cell_sees_every_output_that_saw_it(module, shape):
    """By brute force: which outputs an input changes. Where the stride is 1 the windows hold nothing else."""
    reach = reach_of(module, shape)
    cell = cell_of([reach])
    views = views_of(reach, cell)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(0.5, 1.0)
    x = torch.zeros(1, *shape, requires_grad=True)
    y = module(x)
    for place in product(*map(range, cells(shape[1:], cell))):
        inside: set[tuple[int, ...]] = set()
        for q, view, size in zip(place, views, y.shape[2:], strict=True):
            along = [q * view.step + view.first + view.apart * k for k in range(view.count)]
            inside = {(*one, at) for one in inside or {()} for at in along if 0 <= at < size}
        saw = set()
        for output in product(*map(range, y.shape[2:])):
            (gradient,) = torch.autograd.grad(y[(0, slice(None), *output)].sum(), x, retain_graph=True)
            part = gradient[
                (0, slice(None), *(slice(q * c, q * c + c) for q, c in zip(place, cell, strict=True)))
            ]
            if bool(part.any()):
                saw.add(output)
        assert saw <= inside
        if not reach.up and all(size == 1 for size in cell):
            assert saw == inside


def fit(features, reaches, x, held):
    """On rows of x, found three inputs at a time."""
    sample = window_sample(reaches, [one.shape[1] for one in features], tuple(x.shape[1:]), len(x))
    targets = torch.cat([sample.take(part, 3 * place) for place, part in enumerate(x.split(3))])
    return fit_windows(features, reaches, sample, targets, held)


@pytest.mark.parametrize(("module", "shape"), CONVOLUTIONS)
def test_the_map_is_scikit_learns_over_what_the_cells_see(module, shape):
    """Rows built by hand for every cell; predictions at every whole cell agree. Double: rounding alone."""
    reach = reach_of(module, shape)
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(6, *shape, generator=draw, dtype=torch.float64)
    with torch.no_grad():
        y = module.double()(x)
    held = torch.tensor([True] + [False] * 5)
    found, how = fit([y], [reach], x, held)
    down = found([y])
    assert down.shape == x.shape

    cell = cell_of([reach])
    views = views_of(reach, cell)
    centred = y - y.mean([0, *range(2, y.dim())], keepdim=True)
    inside = [size // side for size, side in zip(shape[1:], cell, strict=True)]
    for group in range(reach.groups):
        own = centred.chunk(reach.groups, 1)[group]
        targets = x.chunk(reach.groups, 1)[group]
        columns, wanted, where = [], [], []
        for image, place in product(range(6), product(*map(range, inside))):
            row = []
            for taps in product(*(range(view.count) for view in views)):
                at = [q * v.step + v.first + v.apart * k for q, v, k in zip(place, views, taps, strict=True)]
                fits = all(0 <= a < size for a, size in zip(at, y.shape[2:], strict=True))
                row.append(own[(image, slice(None), *at)] if fits else torch.zeros(own.shape[1]))
            box = tuple(slice(q * c, q * c + c) for q, c in zip(place, cell, strict=True))
            columns.append(torch.cat(row))
            wanted.append(targets[(image, slice(None), *box)].flatten())
            where.append((image, slice(None), *box))
        peer = Peer(alpha=how.strength).fit(torch.stack(columns).numpy(), torch.stack(wanted).numpy())
        told = torch.as_tensor(peer.predict(torch.stack(columns).numpy())).reshape(len(where), -1)
        ours = torch.stack([down.chunk(reach.groups, 1)[group][one].flatten() for one in where])
        torch.testing.assert_close(ours, told, rtol=0, atol=1e-8)


def test_what_several_paths_bring_is_one_regression():
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(8, 2, 4, 4, generator=draw, dtype=torch.float64)
    wide, same = nn.Conv2d(2, 3, 3, stride=2, padding=1).double(), nn.Conv2d(2, 2, 1).double()
    with torch.no_grad():
        features = [wide(x), same(x)]
    reaches = [reach_of(wide, (2, 4, 4)), here(2)]
    held = torch.tensor([True, True] + [False] * 6)
    found, how = fit(features, reaches, x, held)
    image = torch.arange(8).repeat_interleave(4)
    places = torch.tensor(list(product(range(2), range(2)))).repeat(8, 1)
    columns = [
        look(one - one.mean((0, 2, 3), keepdim=True), views_of(reach, (2, 2)), image, places).flatten(1)
        for one, reach in zip(features, reaches, strict=True)
    ]
    targets = cut(x, (2, 2), image, places).flatten(1)
    peer = ridge(torch.cat(columns, 1)[None], targets[None], held[image], how.strength)
    told = cut(found(features), (2, 2), image, places).flatten(1)
    torch.testing.assert_close(told, peer(torch.cat(columns, 1)[None])[0])
    assert how.mean.shape[1] == 3 * 4 + 2 * 4  # 2 × 2 outputs of the stride, 2 × 2 places in the cell


def test_cells_are_put_back_where_they_were_cut():
    x = torch.arange(2 * 4 * 6 * 4.0).reshape(2, 4, 6, 4)
    places = torch.tensor(list(product(range(3), range(4)))).repeat(2, 1)
    image = torch.arange(2).repeat_interleave(12)
    for groups in (1, 2):
        rows = (
            cut(x, (2, 1), image, places).unflatten(2, (groups, -1)).movedim(2, 0)
        )  # group × row × place × c
        rows = rows.permute(1, 0, 2, 3).flatten(1)
        over = rows.reshape(2, 3, 4, -1).movedim(-1, 1)
        assert torch.equal(join_cells(over, (2, 1), groups, (4, 6, 4)), x)


def test_strides_that_meet_share_a_cell():
    two, three = (Reach((1,), (s,), (0,), (1,)) for s in (2, 3))
    assert cell_of([two, three, here(1)]) == (6,)
