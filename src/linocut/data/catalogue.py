"""Where each data set comes from: address, size, published hash, licence, and its official counts."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from linocut.errors import InputError

PLAIN_HTTP: tuple[str, ...] = ()  # hosts that may be asked without https: none, but for the server of the tests


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """One file to fetch. It goes into `folder` under the root; an archive is unpacked there and then removed.

    sha256 is preferred; md5 stands where no more was published. It guards against damage, not against an
    adversary, so that the address is https in any case.
    """

    url: str
    size: int
    sha256: str = ""
    md5: str = ""
    folder: str = "."
    unpack: bool = False

    def __post_init__(self) -> None:
        assert self.sha256 or self.md5, f"{self.url}: a file to fetch needs a published hash"

    @property
    def file_name(self) -> str:
        return urlsplit(self.url).path.rsplit("/", 1)[-1]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One data set as published. images: the official counts of the training and the test split."""

    name: str
    homepage: str
    licence: str
    images: tuple[int, int]
    num_classes: int
    files: tuple[RemoteFile, ...]


def check_address(url: str) -> None:
    """Refuse any address that is not https."""
    parts = urlsplit(url)
    allowed = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in PLAIN_HTTP)
    if not (allowed and parts.hostname):
        raise InputError(f"refusing to fetch {url}: wanted an https address")


def _idx_files(base: str, folder: str, files: tuple[tuple[str, int, str], ...]) -> tuple[RemoteFile, ...]:
    return tuple(RemoteFile(url=base + name, size=size, sha256=sha256, folder=folder) for name, size, sha256 in files)


MNIST = Entry(
    name="mnist",
    homepage="http://yann.lecun.com/exdb/mnist/",
    licence="none named by its authors; Keras's documentation says CC BY-SA 3.0",
    images=(60_000, 10_000),
    num_classes=10,
    files=_idx_files(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "mnist",
        (
            (
                "train-images-idx3-ubyte.gz",
                9912422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            (
                "train-labels-idx1-ubyte.gz",
                28881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            (
                "t10k-images-idx3-ubyte.gz",
                1648877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            (
                "t10k-labels-idx1-ubyte.gz",
                4542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ),
    ),
)

FASHION_MNIST = Entry(
    name="fashion-mnist",
    homepage="https://github.com/zalandoresearch/fashion-mnist",
    licence="MIT",
    images=(60_000, 10_000),
    num_classes=10,
    files=_idx_files(
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
        "fashion-mnist",
        (
            (
                "train-images-idx3-ubyte.gz",
                26421880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            ),
            (
                "train-labels-idx1-ubyte.gz",
                29515,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            ),
            (
                "t10k-images-idx3-ubyte.gz",
                4422102,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            ),
            (
                "t10k-labels-idx1-ubyte.gz",
                5148,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
        ),
    ),
)

CIFAR_10 = Entry(
    name="cifar-10",
    homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
    licence="none named; its authors ask to be cited",
    images=(50_000, 10_000),
    num_classes=10,
    files=(
        RemoteFile(
            url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            size=170052171,
            sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            md5="c32a1d4ab5d03f1284b67883e8d87530",
            unpack=True,
        ),
    ),
)

_GTSRB_ARCHIVE = "https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/"
GTSRB = Entry(
    name="gtsrb",
    homepage="https://benchmark.ini.rub.de/gtsrb_dataset.html",
    licence="none named with the archive; its authors ask to be cited",
    images=(39_209, 12_630),
    num_classes=43,
    files=(
        RemoteFile(
            url=_GTSRB_ARCHIVE + "GTSRB_Final_Training_Images.zip",
            size=276294756,
            md5="f33fd80ac59bff73c82d25ab499e03a3",
            unpack=True,
        ),
        RemoteFile(
            url=_GTSRB_ARCHIVE + "GTSRB_Final_Test_Images.zip",
            size=88978620,
            md5="c7e4e6327067d32654124b0fe9e82185",
            unpack=True,
        ),
        RemoteFile(
            url=_GTSRB_ARCHIVE + "GTSRB_Final_Test_GT.zip",
            size=99620,
            md5="fe31e9c9270bbcd7b84b7f21a9d9d9e5",
            unpack=True,
        ),
    ),
)

RESISC45 = Entry(
    name="resisc45",
    homepage="https://doi.org/10.1109/JPROC.2017.2675998",
    licence="none named by its authors; the mirror's page says CC BY-NC 4.0",
    images=(25_200, 6_300),
    num_classes=45,
    files=(
        RemoteFile(
            url="https://huggingface.co/datasets/torchgeo/resisc45/resolve/"
            "c01546f24de9e8331ecf53bd645b52c8ee2f2e3b/NWPU-RESISC45.zip",
            size=427389445,
            sha256="beeecd0b63656290ae6d65cf7763185b0c1c4c54a753ef8088d6fba3faaf1f53",
            unpack=True,
        ),
    ),
)


def _imagenette(name: str, file_name: str, size: int, sha256: str, md5: str) -> Entry:
    return Entry(
        name=name,
        homepage="https://github.com/fastai/imagenette",
        licence="Apache-2.0 for the collection; the pictures are ImageNet's, for research only",
        images=(9_469, 3_925),
        num_classes=10,
        files=(
            RemoteFile(
                url=f"https://s3.amazonaws.com/fast-ai-imageclas/{file_name}",
                size=size,
                sha256=sha256,
                md5=md5,
                unpack=True,
            ),
        ),
    )


IMAGENETTE_320 = _imagenette(
    "imagenette",
    "imagenette2-320.tgz",
    341663724,
    "569b4497c98db6dd29f335d1f109cf315fe127053cedf69010d047f0188e158c",
    "3df6f0d01a2c9592104656642f5e78a3",
)
IMAGENETTE_160 = _imagenette(
    "imagenette-160",
    "imagenette2-160.tgz",
    99003388,
    "64d0c4859f35a461889e0147755a999a48b49bf38a7e0f9bd27003f10db02fe5",
    "e793b78cc4c9e9a4ccc0c1155377a412",
)
IMAGENETTE_FULL = _imagenette(
    "imagenette-full",
    "imagenette2.tgz",
    1557161267,
    "6cbfac238434d89fe99e651496f0812ebc7a10fa62bd42d6874042bf01de4efd",
    "fe2fc210e6bb7c5664d602c3cd71e612",
)

ENTRIES = {
    entry.name: entry
    for entry in (
        MNIST,
        FASHION_MNIST,
        CIFAR_10,
        GTSRB,
        RESISC45,
        IMAGENETTE_320,
        IMAGENETTE_160,
        IMAGENETTE_FULL,
    )
}


def entry(name: str) -> Entry:
    """The entry of this name."""
    if name not in ENTRIES:
        raise InputError(f"nothing to download under the name {name!r}; there are {', '.join(ENTRIES)}")
    return ENTRIES[name]
