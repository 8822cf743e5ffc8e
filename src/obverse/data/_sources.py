"""The table of known data sets: which files, how large, which checksums, from where. Nothing is read here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CIFAR_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class File:
    """One file as the readers want it."""

    path: str  # inside the data set's folder; a name in .gz is kept compressed
    size: int  # bytes, uncompressed: never more than this is unpacked
    md5: str | None  # of the uncompressed content, so that any compression of it will do


@dataclass(frozen=True)
class Download:
    """One address and what it brings: a single .gz, or a .tar.gz with the files as members."""

    url: str
    files: tuple[File, ...]
    md5: str | None = None  # of the archive as it is sent

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[-1]

    @property
    def limit(self) -> int:
        """Most bytes worth receiving: what it holds, and 1 MiB for headers and incompressible content."""
        return sum(file.size for file in self.files) + 2**20


@dataclass(frozen=True)
class Known:
    """A data set by name."""

    format: Literal["idx", "cifar"]
    classes: tuple[str, ...]
    train: int  # examples
    test: int
    downloads: tuple[Download, ...]
    label_bytes: int = 1  # CIFAR-100 has two: coarse, fine

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(file for download in self.downloads for file in download.files)


def idx_set(base: str, classes: tuple[str, ...], md5: tuple[str, ...], train: int, test: int) -> Known:
    """The four files of an MNIST-like set; `md5` in the order train images, train labels, test images, …"""
    files = (
        File("train-images-idx3-ubyte.gz", 16 + train * 784, md5[0]),
        File("train-labels-idx1-ubyte.gz", 8 + train, md5[1]),
        File("t10k-images-idx3-ubyte.gz", 16 + test * 784, md5[2]),
        File("t10k-labels-idx1-ubyte.gz", 8 + test, md5[3]),
    )
    return Known("idx", classes, train, test, tuple(Download(base + file.path, (file,)) for file in files))


# fmt: off
MNIST_CLASSES = tuple("0123456789")
FASHION_CLASSES = ("T-shirt/top", "trouser", "pullover", "dress", "coat",
                   "sandal", "shirt", "sneaker", "bag", "ankle boot")
CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR100_CLASSES = tuple("""
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
    castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
    elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard
    lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear
    pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal
    shark shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank
    telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
""".split())  # noqa: SIM905 - a hundred quotes are harder to check against the authors' list
# fmt: on

_CIFAR = "https://www.cs.toronto.edu/~kriz/"

# The md5 of both CIFAR archives is the one printed on the authors' page. Those of CIFAR-10's members were
# computed from verified files; none are known at first hand for CIFAR-100, so its archive's stands alone.
KNOWN: dict[str, Known] = {
    "mnist": idx_set(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        MNIST_CLASSES,
        (
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        ),
        train=60_000,
        test=10_000,
    ),
    "fashion-mnist": idx_set(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        FASHION_CLASSES,
        (
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "9018921c3c673c538a1fc5bad174d6f9",
            "8181f5470baa50b63fa0f6fddb340f0a",
            "15d484375f8d13e6eb1aabb0c3f46965",
        ),
        train=60_000,
        test=10_000,
    ),
    "cifar10": Known(
        "cifar",
        CIFAR10_CLASSES,
        50_000,
        10_000,
        (
            Download(
                _CIFAR + "cifar-10-binary.tar.gz",
                tuple(
                    File(f"cifar-10-batches-bin/{name}.bin", 10_000 * (1 + CIFAR_PIXELS), md5)
                    for name, md5 in (
                        ("data_batch_1", "5dd7e06a14cb22eb9f671a540d1b7c25"),
                        ("data_batch_2", "5ea93a67294ea407fff1d09f752e9692"),
                        ("data_batch_3", "942cd6a4bcdd0dd3c604fbe906cb4421"),
                        ("data_batch_4", "ae636b3ba5c66a11e91e8cb52e771fcb"),
                        ("data_batch_5", "53f37980c15c3d472c316c40844f3f0d"),
                        ("test_batch", "803d5f7f4d78ea53de84dbe85f74fb6d"),
                    )
                ),
                md5="c32a1d4ab5d03f1284b67883e8d87530",
            ),
        ),
    ),
    "cifar100": Known(
        "cifar",
        CIFAR100_CLASSES,
        50_000,
        10_000,
        (
            Download(
                _CIFAR + "cifar-100-binary.tar.gz",
                (
                    File("cifar-100-binary/train.bin", 50_000 * (2 + CIFAR_PIXELS), None),
                    File("cifar-100-binary/test.bin", 10_000 * (2 + CIFAR_PIXELS), None),
                ),
                md5="03b5dce01913d631647c71ecec9e9cb8",
            ),
        ),
        label_bytes=2,
    ),
}
