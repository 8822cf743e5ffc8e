"""With Lightning and Hugging Face's Trainer themselves, where they are installed."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from obverse.integrations import read_history

X = torch.rand(64, 40, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0.5).long()
LIGHTNING, TRANSFORMERS = (
    importlib.util.find_spec(name) is not None for name in ("lightning", "transformers")
)
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # theirs are many


def body() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 2))


@pytest.mark.skipif(not LIGHTNING, reason="lightning is not installed")
def test_lightning(tmp_path):
    import lightning
    from lightning.pytorch.loggers import CSVLogger

    from obverse.integrations.lightning import AuditCallback

    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = body()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x)

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            return nn.functional.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    logger = CSVLogger(tmp_path, name="csv")
    callback = AuditCallback(every_n_epochs=1, at_most=None)
    trainer = lightning.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=logger,
        callbacks=[callback],
        default_root_dir=tmp_path,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    trainer.fit(Module(), DataLoader(TensorDataset(X, Y), batch_size=16))
    found = read_history(tmp_path)
    assert found == callback.history
    assert [point.step for point in found] == [0, 1, 2, 3, 4]
    assert [one.name for one in found.points[0].layers] == ["net.0", "net.2"]
    text = (tmp_path / "csv" / "version_0" / "metrics.csv").read_text()
    assert "obverse/rank/net.0" in text.splitlines()[0]


@pytest.mark.skipif(not TRANSFORMERS, reason="transformers is not installed")
def test_transformers(tmp_path):
    from transformers import Trainer, TrainingArguments
    from transformers.modeling_outputs import SequenceClassifierOutput

    from obverse.integrations.transformers import AuditCallback

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = body()

        def forward(self, x: torch.Tensor, labels: torch.Tensor | None = None) -> Any:
            logits = self.net(x)
            loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
            return SequenceClassifierOutput(loss=loss, logits=logits)

    class Rows(Dataset[dict[str, torch.Tensor]]):
        def __len__(self) -> int:
            return len(X)

        def __getitem__(self, row: int) -> dict[str, torch.Tensor]:
            return {"x": X[row], "labels": Y[row]}

    args = TrainingArguments(
        output_dir=str(tmp_path),
        num_train_epochs=4,
        per_device_train_batch_size=16,
        report_to=[],
        disable_tqdm=True,
        save_strategy="no",
        use_cpu=True,
    )
    trainer = Trainer(model=Model(), args=args, train_dataset=Rows())
    callback = AuditCallback(trainer, every_n_epochs=1, at_most=None, inputs=X[:20])
    trainer.add_callback(callback)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.train()
    found = read_history(tmp_path)
    assert found == callback.history
    assert [point.step for point in found] == [0, 1, 2, 3, 4]
    assert [one.name for one in found.points[0].layers] == ["net.0", "net.2"]
    assert all(one.recovery is not None for one in found.points[0].layers)
    logged = [one for one in trainer.state.log_history if "obverse/rank/net.0" in one]
    assert len(logged) == len(found.points)
