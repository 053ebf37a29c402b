"""Model files and staged folders: whole or not there."""

import hashlib
import json
import os
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import safe_open
from safetensors.numpy import save_file

from mixmem.errors import InputError
from mixmem.storage import run_id
from mixmem.storage.atomic import staged_folder, write_atomically
from mixmem.storage.model_file import load_model, save_model

ARRAYS = {"theta": np.linspace(0, 1, 12).reshape(4, 3), "alpha": np.array([0.1, 0.2, 0.3])}
HEADER = {"schema": {"variables": []}, "settings": {"seed": 7, "solver": "pqp"}, "name": "é"}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.mixmem"
    save_model(path, ARRAYS, HEADER)
    return path


def test_round_trip(saved):
    arrays, header = load_model(saved)
    assert header == HEADER
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
    assert os.listdir(saved.parent) == ["m.mixmem"]


@settings(max_examples=25, deadline=None)
@given(
    array=hnp.arrays(
        st.sampled_from(["<f8", ">f8", "<f4", "<i8", ">i4", "u1", "?"]),
        hnp.array_shapes(min_dims=0, min_side=0),
    ),
    transposed=st.booleans(),
)
def test_any_layout_comes_back(tmp_path_factory, array, transposed):
    array = array.T if transposed else array
    path = tmp_path_factory.getbasetemp() / "layout.mixmem"
    save_model(path, {"a": array}, {})
    came = load_model(path)[0]["a"]
    assert came.shape == array.shape
    np.testing.assert_array_equal(came, array)


def test_the_same_model_is_the_same_bytes(saved, tmp_path):
    save_model(tmp_path / "again.mixmem", dict(reversed(ARRAYS.items())), dict(reversed(HEADER.items())))
    assert (tmp_path / "again.mixmem").read_bytes() == saved.read_bytes()


def test_the_versions_that_made_a_file_stand_in_it(saved):
    with safe_open(saved, framework="numpy") as file:
        document = json.loads(file.metadata()["mixmem"])
    assert {"mixmem", "numpy", "numba"} <= document["written"]["versions"].keys()
    assert document["written"]["machine"]["architecture"]


def test_a_failed_save_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        save_model(saved, {"alpha": np.zeros(2)}, {})
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == ["m.mixmem"]


def rewrite(path, **changes):
    document = {"format": "mixmem-model", "format_version": 1, "header": {}, **changes}
    save_file(ARRAYS, path, metadata={"mixmem": json.dumps(document)})


def test_the_first_format_is_read(saved):
    rewrite(saved, format_version=1, header=HEADER)
    assert load_model(saved)[1] == HEADER


def test_newer_and_foreign_formats_are_refused(saved):
    rewrite(saved, format_version=3)
    with pytest.raises(InputError, match=r"format version 3, written by a newer mixmem.*upgrade"):
        load_model(saved)
    rewrite(saved, format="other")
    with pytest.raises(InputError, match="has the format 'other'; expected 'mixmem-model'"):
        load_model(saved)
    rewrite(saved, header=None)
    with pytest.raises(InputError, match="damaged header"):
        load_model(saved)
    save_file(ARRAYS, saved)
    with pytest.raises(InputError, match="a safetensors file that mixmem did not write"):
        load_model(saved)


@pytest.mark.parametrize("keep", [9, 60, 400, -1])
def test_a_cut_file_is_refused(saved, keep):
    saved.write_bytes(saved.read_bytes()[:keep])
    with pytest.raises(InputError, match="damaged or cut short"):
        load_model(saved)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"hello", "is not a model file"),
        (b"variable,level,statistic\n", "is not a model file"),
        (struct.pack("<Q", 10) + b"{not json}", "damaged or cut short"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "m.mixmem"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_model(path)


def test_paths_are_checked(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        load_model(tmp_path / "none.mixmem")
    with pytest.raises(InputError, match="is a folder; expected a model file"):
        load_model(tmp_path)
    with pytest.raises(InputError, match="is a folder; expected the name of a file"):
        save_model(tmp_path, ARRAYS, HEADER)
    with pytest.raises(InputError, match="does not exist; create it"):
        save_model(tmp_path / "none" / "m.mixmem", ARRAYS, HEADER)


def test_write_atomically_keeps_the_suffix(tmp_path):
    with write_atomically(tmp_path / "memberships.csv") as temporary:
        assert temporary.suffix == ".csv"
        temporary.write_text("x")
        assert not (tmp_path / "memberships.csv").exists()
    assert os.listdir(tmp_path) == ["memberships.csv"]


# --- Folders


def test_files_move_into_a_new_folder(tmp_path):
    out = tmp_path / "deep" / "out"
    with staged_folder(out) as staging:
        (staging / "a.csv").write_text("a")
        (staging / "figures").mkdir()
        (staging / "figures" / "b.png").write_text("b")
        assert not out.exists()
    assert sorted(p.name for p in out.rglob("*")) == ["a.csv", "b.png", "figures"]
    assert os.listdir(out.parent) == ["out"]


def test_files_join_those_of_an_existing_folder(tmp_path):
    (tmp_path / "kept.txt").write_text("kept")
    (tmp_path / "a.csv").write_text("old")
    with staged_folder(tmp_path) as staging:
        (staging / "a.csv").write_text("new")
        (staging / "figures").mkdir()
        (staging / "figures" / "b.png").write_text("b")
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "figures", "kept.txt"]
    assert (tmp_path / "a.csv").read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("exists", [True, False])
def test_failures_leave_no_trace(tmp_path, error, exists):
    out = tmp_path / "deep" / "out"
    if exists:
        out.mkdir(parents=True)
        (out / "a.csv").write_text("old")

    def work():
        with staged_folder(out) as staging:
            (staging / "a.csv").write_text("new")
            raise error

    with pytest.raises(error):
        work()
    if exists:
        assert os.listdir(out) == ["a.csv"]
        assert (out / "a.csv").read_text() == "old"
    else:
        assert os.listdir(tmp_path) == []


def enter(out):
    with staged_folder(out):
        pytest.fail("the work must not start")


def test_targets_are_checked_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file; expected a folder to write into"):
        enter(tmp_path / "file")
    with pytest.raises(InputError, match=r"file is a file; expected a folder|cannot be written"):
        enter(tmp_path / "file" / "deep" / "out")
    with pytest.raises(InputError, match="cannot be written"):
        enter(tmp_path / ("n" * 300))
    assert os.listdir(tmp_path) == ["file"]


def test_unwritable_folders_are_refused(tmp_path, monkeypatch):
    # Root may write anywhere, so the answer of the system is replaced.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="is not writable; change its permissions"):
        enter(tmp_path)
    with pytest.raises(InputError, match="is not writable; change its permissions"):
        enter(tmp_path / "out")


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path):
    (tmp_path / "a.csv").mkdir()

    def work():
        with staged_folder(tmp_path) as staging:
            (staging / "a.csv").write_text("new")
            (staging / "0.csv").write_text("new")

    with pytest.raises(InputError, match=r"a\.csv is a folder where a file is to be written"):
        work()
    assert os.listdir(tmp_path) == ["a.csv"]


def test_files_of_an_earlier_run_are_removed_where_a_later_one_leaves_them_out(tmp_path):
    for names in (("a", "b"), ("a",)):
        with staged_folder(tmp_path / "out", replaces=("a", "b")) as folder:
            for name in names:
                (folder / name).write_text("x")
        (tmp_path / "out" / "mine").write_text("kept")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "mine"]


def test_a_digest_does_not_depend_on_line_ends_or_pieces(tmp_path, monkeypatch):
    plain, other = tmp_path / "a.csv", tmp_path / "b.csv"
    plain.write_bytes(b"a,b\n1,2\n3,\r4\n" * 50 + b"\r")
    other.write_bytes(b"a,b\r\n1,2\r\n3,\r4\r\n" * 50 + b"\r")
    expected = hashlib.sha256(plain.read_bytes()).hexdigest()[:16]
    for size in (1, 2, 7, 10**6):
        monkeypatch.setattr(run_id, "PIECE_BYTES", size)
        assert run_id.file_digest(plain) == run_id.file_digest(other) == expected
