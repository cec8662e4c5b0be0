"""The largest batch that fits on a card."""

from functools import cache

from d2lmgpu.torch.memory.fits import fits

MOST = 1 << 20  # examples: what still fits then does not depend on the batch


def largest_batch(
    net, batch, loss, optimizer, card, precision="float32", devices=1
) -> tuple[int, int]:
    """Two batch sizes: the largest that is told to fit, and the largest that may.

    Above the second it does not fit; between them it cannot be told.

    Parameters
    ----------
    net, batch, loss, optimizer
        Those of ``fits``.
    card : str
        A name in ``d2lmgpu.memory.cards.CARDS``, as for ``Fit.on``.
    precision, devices
        Those of ``fits``.

    Returns
    -------
    tuple of int
        Examples on the device; both are 0 if not one fits, and at most 2²⁰.

    Raises
    ------
    ValueError
        As ``fits`` does, and for another card.
    """

    @cache
    def answer(batch_size):
        return fits(net, batch, loss, optimizer, batch_size, precision, devices).on(card)

    total = answer(1).card.total
    return last(lambda n: answer(n).high, total), last(lambda n: answer(n).low, total)


def last(size, room) -> int:
    """The largest n up to ``MOST`` with ``size(n) <= room``, 0 if there is none.

    A size is nearly a straight line, so the next n is where a line through two of them meets the
    room, and every other time the middle, which always comes closer.
    """
    fitting, too_large, n, turn = 0, None, 1, 0
    while n <= MOST:
        if size(n) <= room:
            fitting = n
        else:
            too_large = n
        if too_large is None:
            n = 2 * n if n < 4 else crossing(size, n // 2, n, room)
            n = min(max(n, fitting + 1), 8 * fitting)
        elif too_large - fitting <= 1:
            return fitting
        else:
            turn += 1
            n = (fitting + too_large) // 2
            if turn % 2 and fitting:
                n = min(max(crossing(size, fitting, too_large, room), fitting + 1), too_large - 1)
    return MOST


def crossing(size, a, b, room) -> int:
    """Where the line through the sizes of ``a`` and ``b`` meets ``room``."""
    slope = (size(b) - size(a)) / (b - a)
    return int(a + (room - size(a)) / slope) if slope > 0 else 2 * b
