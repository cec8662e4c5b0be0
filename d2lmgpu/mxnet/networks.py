"""The networks of the chapters in MXNet."""

from mxnet import np, npx
from mxnet.gluon import nn

from d2lmgpu.backend.functions import both_editions
from d2lmgpu.mxnet.devices import checked


def _fix_inputs(block, channels):
    """Let ``block`` know that its input has so many channels; others will not fit."""
    for conv in filter(None, (block.conv1, block.conv3)):
        conv.weight.shape = (conv.weight.shape[0], channels, *conv.weight.shape[2:])


@checked
def lenet(X, params) -> np.ndarray:
    """LeNet's outputs: two convolutions with average pooling, then two dense layers.

    With the ReLU and the sizes of Dive into Deep Learning. Defined in chapters/scratch/mxnet.

    Parameters
    ----------
    X : ndarray, (n, 1, 28, 28)
        Images.
    params : list of ndarray
        W1, b1, … W4, b4, of the type and on the device of ``X``. Shapes of W1 to W4:
        (20, 1, 3, 3), (50, 20, 5, 5), (800, 128), (128, 10).

    Returns
    -------
    ndarray, (n, 10)
        Scores of the classes, before any softmax.

    Raises
    ------
    ArgumentError
        If shapes, types or devices are others.

    References
    ----------
    LeCun et al. (1998). Gradient-Based Learning Applied to Document Recognition. Proceedings of
    the IEEE 86(11). Zhang et al. (2023). Dive into Deep Learning. Cambridge University Press.
    """
    h1 = npx.convolution(X, params[0], params[1], kernel=(3, 3), num_filter=len(params[1]))
    h1 = npx.pooling(npx.relu(h1), kernel=(2, 2), stride=(2, 2), pool_type="avg")
    h2 = npx.convolution(h1, params[2], params[3], kernel=(5, 5), num_filter=len(params[3]))
    h2 = npx.pooling(npx.relu(h2), kernel=(2, 2), stride=(2, 2), pool_type="avg")
    h3 = npx.relu(np.dot(h2.reshape(h2.shape[0], -1), params[4]) + params[5])
    return np.dot(h3, params[6]) + params[7]


class Residual(nn.Block):
    """Residual block: two 3x3 convolutions beside the identity.

    It maps (n, channels, height, width) to (n, num_channels, height, width), divided by ``strides``
    and rounded up. Both editions of Dive into Deep Learning are understood: the number of input
    channels may come first.

    Parameters
    ----------
    num_channels : int
        Of the output.
    use_1x1conv : bool
        Put a 1x1 convolution on the shortcut: needed where the number of channels or the
        ``strides`` change the shape.
    strides : int
        Of the first convolution, and of that on the shortcut.

    Raises
    ------
    ArgumentError
        If a number of channels or ``strides`` is no whole number from 1 up.

    References
    ----------
    He et al. (2016). Deep Residual Learning for Image Recognition. CVPR. arXiv 1512.03385.
    """

    @both_editions(_fix_inputs)
    def __init__(self, num_channels, use_1x1conv=False, strides=1):
        super().__init__()
        self.conv1 = nn.Conv2D(num_channels, kernel_size=3, padding=1, strides=strides)
        self.conv2 = nn.Conv2D(num_channels, kernel_size=3, padding=1)
        self.conv3 = nn.Conv2D(num_channels, 1, strides=strides) if use_1x1conv else None
        self.bn1, self.bn2 = nn.BatchNorm(), nn.BatchNorm()

    def forward(self, X) -> np.ndarray:
        """Add the input, or its 1x1 convolution, to what two convolutions make of it."""
        Y = npx.relu(self.bn1(self.conv1(X)))
        Y = self.bn2(self.conv2(Y))
        return npx.relu(Y + (self.conv3(X) if self.conv3 else X))


@checked
def resnet18(num_classes, in_channels=1, width=64) -> nn.Sequential:
    """ResNet-18 for small images: 3x3 stem, no max-pooling; channels ``width`` to 8 ``width``.

    Defined in chapters/concise/mxnet.

    Parameters
    ----------
    num_classes : int
    in_channels : int
        Of the images: 1 if they are gray.
    width : int
        Channels after the stem.

    Returns
    -------
    Sequential
        Maps (n, in_channels, 28, 28) to (n, num_classes). Not yet initialised.

    Raises
    ------
    ArgumentError
        For what is no whole number from 1 up.

    References
    ----------
    He et al. (2016). Deep Residual Learning for Image Recognition. CVPR. arXiv 1512.03385.
    """
    net = nn.Sequential()
    net.add(
        nn.Conv2D(width, kernel_size=3, padding=1, in_channels=in_channels),
        nn.BatchNorm(),
        nn.Activation("relu"),
    )
    for stage in range(4):
        channels, strides = width * 2**stage, 1 if stage == 0 else 2
        net.add(Residual(channels, use_1x1conv=stage > 0, strides=strides), Residual(channels))
    net.add(nn.GlobalAvgPool2D(), nn.Dense(num_classes))
    return net
