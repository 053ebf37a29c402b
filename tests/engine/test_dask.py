"""A cluster of Dask: the same bits as in this process, lost workers survived, and refusals in words."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import numpy as np
import polars as pl
import pytest

from mixmem import GDLM, InputError, simulate_gdlm
from mixmem.cli import main
from mixmem.data import chunks
from mixmem.engine import dask as engine
from mixmem.engine import rows as engine_rows
from mixmem.engine.chunks import Local
from mixmem.engine.dask import Dask, connected, engine_of
from mixmem.engine.rows import RowSum
from mixmem.moments import few_passes

distributed = pytest.importorskip("distributed")
ROWS = 70_000


@pytest.fixture(scope="module", autouse=True)
def _small_samples():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "SAMPLE_BLOCKS", 16)
        yield


@pytest.fixture(scope="module")
def client():
    """Two workers in this process: what they run is the same, and they are there at once."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def frame():
    codes = simulate_gdlm(ROWS, 9, 2, n_levels=3, alpha=0.2, random_state=1).codes.astype(np.int64)
    return pl.DataFrame({f"x{j}": codes[:, j] for j in range(9)})


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("parts")
    frame[:20_000].write_parquet(path / "a.parquet")
    frame[20_000:].write_parquet(path / "b.parquet")
    frame.write_csv(path / "all.csv")
    return path


def fitted(X, client=None):
    model = GDLM(2, alpha0=0.4, refine=None, random_state=0, passes="few")
    model._chunk_rows = 1
    return model.fit(X, engine=client)


@pytest.mark.slow
def test_the_same_bits_on_workers_from_files_frames_and_arrays(client, frame, folder):
    whole = fitted(frame)
    found = [fitted(str(folder / "*.parquet"), client), fitted(folder / "all.csv", client), fitted(frame, client)]
    array = pytest.importorskip("dask.array")
    found.append(fitted(array.from_array(frame.to_numpy(), chunks=(25_000, 5)), client))
    dataframe = pytest.importorskip("dask.dataframe")
    found.append(fitted(dataframe.from_pandas(frame.to_pandas(), npartitions=5), client))
    for model in found:
        assert np.array_equal(model._theta, whole._theta)
        assert np.array_equal(model.alpha_, whole.alpha_)


def test_files_are_read_once_while_workers_have_room_for_codes(client, frame, folder, monkeypatch):
    read: list[int] = []
    coded = chunks.Reading.coded

    def counting(self, begin, end, *arguments, **options):
        read.append(begin)
        return coded(self, begin, end, *arguments, **options)

    monkeypatch.setattr(chunks.Reading, "coded", counting)
    pattern = str(folder / "*.parquet")
    once = fitted(pattern, client)
    assert sorted(read) == [0, 32_768, 65_536]
    monkeypatch.setattr(engine, "KEPT_PART", 10**9)
    again = fitted(pattern, client)
    assert len(read) > 6
    assert np.array_equal(once._theta, again._theta)


def test_the_sample_is_read_by_workers_file_by_file(client, frame, folder, monkeypatch):
    read, each = [], Dask.each

    def naming(self, name, work, count, done):
        read.append((name, count))
        return each(self, name, work, count, done)

    monkeypatch.setattr(Dask, "each", naming)
    assert np.array_equal(fitted(str(folder / "*.parquet"), client)._theta, fitted(frame)._theta)
    assert read == [("sample", 2)]


@pytest.mark.slow
def test_parts_of_rows_and_em_have_the_same_bits_on_workers(client, frame, folder, monkeypatch):
    monkeypatch.setattr(engine_rows, "MOST_BLOCKS", 1)
    monkeypatch.setattr(chunks, "SAMPLE_BLOCKS", 8)
    monkeypatch.setattr(few_passes, "ENOUGH", 0.18)

    def found(X, refine, client=None):
        model = GDLM(2, alpha0=0.4, refine=refine, random_state=0, passes="few")
        model._chunk_rows = 20_000
        return model.fit(X, engine=client)

    pattern = str(folder / "*.parquet")
    here = {refine: found(frame, refine)._theta for refine in (None, "em")}
    for kept in (4, 10**9):  # whether codes are kept by the workers or files read again
        monkeypatch.setattr(engine, "KEPT_PART", kept)
        by_moments, by_em = (found(pattern, refine, client) for refine in (None, "em"))
        assert by_moments.report_.start.correction.parts[1] < 0.25
        assert np.array_equal(by_moments._theta, here[None])
        assert np.array_equal(by_em._theta, here["em"])


def test_the_command(client, folder, tmp_path, capsys):
    address = client.scheduler.address
    arguments = ["fit", str(folder / "*.parquet"), "-k", "2", "--alpha0", "0.4", "--quiet"]
    assert main([*arguments, "--scheduler", address, "--out", str(tmp_path / "a")]) == 0
    assert main([*arguments, "--passes", "few", "--out", str(tmp_path / "b")]) == 0
    for name in ("theta.csv", "alpha.csv", "memberships.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_what_comes_back_has_the_same_size_for_any_number_of_chunks(client):
    runner = Dask(client)
    sizes = [len(runner.total("count", Numbers(), count, lambda _: None).nodes) for count in (1, 3, 12)]
    assert sizes == [1, 1, 1]
    local = Local().total("count", Numbers(), 12, lambda _: None)
    assert runner.total("count", Numbers(), 12, lambda _: None).root == local.root
    steps: list[int] = []
    assert list(runner.each("squares", _square, 7, steps.append)) == [0, 1, 4, 9, 16, 25, 36]
    assert steps == [1] * 7


@dataclass(frozen=True)
class Numbers:
    """The number of a chunk as its sum; the worker that comes to the third one first is killed, if a mark is named."""

    mark: str = ""

    def __call__(self, number: int) -> RowSum:
        if self.mark and number == 2 and not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return RowSum({(0, number): (np.asarray(1.0 / (number + 1)),)})


def _square(number: int) -> int:
    return number**2


def _worker(address: str) -> subprocess.Popen[bytes]:
    """Start a worker as a process of its own, which nobody starts again, and which finds this file."""
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([*command, "--no-dashboard"], env={**os.environ, "PYTHONPATH": paths}, **quiet)


@pytest.mark.slow
def test_the_only_worker_is_killed(tmp_path):
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = [_worker(client.scheduler.address)]

        def replace_the_first() -> None:
            workers[0].wait()
            workers.append(_worker(client.scheduler.address))

        thread = Thread(target=replace_the_first)
        thread.start()
        try:
            client.wait_for_workers(1, timeout=120)
            found = Dask(client).total("count", Numbers(str(tmp_path / "killed")), 5, lambda _: None)
        finally:
            workers[0].kill()
            thread.join()
            workers[1].kill()
            workers[1].wait()
    assert (tmp_path / "killed").exists()
    assert found.root == Local().total("count", Numbers(), 5, lambda _: None).root


def test_refusals(client, frame, folder, tmp_path, monkeypatch, capsys):
    with pytest.raises(InputError, match="engine is a str; expected None or a client of Dask"):
        engine_of("tcp://somewhere")
    monkeypatch.setattr(engine, "SECONDS", 0.2)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 .*; start one with"):
        connected("tcp://127.0.0.1:9")
    arguments = ["fit", str(folder / "all.csv"), "-k", "2", "--out", str(tmp_path / "o")]
    assert main([*arguments, "--scheduler", "nonsense"]) == 2
    assert "no Dask scheduler answers at nonsense" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    array = pytest.importorskip("dask.array")
    with pytest.raises(InputError, match="a Dask collection needs a client of its cluster; give it"):
        fitted(array.from_array(frame.to_numpy()))
    with pytest.raises(InputError, match="the table has 1 dimensions; expected rows x variables"):
        fitted(array.from_array(np.zeros(5)), client)
    bad = frame.with_columns(x1=pl.Series(["?" if row == 60_000 else str(0.5 + row % 40) for row in range(ROWS)]))
    bad.write_csv(tmp_path / "bad.csv")
    with pytest.raises(InputError, match=r"bad.csv.*column 'x1', row .* holds '\?'; expected a number"):
        fitted(tmp_path / "bad.csv", client)
    monkeypatch.setattr(engine, "_version", lambda: "0.0.1")
    with pytest.raises(InputError, match=r"workers have mixmem 0.0.1, but this is .*; install the same version"):
        fitted(frame, client)


def test_what_is_refused_is_not_tried_again(client, frame, tmp_path, monkeypatch):
    bad = frame.with_columns(x1=pl.Series([str(row % 50 + 0.5) if row != 40_001 else "?" for row in range(ROWS)]))
    bad.write_csv(tmp_path / "bad.csv")
    tried = []
    coded = chunks.Reading.coded

    def counting(reading, begin, end, *arguments, **options):
        tried.append(reading.source.place(begin, end))  # with the file: tasks of a fit refused before may still run
        return coded(reading, begin, end, *arguments, **options)

    monkeypatch.setattr(chunks.Reading, "coded", counting)
    with pytest.raises(InputError, match=r"bad.csv.*column 'x1', row .* holds '\?'; expected a number"):
        fitted(tmp_path / "bad.csv", client)
    mine = [place for place in tried if str(tmp_path) in place]
    assert mine
    assert len(mine) == len(set(mine))


def test_files_of_this_machine_and_closed_clients_are_refused_at_once(client, frame, tmp_path):
    (tmp_path / "all.csv.gz").write_bytes(gzip.compress(frame.write_csv().encode()))
    with pytest.raises(InputError, match=r"all.csv.gz is unzipped on this machine, .*; unzip it for them"):
        fitted(tmp_path / "all.csv.gz", client)
    with distributed.Client(client.cluster) as closed:
        pass
    with pytest.raises(InputError, match="the client of Dask is closed; make a new one"):
        fitted(frame, closed)
