"""The line of an audit: which layer, how fast, how much longer; without a terminal, one now and then."""

import re
import time

from obverse.present.progress import audit_progress
from present.test_progress import line, on_a_terminal
from weights.test_resume import made


def test_without_a_terminal_there_is_a_line_now_and_then(capfd):
    began = time.monotonic()
    with audit_progress("model", every=0.02) as progress:
        progress(0, 40, "first")
        assert line(capfd, "model: 0 of 40 layers, at first")
        progress(10, 40, "blocks.1.\x1b[31mw")
        time.sleep(0.1)
        told = line(
            capfd,
            r"model: 10 of 40 layers, (\S+) matrices/min, about (\d+) s left, at blocks\.1\.[^\x1b]*31mw",
        )
        spent = time.monotonic() - began
    assert 10 / (spent / 60) * 0.99 <= float(told[1]) <= 10 / (0.02 / 60)  # three digits
    assert abs(int(told[2]) - 30 / (float(told[1]) / 60)) <= 1


def test_a_short_audit_prints_no_line(capfd):
    with audit_progress("model") as progress:
        progress(0, 2, "a")
        progress(2, 2, "")
    assert capfd.readouterr() == ("", "")


def test_what_was_measured_before_is_said_and_is_no_speed(capfd):
    with audit_progress("model", every=0.02) as progress:
        progress(30, 40, "a")
        assert line(capfd, "30 of 40 layers measured before: the audit is resumed")
        assert line(capfd, "model: 30 of 40 layers, at a")


def test_a_terminal_has_one_line_that_changes(tmp_path):
    model = made(tmp_path / "model.safetensors", layers=6)
    code, shown = on_a_terminal("audit", str(model), "--samples", "2")
    assert code == 0, shown
    bars = [line for line in re.split(r"[\r\n]+", shown) if line.startswith("model.safetensors")]
    assert any(re.search(r" [1-5]/6 .* [\d.e+]+ matrices/min l\d$", line.rstrip()) for line in bars), bars
