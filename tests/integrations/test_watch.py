"""A net is audited while it is trained, within bounds of time, and the history is read back."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from obverse import BadInput, audit
from obverse.integrations import History, Watch, plot_history, read_history
from obverse.shadow import Shadow, recovery

X = torch.rand(20, 40, generator=torch.Generator().manual_seed(0))


class Clock:
    """Seconds that pass by themselves with each look, and when they are told to."""

    def __init__(self, each: float = 0.0) -> None:
        self.now, self.each = 0.0, each

    def __call__(self) -> float:
        self.now += self.each
        return self.now


class Days(Clock):
    """A training that takes days before each measurement."""

    def __call__(self) -> float:
        self.now = 10 * self.now + 1
        return self.now


def clock_of(watch: Watch) -> Clock:
    assert isinstance(watch._clock, Clock)
    return watch._clock


@pytest.fixture
def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(40, 48), nn.ReLU(), nn.Linear(48, 40))


def watched(net: nn.Module, *args: Any, **settings: Any) -> Watch:
    """With a clock that each measurement moves by 2 seconds: it is looked at before and after."""
    clock = Clock()
    watch = Watch(net, *args, clock=clock, **settings)
    measure = watch._measure

    def slow() -> Any:
        clock.now += 2.0
        return measure()

    watch._measure = slow
    return watch


def test_what_is_measured_is_the_audit_and_the_recovery(net):
    point = Watch(net, inputs=X.numpy(), seed=3)(0, epoch=0.0)
    layers = audit(net, quick=True, generator=torch.Generator().manual_seed(3)).layers
    errors = recovery(Shadow(net), X).errors
    assert [one.name for one in point.layers] == ["0", "2"]
    for one, layer in zip(point.layers, layers, strict=True):
        assert (one.verdict, one.rank) == (layer.verdict, layer.parts.rank)
        assert one.random_share == layer.random_share.value
        assert one.recovery == errors[one.name]
    assert point.metrics()["obverse/recovery/2"] == errors["2"]
    assert {name.rsplit("/", 1)[0] for name in point.metrics()} == {
        "obverse/rank",
        "obverse/random_share",
        "obverse/recovery",
    }


def test_the_training_does_not_notice(net):
    def trained(watch: Any) -> torch.Tensor:
        torch.manual_seed(0)
        own = nn.Sequential(nn.Linear(40, 40), nn.Dropout(0.5), nn.Linear(40, 3)).train()
        optimizer = torch.optim.SGD(own.parameters(), 0.1)
        seen = watch(own)
        for step in range(3):
            optimizer.zero_grad()
            own(X).square().sum().backward()
            optimizer.step()
            seen(step)
            assert own.training
        return own[0].weight.detach()

    alone = trained(lambda own: lambda step: None)
    assert torch.equal(trained(lambda own: Watch(own, inputs=X, at_most=1.0, clock=Days())), alone)


def test_every_so_many_steps(net):
    watch = Watch(net, every=5, at_most=1.0, clock=Clock(each=1.0))
    clock_of(watch).now = 1e9  # years of training: there is time
    assert [step for step in range(12) if watch(step)] == [0, 5, 10]


def test_no_more_than_its_share_of_the_time(net):
    """Measurements take 2 s each, steps 1 s: 10 % are one measurement per 20 steps."""
    watch = watched(net, at_most=0.1)

    def train() -> None:
        for step in range(101):
            watch(step)
            clock_of(watch).now += 1.0

    with pytest.warns(UserWarning, match="the audit at step 1 is skipped") as said:
        train()
    assert len(said) == 1  # and not a hundred times
    assert "2.00 s so far and 2.00 s for the next one are more than 10 % of 1.00 s of" in str(said[0].message)
    steps = [point.step for point in watch.history]
    assert steps == [0, 40, 60, 80, 100]  # at 40: 2 s spent and 2 more are 10 % of 40 s
    assert [point.skipped for point in watch.history] == [0, 39, 19, 19, 19]
    assert watch.history.seconds <= 0.1 * 101
    assert [point.training_seconds for point in watch.history] == steps  # without the measurements


def test_without_a_bound_none_is_skipped(net):
    watch = Watch(net, at_most=None)
    assert [step for step in range(3) if watch(step)] == [0, 1, 2]


def test_the_file_is_read_back_as_it_was(net, tmp_path):
    watch = watched(net, tmp_path, at_most=1.0, inputs=X)
    for step in range(3):
        watch(step)
        clock_of(watch).now += 100.0
    assert read_history(tmp_path) == watch.history
    assert len(watch.history.points) == 3
    assert str(watch.history).startswith("3 measurements of 2 layers up to step 2, 6.00 s beside 200 s of")
    assert len(watch.history.to_frame()) == 6


def test_a_line_that_was_cut_off_and_a_resumed_run(net, tmp_path):
    file = tmp_path / "mine.jsonl"
    watch = watched(net, file, at_most=1.0)
    for step in (0, 1, 2):
        watch(step)
        clock_of(watch).now += 100.0
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines, lines[1], lines[2][:50]]))  # killed after 2, resumed at 1, killed again
    assert [point.step for point in read_history(file)] == [0, 1]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "expected JSON in line 1"),
        ("[]", "expected a measurement of format 1"),
        ('{"format": 2}', "expected a measurement of format 1"),
        ('{"format": 1, "step": "x"}', "for the measurement"),
        ('{"format": 1, "step": NaN}', "expected JSON"),
    ],
)
def test_other_files_are_refused(tmp_path, line, said):
    file = tmp_path / "x.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(BadInput) as caught:
        read_history(file)
    assert said in str(caught.value)
    with pytest.raises(BadInput, match="No such file or folder: "):
        read_history(tmp_path / "none.jsonl")


def test_a_net_without_a_shadow_is_audited_all_the_same():
    class Branching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(40, 40)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x) if x.sum() > 0 else x

    watch = Watch(Branching(), inputs=X, at_most=1.0)
    with pytest.warns(UserWarning, match="no recovery errors: expected a net that torch.fx can trace"):
        point = watch(0)
    assert point.layers[0].rank == 0
    assert point.layers[0].recovery is None
    assert "torch.fx" in watch.note


def test_wrappers_are_looked_through(net):
    assert Watch(nn.DataParallel(net)).net is net
    compiled = nn.Module()
    compiled._orig_mod = net  # what torch.compile returns has the net there
    assert Watch(compiled).net is net


def test_numbers_are_logged(net):
    logged: list[tuple[dict[str, float], int]] = []
    watch = Watch(net, log=lambda numbers, step: logged.append((numbers, step)))
    point = watch(7)
    assert logged == [(point.metrics(), 7)]


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"every": 0}, "every ≥ 1"), ({"at_most": 0}, "at_most"), ({"at_most": 2}, "at_most")],
)
def test_wrong_settings_get_a_sentence(net, settings, said):
    with pytest.raises(BadInput, match=said):
        Watch(net, **settings)
    with pytest.raises(BadInput, match=r"an nn\.Module to watch"):
        Watch({"a": torch.rand(3, 3)})


def test_the_history_is_a_figure(net, tmp_path):
    watch = watched(net, tmp_path, at_most=1.0, inputs=X)
    for step in range(4):
        watch(step)
        clock_of(watch).now += 100.0
    figure = plot_history(tmp_path)
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "directions of the signal",
        "like random numbers, %",
        "recovery error",
    ]
    (line, _) = figure.axes[2].lines
    assert line.get_xdata().tolist() == [0, 1, 2, 3]
    assert line.get_ydata()[0] == watch.history.points[0].layers[0].recovery
    assert len(plot_history(watch.history, what="rank").axes) == 1


def test_many_layers_are_thin_lines():
    layer = Watch(nn.Linear(40, 40))(0).layers[0]

    point = Watch(nn.Linear(40, 40))(0)
    layers = tuple(replace(layer, name=f"layer {at}") for at in range(60))
    found = History((replace(point, layers=layers), replace(point, step=1, layers=layers)))
    axes = plot_history(found, what="random_share").axes[0]
    assert axes.get_legend() is None
    assert axes.get_ylabel() == "like random numbers, %, one line per layer"


def test_other_processes_do_nothing(net, monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    watch = Watch(net)
    assert watch(0) is None
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 0)
    assert watch(0) is not None


def test_what_is_written_is_json(net, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Watch(net, tmp_path / "a.jsonl")(0)
    (line,) = Path(tmp_path / "a.jsonl").read_text().splitlines()
    assert json.loads(line)["format"] == 1
