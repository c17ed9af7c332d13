"""A committed folder is whole or absent, whatever happens while it is written (trap 22)."""

import errno

import pytest

from windage.errors import DataError, PublishError
from windage.publish.folder import committed, drop_old_versions, read_marker, version_folder, writing


def write(target, text="new", **settings):
    with writing(target, "the thing", **settings) as draft:
        (draft.folder / "content").write_text(text)
        draft.marker.update(version=3)


def names(root):
    return sorted(path.name for path in root.iterdir())


def test_it_is_complete_and_marked(tmp_path):
    write(tmp_path / "a" / "version-3")
    folder = tmp_path / "a" / "version-3"
    assert committed(folder)
    assert read_marker(folder) == {"version": 3}
    assert names(tmp_path / "a") == ["version-3"]


def test_a_new_one_replaces_the_old(tmp_path):
    write(tmp_path / "v", "old")
    write(tmp_path / "v", "new")
    assert (tmp_path / "v" / "content").read_text() == "new"
    assert names(tmp_path) == ["v"]


def test_a_full_disk_leaves_the_old_one_and_no_rubbish(tmp_path):
    write(tmp_path / "v", "old")
    with (
        pytest.raises(PublishError, match=r"cannot write the thing to .*/v; got No space left on device") as caught,
        writing(tmp_path / "v", "the thing", error=PublishError) as draft,
    ):
        (draft.folder / "content").write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert "free space" in str(caught.value)
    assert (tmp_path / "v" / "content").read_text() == "old"
    assert committed(tmp_path / "v")
    assert names(tmp_path) == ["v"]


def test_a_full_disk_during_the_sync_counts_too(tmp_path, monkeypatch):
    write(tmp_path / "v", "old")

    def refuse(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(DataError, match="No space left"):
        write(tmp_path / "v", "new")
    assert (tmp_path / "v" / "content").read_text() == "old"


def test_any_other_error_leaves_nothing_either(tmp_path):
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "v", "the thing") as draft:
        (draft.folder / "content").write_text(str(1 / 0))
    assert names(tmp_path) == []


def test_a_folder_without_its_marker_is_no_folder(tmp_path):
    (tmp_path / "v").mkdir()
    assert not committed(tmp_path / "v")
    with pytest.raises(DataError, match="not a committed folder"):
        read_marker(tmp_path / "v")


def test_old_versions_go_by_number_not_by_name(tmp_path):
    for version in (8, 9, 10, 11):
        write(version_folder(tmp_path, version))
    (tmp_path / ".version-12.partial-1").mkdir()
    (tmp_path / "base").mkdir()
    drop_old_versions(tmp_path, keep=3)
    assert names(tmp_path) == ["base", "version-10", "version-11", "version-9"]
