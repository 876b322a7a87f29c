"""The disks that the nemesis fills: one of the artifacts, one of PostgreSQL. To mount them takes the rights of root."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

OF_ARTIFACTS = "64m"  # room for three thousand errands
OF_DATABASE = 1 << 30  # bytes; a sparse file, in which fsync still reaches the disk
BLOCK = 4096
COMMANDS = ("/bin/mount", "/bin/umount", "/sbin/mkfs.ext4")


class Disks:
    """Mounts both where it may. Where not, the artifacts lose their folder, and PostgreSQL's disk is not filled."""

    def __init__(self, folder: Path, artifacts: Path) -> None:
        self.artifacts = artifacts
        self.image, self.of_database = folder / "disk.ext4", folder / "disk"
        self.mounted: list[Path] = []

    @property
    def has_database(self) -> bool:
        return self.of_database in self.mounted

    def mount(self) -> None:
        self.artifacts.mkdir(parents=True, exist_ok=True)
        self.of_database.mkdir(exist_ok=True)
        if os.geteuid() != 0 or not all(Path(command).exists() for command in COMMANDS):
            return
        self._mount("-t", "tmpfs", "-o", f"size={OF_ARTIFACTS}", "chaos", str(self.artifacts))
        self.image.touch()
        os.truncate(self.image, OF_DATABASE)
        subprocess.run(["/sbin/mkfs.ext4", "-q", "-F", "-m", "0", str(self.image)], check=True)
        self._mount("-o", "loop", str(self.image), str(self.of_database))

    def unmount(self) -> None:
        """Unmount them; what PostgreSQL's held goes with its file."""
        while self.mounted:
            subprocess.run(["/bin/umount", str(self.mounted.pop())], check=True)
        self.image.unlink(missing_ok=True)

    def fill_artifacts(self) -> None:
        """Leave no room for files of the state; where no disk of their own could be mounted, no folder for them."""
        new = self.artifacts / "new"
        if self.artifacts in self.mounted:
            _fill(self.artifacts)
        else:
            shutil.rmtree(new, ignore_errors=True)
            new.touch()

    def free_artifacts(self) -> None:
        new = self.artifacts / "new"
        (self.artifacts / "ballast").unlink(missing_ok=True)
        if new.is_file():
            new.unlink()

    def fill_database(self) -> None:
        _fill(self.of_database)

    def free_database(self) -> None:
        (self.of_database / "ballast").unlink(missing_ok=True)

    def _mount(self, *words: str) -> None:
        if subprocess.run(["/bin/mount", *words], capture_output=True).returncode == 0:
            self.mounted.append(Path(words[-1]))


def _fill(disk: Path) -> None:
    """Take all blocks that are left: most of them at once, the rest one by one."""
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        free = os.statvfs(disk)
        try:
            os.posix_fallocate(ballast.fileno(), 0, max(free.f_bavail - 256, 1) * free.f_bsize)
            ballast.seek(0, os.SEEK_END)
            while True:
                ballast.write(b"x" * BLOCK)
        except OSError:
            return
